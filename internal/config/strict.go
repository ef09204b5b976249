package config

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// position is where a key stands in a YAML file.
type position struct{ line, column int }

// strictYAML decodes data into the struct that dst points to, whose values are
// the defaults of keys that are not there. It is as strict as a configuration
// file deserves: an unknown key, a key without a value, a key that occurs twice,
// a fraction where a whole number belongs and a name that YAML would read as a
// number are errors. All errors are found at once, each with file, line and
// column; dst is then of no use.
//
// The positions of the keys that were given are returned by their dotted path.
func strictYAML(file string, data []byte, dst any) (map[string]position, error) {
	d := decoder{file: file, where: map[string]position{}, inside: map[*yaml.Node]bool{}}
	if err := d.unreadable(data); err != nil {
		return nil, err
	}
	var docs []*yaml.Node
	for from := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var doc yaml.Node
		if err := from.Decode(&doc); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, d.syntax(err, data)
		}
		if root := doc.Content; len(root) == 1 && !isNull(root[0]) {
			docs = append(docs, root[0])
		}
	}
	if len(docs) == 0 {
		return d.where, nil
	}
	if len(docs) > 1 {
		return nil, fmt.Errorf("%s: has %d documents; a configuration is one", file, len(docs))
	}
	d.decode(docs[0], reflect.ValueOf(dst).Elem(), "")
	if len(d.errs) > 0 {
		return nil, errors.Join(d.errs...)
	}
	return d.where, nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// decoder sets Go values from a YAML tree. The library's own decoder would
// stop at the first error, and forgive what is listed above.
type decoder struct {
	file   string
	where  map[string]position
	inside map[*yaml.Node]bool // what aliases stand for, while that is decoded
	errs   []error
}

// unreadable finds a character that YAML has not. Text of UTF-16 begins with its
// mark, and is for the library.
func (d *decoder) unreadable(data []byte) error {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil
	}
	line, column := 1, 1
	for rest := data; len(rest) > 0; column++ {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			return fmt.Errorf("%s:%d:%d: the byte 0x%02x is no UTF-8: save the file as UTF-8", d.file, line, column, rest[0])
		case r < ' ' && r != '\t' && r != '\r' && r != '\n':
			return fmt.Errorf("%s:%d:%d: the control character 0x%02x: is this a configuration?", d.file, line, column, r)
		case r == '\n':
			line, column = line+1, 0
		}
		rest = rest[size:]
	}
	return nil
}

// syntax words an error of the YAML library.
func (d *decoder) syntax(err error, data []byte) error {
	var e *yaml.LoadError
	if !errors.As(err, &e) || e.Mark.Line == 0 {
		return fmt.Errorf("%s: %w", d.file, err)
	}
	why := e.Message
	anchor, unknown := strings.CutSuffix(why, "' referenced")
	switch at := e.Mark.Index; {
	case unknown:
		name := strings.TrimPrefix(anchor, "unknown anchor '")
		why = fmt.Sprintf("*%s: there is no &%s before it", name, name)
	case at >= 0 && at < len(data) && data[at] == '\t':
		why = "a tab: YAML is indented by spaces alone"
	case at >= len(data):
		why += "; is a quote, a [ or a { not closed?"
	}
	if e.ContextMsg != "" && e.ContextMark.Line > 0 && e.ContextMark.Line != e.Mark.Line {
		why += fmt.Sprintf(", %s that begins in line %d", e.ContextMsg, e.ContextMark.Line)
	}
	return fmt.Errorf("%s:%d:%d: %s", d.file, e.Mark.Line, max(e.Mark.Column, 1), why)
}

func (d *decoder) report(node *yaml.Node, format string, args ...any) {
	d.errs = append(d.errs, fmt.Errorf("%s:%d:%d: %s", d.file, node.Line, node.Column, fmt.Sprintf(format, args...)))
}

// defaulter is a type that sets its defaults before it is decoded.
type defaulter interface {
	UnmarshalYAML(unmarshal func(any) error) error
}

// decode sets v from node.
func (d *decoder) decode(node *yaml.Node, v reflect.Value, path string) {
	if node.Kind == yaml.AliasNode {
		d.alias(node, func(to *yaml.Node) { d.decode(to, v, path) })
		return
	}
	if node.Style&yaml.TaggedStyle != 0 && !slices.Contains([]string{"!!str", "!!int", "!!float", "!!bool", "!!seq", "!!map"}, node.ShortTag()) {
		d.report(node, "%s: the tag %s has no meaning here", path, node.Tag)
		return
	}
	if isNull(node) {
		d.report(node, "%s has no value; leave the key out for its default", orRoot(path))
		return
	}
	if to, ok := v.Addr().Interface().(defaulter); ok {
		err := to.UnmarshalYAML(func(dst any) error {
			d.decode(node, reflect.ValueOf(dst).Elem(), path)
			return nil
		})
		if err != nil {
			d.report(node, "%s: %v", path, err)
		}
		return
	}
	t := v.Type()
	switch {
	case isScalar(t):
		d.scalar(node, v, path)
	case t.Kind() == reflect.Struct:
		fields := map[string]reflect.Value{}
		visitFields(v, func(key string, field reflect.Value) { fields[key] = field })
		d.mapping(node, path, nil, func(key string, value *yaml.Node) (known []string) {
			field, ok := fields[key]
			if !ok {
				return slices.Sorted(maps.Keys(fields))
			}
			d.decode(value, field, joinKey(path, key))
			return nil
		})
	case t.Kind() == reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(t))
		}
		d.mapping(node, path, nil, func(key string, value *yaml.Node) []string {
			element := reflect.New(t.Elem()).Elem()
			d.decode(value, element, joinKey(path, key))
			v.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), element)
			return nil
		})
	case t.Kind() == reflect.Slice:
		if node.Kind != yaml.SequenceNode {
			d.report(node, "%s: want a list", path)
			return
		}
		v.Set(reflect.MakeSlice(t, len(node.Content), len(node.Content)))
		for i, value := range node.Content {
			d.decode(value, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

// alias calls use with what an alias stands for, unless the alias is within it.
func (d *decoder) alias(n *yaml.Node, use func(*yaml.Node)) {
	if d.inside[n.Alias] {
		d.report(n, "*%s: stands within &%s itself", n.Value, n.Value)
		return
	}
	d.inside[n.Alias] = true
	use(n.Alias)
	delete(d.inside, n.Alias)
}

// mapping calls set with the keys and values of a mapping, and those of the
// mappings that are merged into it (<<) for keys that it has not itself. set
// returns the keys that there are, for one that there is not. Keys in done are
// left out.
func (d *decoder) mapping(node *yaml.Node, path string, done map[string]bool, set func(key string, value *yaml.Node) (known []string)) {
	if node.Kind == yaml.AliasNode {
		d.alias(node, func(to *yaml.Node) { d.mapping(to, path, done, set) })
		return
	}
	if node.Kind != yaml.MappingNode {
		d.report(node, "%s: want keys and values", orRoot(path))
		return
	}
	all := maps.Clone(done)
	if all == nil {
		all = map[string]bool{}
	}
	first := map[string]*yaml.Node{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		k, value := node.Content[i], node.Content[i+1]
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode {
			d.report(k, "%s: want one word as a key", orRoot(path))
			continue
		}
		key := k.Value
		if before := first[key]; before != nil {
			d.report(k, "%s occurs twice: it is in line %d, too", joinKey(path, key), before.Line)
			continue
		}
		first[key] = k
		if k.ShortTag() == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if done[key] {
			continue
		}
		all[key] = true
		d.where[joinKey(path, key)] = position{k.Line, k.Column}
		if known := set(key, value); known != nil {
			hint := "; the keys are " + strings.Join(known, ", ")
			if near := Nearest(key, known); near != "" {
				hint = fmt.Sprintf("; did you mean %q?", near)
			}
			d.report(k, "unknown key %q in %s%s", key, orRoot(path), hint)
		}
	}
	was := d.inside[node]
	d.inside[node] = true
	for _, value := range merged {
		d.mapping(value, path, all, set)
	}
	d.inside[node] = was
}

func orRoot(path string) string {
	if path == "" {
		return "the configuration"
	}
	return path
}

func (d *decoder) scalar(node *yaml.Node, v reflect.Value, path string) {
	switch node.Kind {
	case yaml.ScalarNode:
	case yaml.MappingNode: // a: b within { }, for one
		d.report(node, "%s: want one value; put it in quotes if it has a colon", path)
		return
	default:
		d.report(node, "%s: want one value", path)
		return
	}
	if tag := node.ShortTag(); v.Kind() == reflect.String && !isText(v.Type()) && node.Style == 0 && (tag == "!!int" || tag == "!!float") {
		// 007, 1.0 or 0x10 as a name: YAML would make another text of it.
		var n any
		if err := node.Decode(&n); err == nil && fmt.Sprint(n) != node.Value {
			d.report(node, "%s: put %s in quotes, it would be read as the number %v", path, node.Value, n)
		}
	}
	if err := parseScalar(v, node.Value); err != nil {
		d.report(node, "%s: %v", path, err)
	}
}

// isScalar reports whether a value of type t is written as one word.
func isScalar(t reflect.Type) bool {
	if isText(t) {
		return true
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice:
		return false
	}
	return true
}

// isText reports whether t reads itself from text.
func isText(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// switches are the words of a switch: those of YAML 1.2, and of 1.1, which many
// files are written in.
var switches = map[string]bool{"true": true, "yes": true, "on": true, "false": false, "no": false, "off": false}

// parseScalar sets v from text, or says what would have been right. It serves
// the values of the YAML file and those of environment variables.
func parseScalar(v reflect.Value, text string) error {
	if isText(v.Type()) {
		return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%s: want a duration with its unit, such as 250ms, 30s or 24h", text)
		}
		v.SetInt(int64(d))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		on, ok := switches[strings.ToLower(text)]
		if !ok {
			return fmt.Errorf("%s: want true or false", text)
		}
		v.SetBool(on)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("%s: want a whole number", text)
		}
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := strconv.ParseUint(text, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("%s: want a whole number, not negative", text)
		}
		v.SetUint(n)
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(text, v.Type().Bits())
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			return fmt.Errorf("%s: want a number", text)
		}
		v.SetFloat(f)
	default:
		return fmt.Errorf("%s: a %s cannot be written as one word", text, v.Kind())
	}
	return nil
}

// visitFields calls visit with the fields of a struct that have a key, in their
// order, those of inlined ones included.
func visitFields(v reflect.Value, visit func(key string, field reflect.Value)) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case key == "-", !f.IsExported():
		case options == "inline":
			visitFields(v.Field(i), visit)
		default:
			visit(key, v.Field(i))
		}
	}
}

// Nearest returns the candidate that word was most likely meant to be, or "".
func Nearest(word string, candidates []string) string {
	best, at := "", len(word)/3+2
	for _, c := range candidates {
		if d := editDistance(word, c); d < at {
			best, at = c, d
		}
	}
	return best
}

// editDistance is the number of letters to insert, delete or replace
// (Levenshtein) to make b of a.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
