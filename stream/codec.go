package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"edge/online"
)

const (
	maxDepth = 16  // of nested arrays and objects
	maxID    = 128 // bytes of an id
	maxTime  = 64  // bytes of a time that is passed through
)

// Reading is one entry of a payload: a sample, or a label that comes later
// than its sample (X is nil then).
type Reading struct {
	ID     string    // as text; "" if it has none
	X      []float64 // D features in the stream's order; finite
	Label  string    // "" if it has none
	Source string    // who gave the label, if the payload says so

	rawID, rawTime string // as they came, valid JSON; "" if absent
}

// Decoder turns the payloads of one stream into readings. Any number of
// goroutines may use it.
type Decoder struct {
	names           []string       // of the D features; none where labels come alone
	index           map[string]int // of a feature's name
	paths           []string       // of the features; nil where their names are their keys
	reserved        map[string]bool
	id, time, label string
	maxPayload      int
	maxBatch        int
}

// NewDecoder returns the decoder of a stream's payloads.
func NewDecoder(s Stream) (*Decoder, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("stream: decoder: %w", err)
	}
	d := &Decoder{
		names: s.FeatureNames(), index: map[string]int{}, reserved: map[string]bool{},
		id: s.ID, time: s.Time, label: s.Label, maxPayload: int(s.MaxPayload), maxBatch: s.MaxBatch,
	}
	for i, name := range d.names {
		d.index[name] = i
		if len(s.Fields) > 0 {
			d.paths = append(d.paths, s.pathOf(name))
		}
	}
	for _, key := range s.reserved() {
		d.reserved[key] = true
	}
	return d, nil
}

// newLabelDecoder returns the decoder of messages that hold labels alone.
func newLabelDecoder(l Labels) *Decoder {
	s := DefaultStream()
	return &Decoder{id: l.ID, time: s.Time, label: l.Label, maxPayload: int(s.MaxPayload), maxBatch: s.MaxBatch}
}

// Decode returns the readings of a payload, or a *Refusal of all of it: a
// batch with one bad entry is refused as a whole, because what an entry means
// may depend on its neighbours. Time and memory are linear in the payload.
func (d *Decoder) Decode(payload []byte) ([]Reading, error) {
	if len(payload) > d.maxPayload {
		return nil, refuse(TooLarge, "more than %s", ByteSize(d.maxPayload))
	}
	if len(bytes.TrimSpace(payload)) == 0 {
		return nil, refuse(Empty, "no payload")
	}
	if err := checkJSON(payload); err != nil {
		return nil, err
	}
	root := gjson.ParseBytes(payload)
	if key := repeatedKey(root); key != "" {
		return nil, refuse(Repeated, "key %.40q occurs twice", key)
	}
	entries := root.Get("batch")
	if !root.IsObject() || !entries.Exists() || d.reads("batch") {
		r, err := d.reading(root)
		if err != nil {
			return nil, err
		}
		return []Reading{r}, nil
	}
	return d.batch(root, entries)
}

// reads reports whether the key belongs to the payload's own shape as the
// configuration describes it.
func (d *Decoder) reads(key string) bool {
	for _, path := range d.paths {
		if firstKey(path) == key {
			return true
		}
	}
	return firstKey(d.id) == key || firstKey(d.time) == key || firstKey(d.label) == key
}

func (d *Decoder) batch(root, entries gjson.Result) ([]Reading, error) {
	if !entries.IsArray() {
		return nil, refuse(NotJSON, "batch is not an array")
	}
	if d.paths == nil && len(d.names) > 0 {
		for key := range root.Keys() {
			if key.Str != "batch" {
				return nil, refuse(UnknownFeature, "key %.40q beside batch", key.Str)
			}
		}
	}
	var readings []Reading
	for _, entry := range entries.All() {
		if len(readings) == d.maxBatch {
			return nil, refuse(TooLarge, "more than %d entries in a batch", d.maxBatch)
		}
		r, err := d.reading(entry)
		if err != nil {
			err.Err = fmt.Errorf("entry %d: %w", len(readings), err.Err)
			return nil, err
		}
		readings = append(readings, r)
	}
	if len(readings) == 0 {
		return nil, refuse(Empty, "a batch without entries")
	}
	return readings, nil
}

// reading decodes one object, or one array of numbers.
func (d *Decoder) reading(v gjson.Result) (r Reading, err *Refusal) {
	switch {
	case v.IsArray() && len(d.names) > 0:
		r.X, err = d.array(v)
		return r, err
	case !v.IsObject():
		return r, refuse(NotJSON, "want an object or an array, not %s", kind(v))
	}
	if err = d.identity(&r, v); err != nil {
		return r, err
	}
	if len(d.names) == 0 { // labels come alone here; what else is in the message does not matter
		switch {
		case r.Label == "":
			err = refuse(BadLabel, "%s is missing", d.label)
		case r.ID == "":
			err = refuse(BadID, "%s is missing", d.id)
		}
		return r, err
	}
	if d.paths != nil {
		r.X, err = d.nested(v)
	} else if f := v.Get("features"); f.Exists() {
		if err = d.onlyReserved(v); err != nil {
			return r, err
		}
		if f.IsArray() {
			r.X, err = d.array(f)
		} else if f.IsObject() {
			r.X, err = d.object(f, false)
		} else {
			err = refuse(NotANumber, "features is %s: want an object or an array", kind(f))
		}
	} else {
		r.X, err = d.object(v, true)
	}
	if err != nil && err.Reason == MissingFeature && r.X == nil && r.Label != "" {
		// No feature at all, but a label: it belongs to an earlier sample.
		if r.ID == "" {
			return r, refuse(BadID, "a label without features and without %s", d.id)
		}
		return r, nil
	}
	return r, err
}

// identity reads id, time, label, source and weight.
func (d *Decoder) identity(r *Reading, v gjson.Result) *Refusal {
	switch id := v.Get(d.id); id.Type {
	case gjson.Null:
	case gjson.String, gjson.Number:
		text := id.Str
		if id.Type == gjson.Number {
			text = id.Raw
		}
		if text == "" || len(text) > maxID {
			return refuse(BadID, "%s has %d bytes: want 1 to %d", d.id, len(text), maxID)
		}
		r.ID, r.rawID = strings.Clone(text), strings.Clone(id.Raw)
	default:
		return refuse(BadID, "%s is %s: want a text or a number", d.id, kind(id))
	}
	if t := v.Get(d.time); (t.Type == gjson.String || t.Type == gjson.Number) && len(t.Raw) <= maxTime {
		r.rawTime = strings.Clone(t.Raw)
	}
	switch label := v.Get(d.label); {
	case label.Type == gjson.Null:
	case label.Type != gjson.String:
		return refuse(BadLabel, "%s is %s: want a text", d.label, kind(label))
	case label.Str == "" || len(label.Str) > online.MaxLabel:
		return refuse(BadLabel, "%s has %d bytes: want 1 to %d", d.label, len(label.Str), online.MaxLabel)
	case strings.ContainsFunc(label.Str, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return refuse(BadLabel, "%s has a control character", d.label)
	default:
		r.Label = strings.Clone(label.Str)
	}
	if s := v.Get("source"); s.Type == gjson.String && len(s.Str) <= maxID {
		r.Source = strings.Clone(s.Str)
	}
	if w := v.Get("weight"); r.Label != "" && d.paths == nil && w.Exists() && (w.Type != gjson.Number || w.Num != 1) {
		return refuse(BadLabel, "weight is %.40s: only 1 is possible", w.Raw)
	}
	return nil
}

// array decodes D numbers.
func (d *Decoder) array(v gjson.Result) ([]float64, *Refusal) {
	x := make([]float64, 0, len(d.names))
	for _, e := range v.All() {
		if len(x) == len(d.names) {
			return nil, refuse(WrongDimension, "more than %d numbers", len(d.names))
		}
		n, err := number(e)
		if err != nil {
			return nil, refuse(NotANumber, "number %d: %w", len(x), err)
		}
		x = append(x, n)
	}
	if len(x) != len(d.names) {
		return nil, refuse(WrongDimension, "%d numbers, want %d", len(x), len(d.names))
	}
	return x, nil
}

// object decodes an object of features; flat says that the reserved keys are
// beside them. The returned features are nil if there was none at all.
func (d *Decoder) object(v gjson.Result, flat bool) ([]float64, *Refusal) {
	var (
		x    = make([]float64, len(d.names))
		have = make([]bool, len(d.names))
		n    int
	)
	for key, e := range v.All() {
		i, ok := d.index[key.Str]
		if !ok {
			if flat && d.reserved[key.Str] {
				continue
			}
			return x, refuse(UnknownFeature, "key %.40q is not a feature", key.Str)
		}
		value, err := number(e)
		if err != nil {
			return x, refuse(NotANumber, "feature %.40q: %w", key.Str, err)
		}
		x[i], have[i] = value, true
		n++
	}
	if n == 0 && flat {
		return nil, refuse(MissingFeature, "no features")
	}
	for i, ok := range have {
		if !ok {
			return x, refuse(MissingFeature, "feature %.40q is missing", d.names[i])
		}
	}
	return x, nil
}

// nested decodes features by their paths. The returned features are nil if
// there was none at all.
func (d *Decoder) nested(v gjson.Result) ([]float64, *Refusal) {
	var (
		x       = make([]float64, len(d.paths))
		missing = -1
		n       int
	)
	for i, path := range d.paths {
		e := v.Get(path)
		if !e.Exists() {
			if missing < 0 {
				missing = i
			}
			continue
		}
		value, err := number(e)
		if err != nil {
			return x, refuse(NotANumber, "feature %.40q at %s: %w", d.names[i], path, err)
		}
		x[i] = value
		n++
	}
	if missing >= 0 {
		if n == 0 {
			x = nil
		}
		return x, refuse(MissingFeature, "feature %.40q is missing at %s", d.names[missing], d.paths[missing])
	}
	return x, nil
}

// onlyReserved refuses an object with a key that is not the payload's own.
func (d *Decoder) onlyReserved(v gjson.Result) *Refusal {
	for key := range v.Keys() {
		if !d.reserved[key.Str] {
			return refuse(UnknownFeature, "key %.40q beside features", key.Str)
		}
	}
	return nil
}

// number returns the float64 nearest to a JSON number.
func number(v gjson.Result) (float64, error) {
	if v.Type != gjson.Number {
		return 0, fmt.Errorf("%s is not a number", kind(v))
	}
	n, err := strconv.ParseFloat(v.Raw, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40s is beyond the range of a float64", v.Raw)
	}
	return n, nil
}

// kind words a JSON value for an error.
func kind(v gjson.Result) string {
	switch {
	case v.IsObject():
		return "an object"
	case v.IsArray():
		return "an array"
	case v.Type == gjson.String:
		return fmt.Sprintf("the text %.40q", v.Str)
	case v.Type == gjson.Number:
		return fmt.Sprintf("the number %.40s", v.Raw)
	}
	return v.Raw // null, true, false
}

// checkJSON refuses what is not JSON or is nested too deeply, before anything
// that recurses looks at it.
func checkJSON(payload []byte) error {
	var (
		depth, deepest  int
		inText, escaped bool
		notFinite       bool // NaN or Infinity, as careless writers have it
	)
	for i, c := range payload {
		switch {
		case escaped:
			escaped = false
		case inText:
			inText, escaped = c != '"', c == '\\'
		case c == '"':
			inText = true
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		case c == 'N' || c == 'I':
			notFinite = notFinite || bytes.HasPrefix(payload[i:], []byte("NaN")) || bytes.HasPrefix(payload[i:], []byte("Infinity"))
		}
	}
	if deepest > maxDepth {
		return refuse(NotJSON, "nested more than %d deep", maxDepth)
	}
	if !utf8.Valid(payload) {
		return refuse(NotJSON, "not valid UTF-8")
	}
	if gjson.ValidBytes(payload) {
		return nil
	}
	if notFinite {
		return refuse(NotANumber, "NaN and Infinity are not JSON")
	}
	err := json.Unmarshal(payload, new(json.RawMessage)) // only for its words
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return refuse(NotJSON, "byte %d: %w", syntax.Offset, err)
	}
	return refuse(NotJSON, "not valid JSON")
}

// repeatedKey returns a key that occurs twice in one object of the payload: two
// readers of such a payload need not agree on what it says.
func repeatedKey(v gjson.Result) string {
	if !strings.Contains(v.Raw, "{") {
		return ""
	}
	const few = 32 // keys that are compared one by one
	var (
		list []string
		set  map[string]bool
	)
	for key, e := range v.All() {
		if v.IsObject() {
			if set == nil {
				for _, k := range list {
					if k == key.Str {
						return k
					}
				}
				list = append(list, key.Str)
				if len(list) > few {
					set = make(map[string]bool, 4*few)
					for _, k := range list {
						set[k] = true
					}
				}
			} else if set[key.Str] {
				return key.Str
			} else {
				set[key.Str] = true
			}
		}
		if e.IsObject() || e.IsArray() {
			if key := repeatedKey(e); key != "" {
				return key
			}
		}
	}
	return ""
}

// refuse returns a refusal whose topic is filled in by whoever knows it.
func refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Err: fmt.Errorf(format, args...)}
}
