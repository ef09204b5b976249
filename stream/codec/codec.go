package codec

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"edge/online"
	"edge/stream/field"
)

const (
	maxID   = 128 // longest id, in bytes
	maxTime = 64  // longest time that is passed on, in bytes
)

// Formats of a payload.
const (
	FormatJSON    = "json"
	FormatCBOR    = "cbor"
	formatFloat32 = "float32"
	formatFloat64 = "float64"
	formatInflux  = "influx"
	formatCSV     = "csv"
	FormatValue   = "value"
)

// Reading is one entry of a payload: a sample, or a label of an earlier sample (X is
// nil then).
type Reading struct {
	ID     string    // identity as text; "" without one
	X      []float64 // D features (or S signals) in the stream's order, or one if the topic names it; finite, or NaN if one is missing
	Label  string    // "" without a label
	Null   bool      // the payload has null as the label of a row: that which is held ends
	Source string    // author of the label, if the payload has one
	Weight float64   // number of samples that the label counts for; 0: one

	RawID, RawTime string // as in the payload, valid JSON; "" if absent
	Device         string // levels of the device's name in the payload, joined by /; "" where only the topic names it

	Absent []bool        // signals that the payload does not have, in contrast to those without a value; nil: none. Not to be changed
	Back   time.Duration // time from this row to the reading's time, where several rows have one time

	Selection *Selection // of the samples of a label; nil: the one with the id
}

// Decoder turns the payloads of one stream into readings. Any goroutine may use it.
type Decoder struct {
	*schema
	codec      codec
	unpacker   *unpacker
	maxPayload int
	inputs     []*Decoder   // of a stream with inputs, in order
	topics     *ValueTopics // of the signals whose values have a topic each; nil: one signal, or another format
}

// LastID is the id of a label for the newest sample.
const LastID = "last"

// Inputs returns the decoders of a stream's inputs, in order; Reading.X has the signals of
// all of them. The decoder of the stream itself then reads nothing.
func (d *Decoder) Inputs() []*Decoder { return d.inputs }

// MaxPayload is the largest payload that the decoder reads, in bytes.
func (d *Decoder) MaxPayload() int { return d.maxPayload }

// codec reads one format. The payload is not empty and within the bounds of the
// stream. Time and memory are linear in it.
type codec interface {
	decode(payload []byte) ([]Reading, *Refusal)
}

// schema describes the payloads of a stream independently of their format.
type schema struct {
	names           []string       // names of the D features, or of the configured signals; empty for labels without features
	index           map[string]int // of each feature, by name
	paths           []string       // paths of the features; nil if their names are their keys
	keyed           string         // the first path that begins with a key, not with an index of an array; "": none
	columns         []string       // columns of a line; nil: the features in order
	reserved        map[string]bool
	id, time, label string
	maxBatch        int
	scanned         bool // the scanner may read payloads of JSON
	lenient         bool // some features may be missing, but not all
	labels          LabelMap
	ignored         LabelMap // words of a state that say nothing; nil: none
	last            bool     // a label without an id is that of the newest sample
	signals         *signals // nil: the payloads have features
	batchPath       string   // of the array with the entries; "": none
	members         bool     // the entries are the members of the object there, "": of the payload
	marks           marks    // by which entries are selected, and named; nil: none
}

// NewDecoder returns the decoder of a stream's payloads.
func NewDecoder(s Stream) (*Decoder, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("codec: decoder: %w", err)
	}
	if len(s.Raw.Inputs) == 0 {
		return newDecoder(s, s, 0)
	}
	d := &Decoder{schema: &schema{signals: newSignals(s, Stream{}, 0)}, codec: noCodec{}, unpacker: &unpacker{}, maxPayload: int(s.MaxPayload)}
	at := 0
	for _, in := range s.Raw.Inputs {
		from := s.From(in)
		of, err := newDecoder(s, from, at)
		if err != nil {
			return nil, err
		}
		d.inputs = append(d.inputs, of)
		at += len(from.SignalNames())
	}
	return d, nil
}

// newDecoder returns the decoder of a stream, or of its input from, whose signals begin at
// index at of the stream's.
func newDecoder(s, from Stream, at int) (*Decoder, error) {
	sh := newSchema(s, from, at)
	d := &Decoder{schema: sh, maxPayload: int(from.MaxPayload)}
	var err error
	switch from.Format {
	case FormatJSON:
		d.codec = jsonCodec{sh}
	case FormatCBOR:
		d.codec, err = newCBORCodec(sh)
	case formatFloat32:
		d.codec = rawCodec{sh, 4}
	case formatFloat64:
		d.codec = rawCodec{sh, 8}
	case formatInflux:
		d.codec = newInfluxCodec(sh)
	case formatCSV:
		d.codec = newCSVCodec(sh)
	case FormatValue:
		d.codec = valueCodec{sh}
		if sh.signals != nil && (len(sh.names) > 1 || len(from.Fields) > 0) {
			d.topics = NewValueTopics(sh.names, from)
		}
	}
	if err == nil {
		d.unpacker, err = newUnpacker(from.Compression, d.maxPayload)
	}
	if err != nil {
		return nil, fmt.Errorf("codec: decoder: %w", err)
	}
	return d, nil
}

func newSchema(s, from Stream, at int) *schema {
	sh := &schema{
		names: from.Stage.Signals, index: map[string]int{}, reserved: map[string]bool{}, columns: from.Columns,
		id: from.ID, time: from.Time, label: from.Label, maxBatch: s.MaxBatch, marks: newMarks(from.Entries),
		lenient: s.OnMissing != OnMissingReject, labels: NewLabelMap(s.LabelMap),
	}
	sh.batchPath, sh.members = from.Entries.batch()
	if len(sh.names) > 0 {
		sh.signals, sh.id = newSignals(s, from, at), ""
	} else {
		sh.names = s.FeatureNames()
	}
	for i, name := range sh.names {
		sh.index[name] = i
		if len(from.Fields) > 0 {
			path := from.pathOf(name)
			if sh.paths = append(sh.paths, path); sh.keyed == "" && beginsWithKey(path) {
				sh.keyed = path
			}
		}
	}
	for _, key := range from.reserved() {
		sh.reserved[key] = true
	}
	sh.scanned = sh.scannable()
	return sh
}

// noCodec is the codec of a stream whose inputs have decoders.
type noCodec struct{}

func (noCodec) decode([]byte) ([]Reading, *Refusal) {
	return nil, Refuse(Unrouted, "no input of the stream has this topic")
}

// NewLabelDecoder returns the decoder of messages that hold only labels.
func NewLabelDecoder(l Labels) *Decoder {
	s := DefaultStream()
	sh := &schema{id: l.ID, time: s.Time, label: l.Label, maxBatch: s.MaxBatch, batchPath: s.Entries.Batch, marks: newMarks(Entries{Device: l.Device}), labels: NewLabelMap(l.Map), ignored: ignoredWords(l.Ignore), last: l.Last || l.Sticky}
	if l.Sticky {
		sh.id = ""
	}
	return &Decoder{schema: sh, codec: labelCodec{jsonCodec{sh}}, unpacker: &unpacker{}, maxPayload: int(s.MaxPayload)}
}

// Decode returns the readings of a payload, or a *Refusal of the whole payload: a
// batch with one bad entry is refused as a whole, because the meaning of an entry may
// depend on the others. Time and memory are linear in the allowed size of a payload,
// compressed or not.
func (d *Decoder) Decode(payload []byte) ([]Reading, error) {
	return d.DecodeTo(new(Scratch), payload)
}

// Scratch is reusable memory for the readings of one payload. The zero value is ready.
type Scratch struct {
	readings []Reading
	x        []float64
	absent   []bool
}

// DecodeTo is Decode with reusable memory, so that it allocates nothing for most
// payloads. The readings are valid until the next use of the scratch.
func (d *Decoder) DecodeTo(s *Scratch, payload []byte) ([]Reading, error) {
	payload, err := d.open(payload)
	if err != nil {
		return nil, err
	}
	if c, ok := d.codec.(jsonCodec); ok && c.scanned {
		if r, ok := c.scan(payload, s.x); ok {
			s.readings, s.x = append(s.readings[:0], r), r.X
			return s.readings, nil
		}
	}
	readings, refusal := d.codec.decode(payload)
	if refusal != nil {
		return nil, refusal
	}
	return readings, nil
}

// open returns an unpacked payload that is not empty.
func (d *Decoder) open(payload []byte) ([]byte, *Refusal) {
	if len(payload) > d.maxPayload {
		return nil, Refuse(TooLarge, "more than %s: max_payload of a stream", field.ByteSize(d.maxPayload))
	}
	payload, err := d.unpacker.unpack(payload)
	if err != nil {
		return nil, err
	}
	_, raw := d.codec.(rawCodec)
	_, binary := d.codec.(*cborCodec)
	if kind := packed(payload); kind != "" && !raw {
		return nil, Refuse(Malformed, "compressed by %s: a stream with compression: %s, or auto, reads it", kind, kind)
	}
	if !raw && !binary {
		if payload = plainText(payload); isUTF16(payload) {
			return nil, Refuse(Malformed, "the text is UTF-16, which is not read: want UTF-8")
		}
	}
	blank := len(payload) == 0 || !raw && len(bytes.TrimSpace(payload)) == 0
	if _, value := d.codec.(valueCodec); blank && !(value && d.signals != nil) { // a signal's value may be missing
		return nil, Refuse(Empty, "no payload")
	}
	return payload, nil
}

// plainText returns a text without a byte order mark before it, as in files, and zeros behind it, as
// in buffers of C. A text of JSON that holds an object or an array is that, as senders that encode
// twice have it.
func plainText(text []byte) []byte {
	text = bytes.TrimRight(bytes.TrimPrefix(text, []byte("\ufeff")), "\x00")
	if inner := bytes.TrimLeft(text, " \t\r\n"); bytes.HasPrefix(inner, []byte(`"{`)) || bytes.HasPrefix(inner, []byte(`"[`)) {
		if v := gjson.ParseBytes(inner); gjson.ValidBytes(inner) && opened(v).Type == gjson.JSON {
			return []byte(v.Str)
		}
	}
	return text
}

// isUTF16 reports whether a text begins with a byte order mark of UTF-16, or with a letter and a zero byte.
func isUTF16(text []byte) bool {
	if len(text) < 2 {
		return false
	}
	a, b := text[0], text[1]
	return a^b == 1 && a|b == 0xff || (a == 0 || b == 0) && (a|b)-' ' <= '~'-' '
}

// NamedTime returns the path of the time in objects where it is not the default: the
// configuration names it.
func (d *Decoder) NamedTime() string {
	switch d.codec.(type) {
	case jsonCodec, *cborCodec:
		if d.time != DefaultStream().Time {
			return d.time
		}
	}
	return ""
}

// setID sets the identity of a reading.
func (s *schema) setID(r *Reading, text string) *Refusal {
	if text == "" || len(text) > maxID {
		return Refuse(BadID, "%s has %d bytes: want 1 to %d", s.id, len(text), maxID)
	}
	r.ID = strings.Clone(text)
	return nil
}

// setWeight sets the weight of a reading's label. In a payload with configured paths
// the key may have another meaning, and is ignored.
func (s *schema) setWeight(r *Reading, text string) *Refusal {
	if r.Label == "" || s.paths != nil {
		return nil
	}
	w, err := decimal(text)
	if err != nil || !(w > 0 && w <= online.MaxWeight) {
		return Refuse(BadWeight, "weight is %.40s: want a number above 0, at most %d", text, online.MaxWeight)
	}
	if w != 1 {
		r.Weight = w
	}
	return nil
}

// setTime passes a time on, as a number if it is one, unless it is too long. That of a row is
// passed on nevertheless, for the stage to refuse.
func (s *schema) setTime(r *Reading, text string) {
	switch {
	case text == "" || len(text) > maxTime && s.signals == nil:
	case gjson.Valid(text) && gjson.Parse(text).Type == gjson.Number:
		r.RawTime = strings.Clone(text)
	default:
		r.RawTime = string(gjson.AppendJSONString(nil, text))
	}
}

// fillMissing sets absent features to NaN, or refuses the sample.
func (s *schema) fillMissing(x []float64, have []bool) *Refusal {
	n := 0
	for i, ok := range have {
		switch {
		case ok:
			n++
		case !s.lenient:
			return Refuse(MissingFeature, "feature %.40q is missing%s", s.names[i], s.without())
		default:
			x[i] = math.NaN()
		}
	}
	if n == 0 {
		return Refuse(MissingFeature, "no feature has a value")
	}
	return nil
}

// tooMany refuses a payload with more rows, samples or labels than max_batch.
func (s *schema) tooMany() *Refusal {
	return Refuse(TooLarge, "more than %d rows or samples in a payload: max_batch of the stream", s.maxBatch)
}

// without is the remedy where a sample lacks a feature, "" where features may be missing.
func (s *schema) without() string {
	if s.lenient {
		return ""
	}
	return "; on_missing: marginalise or impute predicts without"
}

// spreadLines is spread for lines of text. It returns nil for a stream without signals.
func (s *schema) spreadLines(list []Reading) *Refusal {
	if s.signals == nil {
		return nil
	}
	return s.spread(list, s.signals.rate.Hz)
}

// PlainName returns the name of the column or field that a path means, in which a backslash is
// not needed before a dot.
func PlainName(path string) string {
	if !strings.Contains(path, `\`) {
		return path
	}
	return strings.Join(splitPath(path), ".")
}

var errRange = errors.New("beyond the range of a float64")

// decimal returns the float64 nearest to a decimal number; hexadecimal numbers and
// NaN are errors.
func decimal(text string) (float64, error) {
	if text == "" || strings.Trim(text, "0123456789.eE+-") != "" {
		return 0, fmt.Errorf("%.40q is not a number", text)
	}
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case math.IsInf(v, 0):
		if strings.TrimPrefix(text, "-") == infinite {
			text = strings.Replace(text, infinite, "Infinity", 1)
		}
		return 0, fmt.Errorf("%.40s is %w", text, errRange)
	case err != nil:
		return 0, fmt.Errorf("%.40q is not a number", text)
	}
	return v, nil
}

// Refuse returns a refusal; its recipient sets the topic.
func Refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Err: fmt.Errorf(format, args...)}
}
