package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"edge/stream/field"
)

// position is the position of a key in a YAML file.
type position struct{ line, column int }

// strictYAML decodes data into the struct that dst points to, whose values are
// the defaults of absent keys. These are errors: an unknown key, a key without a
// value, a key that occurs twice, a fraction in place of a whole number and a name
// that YAML would read as a number. All errors are returned at once, each with
// file, line and column; dst is then undefined.
//
// It returns the positions of the keys in data, by their dotted path.
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
		return nil, field.Join(d.errs...)
	}
	return d.where, nil
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// decoder sets Go values from a YAML tree. The library's own decoder stops at the
// first error, and accepts the mistakes that strictYAML refuses.
type decoder struct {
	file   string
	where  map[string]position
	inside map[*yaml.Node]bool // anchored nodes that are being decoded
	errs   []error
}

// unreadable returns an error at the first character that YAML does not allow.
// UTF-16, which begins with a byte-order mark, is left to the library.
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

// syntax returns an error of the YAML library with position, cause and way out.
func (d *decoder) syntax(err error, data []byte) error {
	var e *yaml.LoadError
	if !errors.As(err, &e) || e.Mark.Line == 0 {
		return fmt.Errorf("%s: %w", d.file, err)
	}
	why, hint := e.Message, ""
	anchor, unknown := strings.CutSuffix(why, "' referenced")
	switch at := e.Mark.Index; {
	case unknown:
		name := strings.TrimPrefix(anchor, "unknown anchor '")
		why = fmt.Sprintf("*%s: no &%s is before it; a text that begins with * needs quotes", name, name)
	case at >= 0 && at < len(data) && data[at] == '\t':
		why = "a tab: YAML is indented by spaces alone"
	case at >= len(data):
		hint = "; is a quote, a [ or a { not closed?"
	case strings.HasPrefix(why, "exceeded"): // a limit of the library
	case strings.HasPrefix(why, "found unknown escape"):
		hint = "; within single quotes a \\ is an ordinary character"
	default:
		if before, _, found := bytes.Cut(data, []byte("\u00a0")); found {
			hint = fmt.Sprintf("; line %d has a no-break space, which is none for YAML: write an ordinary one", 1+bytes.Count(before, []byte("\n")))
			break
		}
		hint = "; are the indentation and the spaces after colons right? A text needs quotes if it begins with one of # * @ % { [ or has a colon"
	}
	if e.ContextMsg != "" && e.ContextMark.Line > 0 && e.ContextMark.Line != e.Mark.Line {
		why += fmt.Sprintf(", %s that begins in line %d", e.ContextMsg, e.ContextMark.Line)
	}
	return fmt.Errorf("%s:%d:%d: %s", d.file, e.Mark.Line, max(e.Mark.Column, 1), why+hint)
}

// report adds an error at the position of node.
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
		d.report(node, "%s has no value; %s", orRoot(path), valueAdvice(path, v.Kind()))
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
	switch to := v.Addr().Interface().(type) {
	case variant:
		form := to.Form(kindOf(node))
		if form == nil {
			d.report(node, "%s: want %s", path, to.Forms())
			return
		}
		d.decode(node, reflect.ValueOf(form).Elem(), path)
		return
	case ordered:
		d.mapping(node, path, nil, func(key string, value *yaml.Node) []string {
			d.decode(value, reflect.ValueOf(to.Entry(key)).Elem(), joinKey(path, key))
			return nil
		})
		return
	}
	switch {
	case isScalar(t):
		d.scalar(node, v, path)
	case t.Kind() == reflect.Struct:
		d.fields(node, v, path)
	case t.Kind() == reflect.Map:
		d.entries(node, v, path)
	case t.Kind() == reflect.Slice:
		d.list(node, v, path)
	}
}

// fields sets the fields of the struct v from node.
func (d *decoder) fields(node *yaml.Node, v reflect.Value, path string) {
	fields := map[string]reflect.Value{}
	visitFields(v, func(key string, field reflect.Value) { fields[key] = field })
	if node.Kind != yaml.MappingNode {
		such, last := "", path[strings.LastIndexByte(path, '.')+1:]
		switch key := principal[last]; {
		case last == "password":
			such = ", {file: FILE}, which holds it alone, or {env: NAME}"
		case last == "classes":
			such = ", such as {names: [NAME, NAME]}"
		case key != "" && node.Kind == yaml.ScalarNode:
			such = fmt.Sprintf(", such as {%s: %s}", key, whole(node.Value))
		}
		d.report(node, "%s: want keys and values%s; the keys are %s", orRoot(path), such, strings.Join(field.Names(fields), ", "))
		return
	}
	d.mapping(node, path, nil, func(key string, value *yaml.Node) (known []string) {
		to, ok := fields[key]
		if !ok {
			return field.Names(fields)
		}
		d.decode(value, to, joinKey(path, key))
		return nil
	})
}

// list sets the slice v from node.
func (d *decoder) list(node *yaml.Node, v reflect.Value, path string) {
	if node.Kind != yaml.SequenceNode {
		example := ""
		if node.Kind == yaml.ScalarNode && node.Value != "" && !strings.Contains(node.Value, "@") { // an address with a password
			example = fmt.Sprintf(": [%s]", whole(node.Value))
		}
		d.report(node, "%s: want a list%s", path, example)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(node.Content), len(node.Content)))
	for i, value := range node.Content {
		d.decode(value, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

// whole returns a value for an example, of which a part would be another value; VALUE for a long one.
func whole(value string) string {
	if len(value) > 200 {
		return "VALUE"
	}
	return value
}

// entries sets the map v from node.
func (d *decoder) entries(node *yaml.Node, v reflect.Value, path string) {
	t := v.Type()
	if node.Kind == yaml.SequenceNode && t.Elem().Kind() == reflect.Struct {
		d.report(node, "%s: want keys and values, not a list: NAME: {…} for each", path)
		return
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(t))
	}
	d.mapping(node, path, nil, func(key string, value *yaml.Node) []string {
		element := reflect.New(t.Elem()).Elem()
		if isNull(value) && t.Elem().Kind() == reflect.String {
			d.report(value, `%s has no value; write "" for an empty text`, joinKey(path, key))
			return nil
		}
		d.decode(value, element, joinKey(path, key))
		v.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), element)
		return nil
	})
}

// valueAdvice returns what to do about a key, or an entry of a list, without a value.
func valueAdvice(path string, kind reflect.Kind) string {
	const indent = "indent the lines that belong to it"
	section, name, _ := strings.Cut(path, ".")
	switch required := (section == "streams" || section == "models") && !strings.Contains(name, "."); {
	case strings.HasSuffix(path, "]"):
		return "a # begins a comment where it is not in quotes"
	case required:
		return indent
	case kind == reflect.Struct || kind == reflect.Map || kind == reflect.Slice:
		return indent + ", or leave the key out for its default"
	}
	return "leave the key out for its default"
}

// alias calls use with the node that an alias refers to, unless the alias is
// within that node.
func (d *decoder) alias(n *yaml.Node, use func(*yaml.Node)) {
	if d.inside[n.Alias] {
		d.report(n, "*%s: stands within &%s itself", n.Value, n.Value)
		return
	}
	d.inside[n.Alias] = true
	use(n.Alias)
	delete(d.inside, n.Alias)
}

// mapping calls set with the keys and values of a mapping, then with those of the
// mappings merged into it (<<) for keys that it does not have itself. Keys in done
// are skipped. For an unknown key set returns the known ones, else nil.
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
			d.report(k, "%s occurs twice: the first is in line %d", joinKey(path, key), before.Line)
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
			in := strings.Join(belongs(key), " and of ")
			switch write, near := written(path, key), field.Nearest(key, known); {
			case write != "":
				hint = "; write " + write
			case in != "" && near != "":
				hint = fmt.Sprintf("; it is a key of %s, or did you mean %q?", in, near)
			case in != "":
				hint = "; it is a key of " + in
			case near != "":
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

// orRoot returns path, or a name for the root.
func orRoot(path string) string {
	if path == "" {
		return "the configuration"
	}
	return path
}

// scalar sets v, which is written as one word, from node.
func (d *decoder) scalar(node *yaml.Node, v reflect.Value, path string) {
	switch node.Kind {
	case yaml.ScalarNode:
	case yaml.MappingNode: // such as a: b within { }
		remedy := "put it in quotes if it has a colon"
		if in := belongs(path[strings.LastIndexByte(path, '.')+1:], reflect.Struct); len(in) > 0 {
			remedy = "keys and values are those of this key in " + strings.Join(in, " and ")
		}
		d.report(node, "%s: want one value; %s", path, remedy)
		return
	default:
		d.report(node, "%s: want one value", path)
		return
	}
	if tag := node.ShortTag(); v.Kind() == reflect.String && !isText(v.Type()) && node.Style == 0 && (tag == "!!int" || tag == "!!float") {
		// 007, 1.0 or 0x10 as a name: other YAML readers would change the text.
		var n any
		if err := node.Decode(&n); err == nil && fmt.Sprint(n) != node.Value {
			d.report(node, "%s: put %s in quotes, it would be read as the number %v", path, node.Value, n)
		}
	}
	if err := parseScalar(v, node.Value); err != nil {
		d.report(node, "%s: %v", path, err)
	}
}
