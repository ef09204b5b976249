package main

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// position is where a key stands in a YAML file.
type position struct{ line, column int }

// strictYAML decodes data into the struct that dst points to, whose values are
// the defaults of keys that are not there. It is as strict as a configuration
// file deserves: an unknown key, a key without a value, a fraction where a whole
// number belongs and a name that YAML would read as a number are errors. All
// errors are found at once, each with file, line and column.
//
// The positions of the keys that were given are returned by their dotted path.
func strictYAML(file string, data []byte, dst any) (map[string]position, error) {
	l := linter{file: file, where: map[string]position{}}
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, l.syntax(err)
	}
	docs := slices.DeleteFunc(tree.Docs, func(d *ast.DocumentNode) bool { return d.Body == nil || d.Body.Type() == ast.NullType })
	if len(docs) == 0 {
		return l.where, nil
	}
	if len(docs) > 1 {
		return nil, fmt.Errorf("%s: has %d documents; a configuration is one", file, len(docs))
	}
	l.visit(docs[0].Body, reflect.TypeOf(dst).Elem(), "")
	if len(l.errs) > 0 {
		return nil, errors.Join(l.errs...)
	}
	if err := yaml.UnmarshalWithOptions(data, dst, yaml.Strict()); err != nil {
		return nil, l.syntax(err)
	}
	return l.where, nil
}

// linter compares a YAML tree with the Go type that it is meant for.
type linter struct {
	file  string
	where map[string]position
	errs  []error
}

// syntax words an error of the YAML library, which shows the place itself.
func (l *linter) syntax(err error) error {
	var e yaml.Error
	if errors.As(err, &e) && e.GetToken() != nil && e.GetToken().Position != nil {
		p := e.GetToken().Position
		return fmt.Errorf("%s:%d:%d: %s", l.file, p.Line, p.Column, e.GetMessage())
	}
	return fmt.Errorf("%s: %w", l.file, err)
}

func (l *linter) report(node ast.Node, format string, args ...any) {
	p := node.GetToken().Position
	l.errs = append(l.errs, fmt.Errorf("%s:%d:%d: %s", l.file, p.Line, p.Column, fmt.Sprintf(format, args...)))
}

func (l *linter) visit(node ast.Node, t reflect.Type, path string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch n := node.(type) {
	case *ast.AnchorNode:
		l.visit(n.Value, t, path)
		return
	case *ast.AliasNode:
		return // what it stands for was visited under its anchor
	case *ast.TagNode:
		l.visit(n.Value, t, path)
		return
	case *ast.NullNode:
		l.report(node, "%s has no value; leave the key out for its default", path)
		return
	}
	switch {
	case isScalar(t):
		l.scalar(node, t, path)
	case t.Kind() == reflect.Struct:
		l.mapping(node, path, func(key string) (reflect.Type, []string) {
			keys := yamlKeys(t)
			return keys[key], sortedKeys(keys)
		})
	case t.Kind() == reflect.Map:
		l.mapping(node, path, func(string) (reflect.Type, []string) { return t.Elem(), nil })
	case t.Kind() == reflect.Slice:
		sequence, ok := node.(*ast.SequenceNode)
		if !ok {
			l.report(node, "%s: want a list", path)
			return
		}
		for i, v := range sequence.Values {
			l.visit(v, t.Elem(), fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

// mapping visits the values of a mapping; typeOf gives a key's type, nil for a
// key that does not exist, and the keys that do.
func (l *linter) mapping(node ast.Node, path string, typeOf func(key string) (reflect.Type, []string)) {
	m, ok := node.(ast.MapNode)
	if !ok {
		l.report(node, "%s: want keys and values", orRoot(path))
		return
	}
	for it := m.MapRange(); it.Next(); {
		if it.Key().IsMergeKey() {
			continue
		}
		key := scalarText(it.Key())
		t, known := typeOf(key)
		if t == nil {
			hint := "; the keys are " + strings.Join(known, ", ")
			if near := nearest(key, known); near != "" {
				hint = fmt.Sprintf("; did you mean %q?", near)
			}
			l.report(it.Key(), "unknown key %q in %s%s", key, orRoot(path), hint)
			continue
		}
		inner := joinKey(path, key)
		p := it.Key().GetToken().Position
		l.where[inner] = position{p.Line, p.Column}
		l.visit(it.Value(), t, inner)
	}
}

func orRoot(path string) string {
	if path == "" {
		return "the configuration"
	}
	return path
}

func (l *linter) scalar(node ast.Node, t reflect.Type, path string) {
	switch node.(type) {
	case ast.ScalarNode:
	case ast.MapNode: // mqtt://host:1883 within { }, for one
		l.report(node, "%s: want one value; put it in quotes if it has a colon", path)
		return
	default:
		l.report(node, "%s: want one value", path)
		return
	}
	if t.Kind() == reflect.String && !isText(t) {
		// 007, 1.0, 0x10 or ~ as a name: YAML would make another text of it.
		switch node.(type) {
		case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
			var s string
			if yaml.NodeToValue(node, &s) == nil && s != scalarText(node) {
				l.report(node, "%s: put %s in quotes, it would be read as the number %s", path, scalarText(node), s)
			}
		}
		return
	}
	if err := parseScalar(reflect.New(t).Elem(), scalarText(node)); err != nil {
		l.report(node, "%s: %v", path, err)
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

// yamlKeys are the keys of a struct and their types, inlined ones included.
func yamlKeys(t reflect.Type) map[string]reflect.Type {
	keys := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case options == "inline":
			for k, v := range yamlKeys(f.Type) {
				keys[k] = v
			}
		default:
			if name == "" {
				name = strings.ToLower(f.Name)
			}
			keys[name] = f.Type
		}
	}
	return keys
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
