package codec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// severalObjects is the remedy for several samples, or labels, in a message.
const severalObjects = `several objects in a message are {"batch":[{…},{…}]}, or under another key that batch names`

// maxDepth bounds nested arrays and objects.
const maxDepth = 16

// jsonCodec reads JSON (RFC 8259).
type jsonCodec struct{ *schema }

// decode reads a payload of any permitted shape.
func (c jsonCodec) decode(payload []byte) ([]Reading, *Refusal) {
	if err := CheckJSON(payload); err != nil {
		return nil, c.another(payload, err)
	}
	root := gjson.ParseBytes(payload)
	if !root.IsObject() && !root.IsArray() && len(c.names) > 0 {
		return nil, Refuse(Malformed, "want an object or an array, not %s; format: value reads a text that is one value", kind(root))
	}
	if c.signals != nil {
		return c.rows(root)
	}
	found := c.marks.find(root, nil)
	if entries, ok := c.batchOf(root); ok {
		return c.batch(root, entries, found)
	}
	return c.entry(nil, root, found)
}

// entry appends the reading of one entry, whose members were found, if it is selected.
func (c jsonCodec) entry(readings []Reading, v gjson.Result, found []gjson.Result) ([]Reading, *Refusal) {
	text := c.marks.texts(found)
	if !c.marks.selects(text) {
		return readings, nil
	}
	if len(readings) == c.maxBatch {
		return nil, c.tooMany()
	}
	r, err := c.reading(v)
	if err == nil && (r.X != nil || len(c.names) == 0) {
		r.Device, err = c.marks.device(text, func() string { return keysOf(v) })
	}
	if err != nil {
		return nil, err
	}
	return append(readings, r), nil
}

// another adds the remedy to the refusal of a payload that begins as no JSON of a sample does.
func (c jsonCodec) another(payload []byte, err *Refusal) *Refusal {
	text := bytes.TrimSpace(payload)
	switch {
	case len(c.names) == 0:
		return err
	case !utf8.Valid(payload) || text[0] < ' ':
		return notText(payload)
	case strings.IndexByte("{[\"", text[0]) >= 0:
		return err
	}
	if pair, _, form := bytes.Cut(text, []byte("&")); form && bytes.IndexByte(pair, '=') > 0 { // as weather stations of Ecowitt post it
		return Refuse(Malformed, "a form of KEY=VALUE&KEY=VALUE, which is not read%s", way)
	}
	if text[0] == '<' {
		return Refuse(Malformed, "it looks like XML or HTML, which is not read%s", way)
	}
	return Refuse(err.Reason, "%w; is it of another format? value is one word or number, csv cells, influx line protocol", err.Err)
}

// reading decodes one object, or one array of numbers.
func (c jsonCodec) reading(v gjson.Result) (r Reading, err *Refusal) {
	switch {
	case v.IsArray() && len(c.names) > 0 && c.paths == nil:
		r.X, err = c.array(v)
		return r, err
	case v.IsArray() && c.paths != nil:
		if err = c.indexed(); err != nil {
			return r, err
		}
	case !v.IsObject() && len(c.names) == 0:
		return r, Refuse(Malformed, "want an object, not %s", kind(v))
	case !v.IsObject():
		return r, Refuse(Malformed, "want an object or an array, not %s", kind(v))
	}
	if err = c.identity(&r, v); err != nil {
		return r, err
	}
	if len(c.names) == 0 { // labels only: other members are ignored
		switch {
		case r.Label == "":
			err = c.noLabel(v)
		case r.ID == "" && c.last:
			r.ID = LastID
		case r.ID == "":
			err = Refuse(BadID, "%s is missing: the object has %s; the id %q stands for the newest sample", c.id, keysOf(v), LastID)
		}
		return r, err
	}
	if c.paths != nil {
		r.X, err = c.nested(v)
	} else if f := v.Get("features"); f.Exists() {
		if err = c.onlyReserved(v); err != nil {
			return r, err
		}
		if f.IsArray() {
			r.X, err = c.array(f)
		} else if f.IsObject() {
			r.X, err = c.object(f, false)
		} else {
			err = Refuse(NotANumber, "features is %s: want an object or an array", kind(f))
		}
	} else {
		r.X, err = c.object(v, true)
	}
	if err != nil && err.Reason == MissingFeature && r.X == nil && r.Label != "" && c.id != "" {
		// The label has no features: it belongs to an earlier sample.
		if r.ID == "" {
			return r, Refuse(BadID, "a label without features and without %s", c.id)
		}
		return r, nil
	}
	return r, err
}

// noLabel refuses an object of a label that has none.
func (c jsonCodec) noLabel(v gjson.Result) *Refusal {
	if at(v, c.label).Exists() { // null
		return Refuse(BadLabel, "%s is missing", c.label)
	}
	return Refuse(BadLabel, "%s is missing: the object has %s; label: KEY in an entry of labels reads another key", c.label, cmp.Or(keysOf(v), "no members"))
}

// indexed refuses an array in which a path finds nothing, because it begins with a key.
func (s *schema) indexed() *Refusal {
	if s.keyed == "" {
		return nil
	}
	return Refuse(Malformed, "an array, but fields has the path %s: want an object, or paths that begin with an index or with [KEY=WORD]; without fields an array has all values in order", s.keyed)
}

// identity reads id, time, label, source and weight.
func (c jsonCodec) identity(r *Reading, v gjson.Result) *Refusal {
	var id gjson.Result // null
	if c.id != "" {
		id = at(v, c.id)
	}
	switch id.Type {
	case gjson.Null:
	case gjson.String, gjson.Number:
		text := id.Str
		if id.Type == gjson.Number {
			text = id.Raw
		}
		if err := c.setID(r, text); err != nil {
			return err
		}
		r.RawID = strings.Clone(id.Raw)
	default:
		return Refuse(BadID, "%s is %s: want a text or a number", c.id, kind(id))
	}
	if c.time != "" {
		c.setRawTime(r, at(v, c.time))
	}
	if c.label == "" {
		return nil
	}
	label := at(v, c.label)
	if label.Type != gjson.Null {
		if err := c.setLabelValue(r, label); err != nil {
			return err
		}
	}
	if c.signals != nil { // whose payloads may have other members of these names
		r.Null = r.Null || label.Type == gjson.Null && label.Exists()
		return nil
	}
	if s := v.Get(cellSource); s.Type == gjson.String && len(s.Str) <= maxID {
		r.Source = strings.Clone(s.Str)
	}
	if w := v.Get(cellWeight); w.Exists() {
		return c.setWeight(r, w.Raw)
	}
	return nil
}

// setRawTime passes on a time of JSON, unless it is of another kind or too long. That of a row
// is passed on nevertheless, for the stage to refuse.
func (s *schema) setRawTime(r *Reading, t gjson.Result) {
	if (t.Type == gjson.String || t.Type == gjson.Number) && len(t.Raw) <= maxTime || s.signals != nil && t.Type != gjson.Null {
		r.RawTime = strings.Clone(t.Raw)
	}
}

// setLabelValue sets the label of a reading; the value is not null.
func (c jsonCodec) setLabelValue(r *Reading, label gjson.Result) *Refusal {
	switch label.Type {
	case gjson.String:
		if err := CheckText(label); err != nil {
			return Refuse(BadLabel, "%s %w", c.label, err)
		}
		return c.setLabel(r, label.Str)
	case gjson.Number:
		return c.setLabelNumber(r, label.Raw)
	case gjson.True, gjson.False:
		return c.setLabel(r, label.Raw)
	}
	return Refuse(BadLabel, "%s is %s: want a text, a whole number, true or false", c.label, kind(label))
}

// array decodes D numbers.
func (c jsonCodec) array(v gjson.Result) ([]float64, *Refusal) {
	x, have := make([]float64, 0, len(c.names)), make([]bool, len(c.names))
	for _, e := range v.All() {
		if len(x) == len(c.names) {
			return nil, Refuse(WrongDimension, "more than %d numbers", len(c.names))
		}
		n, err := number(e)
		if err != nil && !c.absent(e) {
			return nil, Refuse(NotANumber, "feature %.40q: %w%s", c.names[len(x)], err, c.withoutNull(e))
		}
		have[len(x)] = err == nil
		x = append(x, n)
	}
	if len(x) != len(c.names) {
		return nil, Refuse(WrongDimension, "%d numbers, want %d", len(x), len(c.names))
	}
	return x, c.fillMissing(x, have)
}

// object decodes an object of features; in a flat object the reserved keys are beside
// them. The returned features are nil if the object has no feature.
func (c jsonCodec) object(v gjson.Result, flat bool) ([]float64, *Refusal) {
	var (
		x    = make([]float64, len(c.names))
		have = make([]bool, len(c.names))
		n    int
	)
	for key, e := range v.All() {
		i, ok := c.index[key.Str]
		if !ok {
			if flat && c.reserved[key.Str] {
				continue
			}
			return x, c.unknownKey(key.Str)
		}
		value, err := number(e)
		if err != nil && !c.absent(e) {
			return x, Refuse(NotANumber, "feature %.40q: %w%s", key.Str, err, c.withoutNull(e))
		}
		x[i], have[i] = value, err == nil
		n++
	}
	if n == 0 && flat {
		return nil, Refuse(MissingFeature, "no features")
	}
	return x, c.fillMissing(x, have)
}

// nested decodes features by their paths. The returned features are nil if no path
// exists.
func (c jsonCodec) nested(v gjson.Result) ([]float64, *Refusal) {
	x, have := make([]float64, len(c.paths)), make([]bool, len(c.paths))
	missing, n := -1, 0
	var inner texts
	for i, path := range c.paths {
		e := inner.at(v, path)
		if !e.Exists() {
			if missing < 0 {
				missing = i
			}
			continue
		}
		n++
		value, err := number(e)
		if err != nil && !c.absent(e) {
			return x, Refuse(NotANumber, "feature %.40q at %s: %w%s", c.names[i], path, err, c.withoutNull(e))
		}
		x[i], have[i] = value, err == nil
	}
	if n == 0 {
		return nil, c.noFeature(v)
	}
	if missing >= 0 && !c.lenient {
		return x, Refuse(MissingFeature, "feature %.40q is missing at %s%s", c.names[missing], c.paths[missing], c.without())
	}
	return x, c.fillMissing(x, have)
}

// noFeature refuses an object in which no path finds a feature.
func (c jsonCodec) noFeature(v gjson.Result) *Refusal {
	others := ""
	if len(c.paths) > 1 {
		others = ", and so are the others"
	}
	return Refuse(MissingFeature, "feature %.40q is missing at %s%s: the payload has %s; a path in fields finds a feature under another key%s",
		c.names[0], c.paths[0], others, cmp.Or(keysOf(v), "no members"), c.suchAs(v))
}

// absent reports whether a value marks a missing feature, and features may be missing.
func (c jsonCodec) absent(v gjson.Result) bool { return c.lenient && v.Type == gjson.Null }

// withoutNull returns the advice for a value that is null where features may not be missing.
func (c jsonCodec) withoutNull(v gjson.Result) string {
	if v.Type != gjson.Null {
		return ""
	}
	return c.without()
}

// onlyReserved refuses an object with a key that is not reserved.
func (c jsonCodec) onlyReserved(v gjson.Result) *Refusal {
	for key := range v.Keys() {
		if !c.reserved[key.Str] {
			return Refuse(UnknownFeature, "key %.40q beside features; paths in fields, such as features.NAME, ignore other keys", key.Str)
		}
	}
	return nil
}

// number returns the float64 nearest to a JSON number.
func number(v gjson.Result) (float64, error) {
	switch v.Type {
	case gjson.Number:
	case gjson.Null: // also of CBOR
		return 0, errors.New("null or NaN is not a number")
	case gjson.String, gjson.True, gjson.False:
		if holdsJSON(v.Str) {
			return 0, errors.New("it is JSON in a text: " + goOn)
		}
		return 0, fmt.Errorf("%s is not a number; signals in place of features read texts and switches", kind(v))
	default:
		return 0, fmt.Errorf("%s is not a number; give the path of one in fields", kind(v))
	}
	n, err := strconv.ParseFloat(v.Raw, 64)
	if err != nil {
		return decimal(v.Raw) // for its error
	}
	return n, nil
}

// kind describes a JSON value in an error.
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

// CheckJSON refuses a payload that is not JSON, has a key twice in an object, or is nested too deeply, before a
// recursive function reads it.
func CheckJSON(payload []byte) *Refusal {
	deepest, notFinite := lookOver(payload)
	switch {
	case deepest > maxDepth:
		return Refuse(Malformed, "nested more than %d deep", maxDepth)
	case !utf8.Valid(payload):
		return Refuse(Malformed, "not valid UTF-8, so not JSON: is it of another format?")
	case gjson.ValidBytes(payload):
		if key := repeatedKey(gjson.ParseBytes(payload)); key != "" {
			return Refuse(Repeated, "key %.40q occurs twice", key)
		}
		return nil
	case notFinite:
		return Refuse(NotANumber, "NaN and Infinity are not JSON: want null")
	}
	return notJSON(payload)
}

// lookOver returns how deep arrays and objects of a payload are nested, whatever else it holds, and
// whether it has NaN, nan, Infinity or inf outside of texts, which some senders write.
func lookOver(payload []byte) (deepest int, notFinite bool) {
	depth, inText, escaped := 0, false, false
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
		case c|0x20 == 'n' || c|0x20 == 'i':
			word := payload[i:min(i+3, len(payload))]
			begins := i == 0 || bytes.IndexByte([]byte(":,[+- \t\r\n"), payload[i-1]) >= 0
			notFinite = notFinite || begins && (bytes.EqualFold(word, []byte("nan")) || bytes.EqualFold(word, []byte("inf")))
		}
	}
	return deepest, notFinite
}

// cutOff is the usual reason for a payload that ends too early, as microcontrollers send it.
const cutOff = ": the message is cut off: is the sender's buffer too small?"

// notJSON refuses a payload that is not JSON, with the remedy for common mistakes.
func notJSON(payload []byte) *Refusal {
	err := json.Unmarshal(payload, new(json.RawMessage)) // for the error text
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		remedy := ""
		if bytes.HasPrefix(payload, []byte("[object ")) {
			remedy = "; JSON.stringify makes JSON of an object of JavaScript"
		} else if !bytes.ContainsRune(payload, '"') && bytes.ContainsAny(payload, "{'") { // as Python's str, or a shell, leaves it
			remedy = "; JSON has double quotes around keys and texts"
		} else if at := int(syntax.Offset) - 1; bytes.HasPrefix(payload, []byte("{")) && at < len(payload) && payload[at] == '{' {
			remedy = "; " + severalObjects
		} else if len(payload) > 0 && int(syntax.Offset) == len(payload) && err.Error() == "unexpected end of JSON input" {
			remedy = cutOff
		}
		return Refuse(Malformed, "byte %d: %w%s", syntax.Offset, err, remedy)
	}
	return Refuse(Malformed, "not valid JSON")
}

// repeatedKey returns a key that occurs twice in one object of the payload: two
// parsers need not agree on the value of such a key.
func repeatedKey(v gjson.Result) string {
	if !strings.Contains(v.Raw, "{") {
		return ""
	}
	var keys keySet
	for key, e := range v.All() {
		if v.IsObject() && !keys.add(key.Str) {
			return key.Str
		}
		if e.IsObject() || e.IsArray() {
			if key := repeatedKey(e); key != "" {
				return key
			}
		}
	}
	return ""
}

// fewKeys is the number of keys up to which they are compared one by one.
const fewKeys = 32

// keySet holds the keys of an object.
type keySet struct {
	list []string
	set  map[string]bool // of all keys, once they are more than fewKeys
}

// add adds a key, and reports false if the set contained it.
func (s *keySet) add(key string) bool {
	if s.set != nil {
		known := s.set[key]
		s.set[key] = true
		return !known
	}
	if slices.Contains(s.list, key) {
		return false
	}
	if s.list = append(s.list, key); len(s.list) > fewKeys {
		s.set = make(map[string]bool, 4*fewKeys)
		for _, k := range s.list {
			s.set[k] = true
		}
	}
	return true
}
