package main

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// position is where a key stands in a YAML file.
type position struct{ line, column int }

// strictYAML decodes data into the struct that dst points to, whose values are
// the defaults of keys that are not there. It is as strict as a configuration
// file deserves: an unknown key, a key without a value, a fraction where a whole
// number belongs and a name that YAML would read as a number are errors. All
// errors are found at once, each with file, line and column; dst is then of no
// use.
//
// The positions of the keys that were given are returned by their dotted path.
func strictYAML(file string, data []byte, dst any) (map[string]position, error) {
	d := decoder{file: file, where: map[string]position{}, anchors: map[string]ast.Node{}}
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, d.syntax(err)
	}
	docs := slices.DeleteFunc(tree.Docs, func(d *ast.DocumentNode) bool { return d.Body == nil || d.Body.Type() == ast.NullType })
	if len(docs) == 0 {
		return d.where, nil
	}
	if len(docs) > 1 {
		return nil, fmt.Errorf("%s: has %d documents; a configuration is one", file, len(docs))
	}
	d.decode(docs[0].Body, reflect.ValueOf(dst).Elem(), "")
	if len(d.errs) > 0 {
		return nil, errors.Join(d.errs...)
	}
	return d.where, nil
}

// decoder sets Go values from a YAML tree. The library's own decoder would
// stop at the first error, forgive what is listed above, and weigh more.
type decoder struct {
	file    string
	where   map[string]position
	anchors map[string]ast.Node // what was seen so far, by name
	errs    []error
}

// syntax words an error of the YAML library, which shows the place itself.
func (d *decoder) syntax(err error) error {
	var e interface {
		error
		GetToken() *token.Token
		GetMessage() string
	}
	if errors.As(err, &e) && e.GetToken() != nil && e.GetToken().Position != nil {
		p := e.GetToken().Position
		return fmt.Errorf("%s:%d:%d: %s", d.file, p.Line, p.Column, e.GetMessage())
	}
	return fmt.Errorf("%s: %w", d.file, err)
}

func (d *decoder) report(node ast.Node, format string, args ...any) {
	p := node.GetToken().Position
	d.errs = append(d.errs, fmt.Errorf("%s:%d:%d: %s", d.file, p.Line, p.Column, fmt.Sprintf(format, args...)))
}

// defaulter is a type that sets its defaults before it is decoded.
type defaulter interface {
	UnmarshalYAML(unmarshal func(any) error) error
}

// decode sets v from node.
func (d *decoder) decode(node ast.Node, v reflect.Value, path string) {
	switch n := node.(type) {
	case *ast.AnchorNode:
		d.decode(n.Value, v, path)
		d.anchors[n.Name.GetToken().Value] = n.Value
		return
	case *ast.AliasNode:
		if n := d.aliased(n); n != nil {
			d.decode(n, v, path)
		}
		return
	case *ast.TagNode:
		switch n.Start.Value {
		case "!!str", "!!int", "!!float", "!!bool", "!!seq", "!!map":
			d.decode(n.Value, v, path)
		default:
			d.report(node, "%s: the tag %s has no meaning here", path, n.Start.Value)
		}
		return
	case *ast.NullNode:
		d.report(node, "%s has no value; leave the key out for its default", path)
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
		d.mapping(node, path, nil, func(key string, value ast.Node) (known []string) {
			field, ok := fields[key]
			if !ok {
				return sortedKeys(fields)
			}
			d.decode(value, field, joinKey(path, key))
			return nil
		})
	case t.Kind() == reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(t))
		}
		d.mapping(node, path, nil, func(key string, value ast.Node) []string {
			element := reflect.New(t.Elem()).Elem()
			d.decode(value, element, joinKey(path, key))
			v.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), element)
			return nil
		})
	case t.Kind() == reflect.Slice:
		sequence, ok := node.(*ast.SequenceNode)
		if !ok {
			d.report(node, "%s: want a list", path)
			return
		}
		v.Set(reflect.MakeSlice(t, len(sequence.Values), len(sequence.Values)))
		for i, value := range sequence.Values {
			d.decode(value, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

// aliased is what an alias stands for; nil, and an error, if there is none.
func (d *decoder) aliased(n *ast.AliasNode) ast.Node {
	name := n.Value.GetToken().Value
	if d.anchors[name] == nil {
		d.report(n, "*%s: there is no &%s before it", name, name)
	}
	return d.anchors[name]
}

// mapping calls set with the keys and values of a mapping, and those of the
// mappings that are merged into it (<<) for keys that it has not itself. set
// returns the keys that there are, for one that there is not. Keys in done are
// left out.
func (d *decoder) mapping(node ast.Node, path string, done map[string]bool, set func(key string, value ast.Node) (known []string)) {
	m, ok := node.(ast.MapNode)
	if !ok {
		d.report(node, "%s: want keys and values", orRoot(path))
		return
	}
	all := maps.Clone(done)
	if all == nil {
		all = map[string]bool{}
	}
	var merged []ast.Node
	for it := m.MapRange(); it.Next(); {
		if it.Key().IsMergeKey() {
			merged = append(merged, it.Value())
			continue
		}
		key := scalarText(it.Key())
		if done[key] {
			continue
		}
		all[key] = true
		p := it.Key().GetToken().Position
		d.where[joinKey(path, key)] = position{p.Line, p.Column}
		if known := set(key, it.Value()); known != nil {
			hint := "; the keys are " + strings.Join(known, ", ")
			if near := nearest(key, known); near != "" {
				hint = fmt.Sprintf("; did you mean %q?", near)
			}
			d.report(it.Key(), "unknown key %q in %s%s", key, orRoot(path), hint)
		}
	}
	for _, value := range merged {
		if alias, ok := value.(*ast.AliasNode); ok {
			if value = d.aliased(alias); value == nil {
				continue
			}
		}
		d.mapping(value, path, all, set)
	}
}

func orRoot(path string) string {
	if path == "" {
		return "the configuration"
	}
	return path
}

func (d *decoder) scalar(node ast.Node, v reflect.Value, path string) {
	switch node.(type) {
	case ast.ScalarNode:
	case ast.MapNode: // mqtt://host:1883 within { }, for one
		d.report(node, "%s: want one value; put it in quotes if it has a colon", path)
		return
	default:
		d.report(node, "%s: want one value", path)
		return
	}
	text := scalarText(node)
	if v.Kind() == reflect.String && !isText(v.Type()) {
		// 007, 1.0, 0x10 or ~ as a name: YAML would make another text of it.
		switch n := node.(type) {
		case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
			if s := fmt.Sprint(n.(ast.ScalarNode).GetValue()); s != text {
				d.report(node, "%s: put %s in quotes, it would be read as the number %s", path, text, s)
			}
		}
	}
	if err := parseScalar(v, text); err != nil {
		d.report(node, "%s: %v", path, err)
	}
}

// scalarText is a scalar as it is written, without quotes.
func scalarText(node interface{ String() string }) string {
	if s, ok := node.(*ast.StringNode); ok {
		return s.Value
	}
	if s, ok := node.(*ast.LiteralNode); ok {
		return s.Value.Value
	}
	return node.String()
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
		if text != "true" && text != "false" {
			return fmt.Errorf("%s: want true or false", text)
		}
		v.SetBool(text == "true")
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

func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// nearest returns the candidate that word was most likely meant to be, or "".
func nearest(word string, candidates []string) string {
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
