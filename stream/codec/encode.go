package codec

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"

	"github.com/fxamacker/cbor/v2"
	"github.com/tidwall/gjson"

	"edge/stream/field"
	"edge/stream/signal"
)

// Encoder writes rows of signals, or samples, as payloads of their stream, which its Decoder
// reads.
type Encoder struct {
	of     Stream
	names  []string // of the configured signals, or of the features
	device []string // levels of the device in the payload; first the names of the levels
}

// NewEncoder returns the encoder of a stream without inputs; that of an input is the one of
// the stream that Stream.From returns. Formats without names for their numbers have no id,
// no label and, as value has, no time.
func NewEncoder(s Stream) (*Encoder, error) {
	const other = "give the model a stream with format: json beside this one"
	names := s.Stage.Signals
	switch {
	case s.Format == formatInflux:
		return nil, fmt.Errorf("codec: encoder: payloads of format %s are not written: %s", s.Format, other)
	case s.Format == FormatValue && len(names) == 0:
		return nil, fmt.Errorf("codec: encoder: payloads of format %s, one for each feature, are not written: %s", s.Format, other)
	case s.Compression != compressionNone && s.Compression != compressionAuto:
		return nil, fmt.Errorf("codec: encoder: payloads with compression %s are not written: a stream with compression: auto reads them without", s.Compression)
	}
	if len(names) == 0 {
		names = s.FeatureNames()
	}
	return &Encoder{of: s, names: names, device: s.Entries.Device.Names()}, nil
}

// SetDevice sets the device of the payloads that follow. levels are those of its name; the payload
// has the last ones, and topic are the others.
func (e *Encoder) SetDevice(levels []string) (topic []string) {
	at := max(0, len(levels)-len(e.of.Entries.Device.levels()))
	e.device = levels[at:]
	return levels[:at]
}

// members returns what an entry needs at the paths of the device and of Where: texts by path.
func (e *Encoder) members() (all Paths) {
	for i, l := range e.of.Entries.Device.levels()[:len(e.device)] {
		if l.Path != Every {
			all = append(all, Path{l.Path, e.level(i)})
		}
	}
	for _, path := range field.Names(e.of.Entries.Where) {
		all = append(all, Path{path, e.of.Entries.Where[path][0]})
	}
	return all
}

// level returns a level of the device, without the escapes of appendLevel.
func (e *Encoder) level(i int) string {
	text, err := url.PathUnescape(e.device[i])
	if err != nil {
		return e.device[i]
	}
	return text
}

// member puts an entry into the object whose members are entries, where the stream has such a one.
// Its key is the device, or else entry.
func (e *Encoder) member(entry any) (any, error) {
	path, members := e.of.Entries.batch()
	if !members {
		return entry, nil
	}
	key := "entry"
	for i, l := range e.of.Entries.Device.levels()[:len(e.device)] {
		if l.Path == Every {
			key = e.level(i)
		}
	}
	entry = map[string]any{key: entry}
	if path == "" {
		return entry, nil
	}
	return put(nil, path, entry)
}

// NewLabelEncoder returns the encoder of messages that hold only labels.
func NewLabelEncoder(l Labels) *Encoder {
	return &Encoder{of: Stream{Format: FormatJSON, ID: l.ID, Label: l.Label, LabelMap: l.Map}}
}

// Timed reports whether the payloads have the time of their rows.
func (e *Encoder) Timed() bool { return e.has(e.of.Time) }

// Labelled reports whether the payloads have labels.
func (e *Encoder) Labelled() bool { return e.has(e.of.Label) }

// Labels returns the map by which a daemon reads the labels of the payloads.
func (e *Encoder) Labels() LabelMap { return NewLabelMap(e.of.LabelMap) }

// Identified reports whether the payloads have the ids of their samples.
func (e *Encoder) Identified() bool { return len(e.of.Stage.Signals) == 0 && e.has(e.of.ID) }

// has reports whether the payloads have a member beside the numbers.
func (e *Encoder) has(path string) bool {
	switch e.of.Format {
	case FormatValue, formatFloat32, formatFloat64:
		return false
	case formatCSV:
		return path != "" && slices.Contains(e.of.Columns, PlainName(path))
	}
	return path != ""
}

// Payload is a message of a row.
type Payload struct {
	Signal string // the only one that it has, of format value; "": all
	Data   []byte
}

// NoLabel is the label, for an Encoder and in a cell of CSV, of a row that has null as its label.
const NoLabel = "null"

// Row returns the messages of a row. cells has a text for each configured signal, as
// Decoder.Row takes it; at is in ns since 1970. An empty cell or label and a negative time
// are left out.
func (e *Encoder) Row(cells []string, at int64, label string) (all []Payload, err error) {
	if e.of.Format == FormatValue {
		for i, cell := range cells {
			if cell != "" {
				all = append(all, Payload{e.names[i], []byte(cell)})
			}
		}
		return all, nil
	}
	data, err := e.row(cells, at, label)
	return []Payload{{Data: data}}, err
}

// row returns the message of a row in a format other than value.
func (e *Encoder) row(cells []string, at int64, label string) ([]byte, error) {
	switch e.of.Format {
	case formatFloat32, formatFloat64:
		return e.numbers(cells)
	case formatCSV:
		return e.line(cells, "", seconds(at), label)
	}
	values := make([]any, len(cells))
	for i, cell := range cells {
		if cell != "" {
			values[i] = valueOf(cell)
		}
	}
	return e.object(values, "", at, label)
}

// Sample returns the message of a sample of D features, of which NaN is missing. Nil features
// leave the label of an earlier sample. An empty id or label is left out.
func (e *Encoder) Sample(id string, x []float64, label string) ([]byte, error) {
	cells, values := make([]string, len(e.names)), make([]any, len(e.names))
	for i, v := range x {
		values[i] = json.RawMessage("null")
		if v == v {
			cells[i] = strconv.FormatFloat(v, 'g', -1, 64)
			values[i] = json.RawMessage(cells[i])
		}
	}
	switch e.of.Format {
	case formatFloat32, formatFloat64:
		return e.numbers(cells)
	case formatCSV:
		return e.line(cells, id, "", label)
	}
	return e.object(values, id, -1, label)
}

// Rows returns one message with several rows, whose time is that of the last one. A
// cell that is empty has no value.
func (e *Encoder) Rows(rows [][]string, at int64, label string) (data []byte, err error) {
	switch e.of.Format {
	case FormatValue:
		return nil, fmt.Errorf("codec: encoder: a message of format %s has one value", e.of.Format)
	case formatFloat32, formatFloat64, formatCSV:
		for _, cells := range rows {
			one, err := e.row(cells, at, label)
			if err != nil {
				return nil, err
			}
			data = append(data, one...)
		}
		return data, nil
	}
	columns := make([]any, len(e.names))
	for i := range columns {
		column := make([]any, len(rows))
		for j, cells := range rows {
			if cells[i] != "" {
				column[j] = valueOf(cells[i])
			}
		}
		columns[i] = column
	}
	return e.object(columns, "", at, label)
}

// object writes an object of JSON or CBOR, or an array where the paths begin with entries of one. A
// value that is nil is left out.
func (e *Encoder) object(values []any, id string, at int64, label string) ([]byte, error) {
	type part struct {
		path  string
		value any
	}
	var parts []part
	for i, v := range values {
		if v != nil {
			parts = append(parts, part{e.of.pathOf(e.names[i]), v})
		}
	}
	for _, m := range e.members() {
		parts = append(parts, part{m.Name, valueOf(m.Path)})
	}
	if at >= 0 && e.of.Time != "" {
		var when any = json.RawMessage(seconds(at))
		if e.of.Format == FormatCBOR { // whose floats have no room for ns
			when = seconds(at)
		}
		parts = append(parts, part{e.of.Time, when})
	}
	if id != "" && e.of.ID != "" {
		parts = append(parts, part{e.of.ID, id})
	}
	if label == NoLabel && e.of.Label != "" {
		parts = append(parts, part{e.of.Label, json.RawMessage(label)})
	} else if label != "" && e.of.Label != "" {
		parts = append(parts, part{e.of.Label, label})
	}
	var root any
	var err error
	for _, p := range parts {
		if root, err = put(root, p.path, p.value); err != nil {
			return nil, err
		}
	}
	if root == nil {
		root = map[string]any{}
	}
	if root, err = e.member(root); err != nil {
		return nil, err
	}
	text, err := json.Marshal(root)
	if err != nil || e.of.Format == FormatJSON {
		return text, err
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	return cbor.Marshal(v)
}

// seconds returns a time in ns since 1970 as signal.Seconds does; "" for a negative one.
func seconds(at int64) string {
	if at < 0 {
		return ""
	}
	return signal.Seconds(at)
}

// valueOf returns a cell as JSON: a number, null, or a text.
func valueOf(cell string) any {
	if cell == "null" || isNumber(cell) {
		return json.RawMessage(cell)
	}
	return cell
}

// isNumber reports whether a text is a number of JSON.
func isNumber(text string) bool {
	return text != "" && (text[0] == '-' || text[0]-'0' <= 9) && gjson.Valid(text)
}

// put sets the value at a path in an object or an array, nil for one that there is not yet, and returns
// it. An index is an entry that is there, or the next one, where selections have made the array.
func put(in any, path string, v any) (any, error) {
	if path == "" {
		if v == any(Every) && in != nil { // any value that is there already
			return in, nil
		}
		return v, nil
	}
	step, rest, _ := cutStep(path)
	key, word, selects := selection(step)
	array, isArray := in.([]any)
	object, isObject := in.(map[string]any)
	switch n, err := strconv.Atoi(step); {
	case selects && (isArray || in == nil):
		at := slices.IndexFunc(array, func(entry any) bool { return entryHas(entry, key, word) })
		var entry any
		if at >= 0 {
			entry = array[at]
		} else if entry, err = put(nil, key, word); err != nil {
			return nil, err
		} else {
			at, array = len(array), append(array, nil)
		}
		array[at], err = put(entry, rest, v)
		return array, err
	case isArray && err == nil && n >= 0 && n <= len(array):
		if n == len(array) {
			array = append(array, nil)
		}
		array[n], err = put(array[n], rest, v)
		return array, err
	case selects || isArray || in != nil && !isObject:
		return nil, fmt.Errorf("codec: encoder: %s is within a value, or in an array: give the model a stream with format: json beside this one, or the path another place", path)
	}
	if object == nil {
		object = map[string]any{}
	}
	inner, err := put(object[literal(step)], rest, v)
	object[literal(step)] = inner
	return object, err
}

// entryHas reports whether an entry of an array has a word at a path.
func entryHas(entry any, key, word string) bool {
	text, err := json.Marshal(entry)
	got, ok := textOf(at(gjson.ParseBytes(text), key))
	return err == nil && ok && got == word
}

// line writes a line of CSV.
func (e *Encoder) line(cells []string, id, time, label string) ([]byte, error) {
	record := cells
	if len(e.of.Columns) > 0 {
		record = make([]string, len(e.of.Columns))
		for at, column := range e.of.Columns {
			switch column {
			case "":
			case PlainName(e.of.ID):
				record[at] = id
			case PlainName(e.of.Time):
				record[at] = time
			case PlainName(e.of.Label):
				record[at] = label
			}
			for _, m := range e.members() {
				if PlainName(m.Name) == column {
					record[at] = m.Path
				}
			}
			for i, name := range e.names {
				if path := e.of.Fields[name]; path != "" {
					name = PlainName(path)
				}
				if name == column {
					record[at] = cells[i]
				}
			}
		}
	}
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if err := w.Write(record); err != nil {
		return nil, err
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// numbers writes raw numbers.
func (e *Encoder) numbers(cells []string) ([]byte, error) {
	var b []byte
	for i, cell := range cells {
		v := math.NaN()
		if cell != "" && cell != "null" {
			var err error
			if v, err = strconv.ParseFloat(cell, 64); err != nil {
				return nil, fmt.Errorf("codec: encoder: signal %.40q is %.40q, which is no number", e.names[i], cell)
			}
		}
		if e.of.Format == formatFloat32 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)))
		} else {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	return b, nil
}
