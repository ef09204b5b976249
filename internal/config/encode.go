package config

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"edge/stream/field"
)

// Write writes c as YAML that reads back as c, apart from texts that are not
// UTF-8. Only the environment can set these; they are written as !!binary, which
// strictYAML refuses.
func Write(w io.Writer, c *Config) error {
	root, err := nodeOf(reflect.ValueOf(c).Elem())
	if err != nil {
		return err
	}
	text, err := marshalYAML(root)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// nodeOf returns the YAML of a value: the fields of a struct in their order, the keys
// of a map sorted, those of an ordered mapping as they are. The library knows neither
// ordered mappings nor values with several forms. v can be set, but is not.
func nodeOf(v reflect.Value) (*yaml.Node, error) {
	var (
		node = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		errs []error
		t    = v.Type()
	)
	add := func(key string, value reflect.Value) {
		k, err := wordNode(key)
		errs = append(errs, err)
		n, err := nodeOf(value)
		errs = append(errs, err)
		node.Content = append(node.Content, k, n)
	}
	switch of := v.Addr().Interface().(type) {
	case variant:
		return nodeOf(reflect.ValueOf(of.Form(field.Present)).Elem())
	case ordered:
		for key, value := range of.Entries() {
			add(key, reflect.ValueOf(value).Elem())
		}
		return node, field.Join(errs...)
	}
	switch {
	case isScalar(t):
		return wordNode(v.Interface())
	case t.Kind() == reflect.Struct:
		visitFields(v, add)
	case t.Kind() == reflect.Map:
		keys, values := entries(v)
		for i, key := range keys {
			add(key.String(), values[i])
		}
	case t.Kind() == reflect.Slice:
		node.Kind, node.Tag = yaml.SequenceNode, "!!seq"
		for i := range v.Len() {
			n, err := nodeOf(v.Index(i))
			errs = append(errs, err)
			node.Content = append(node.Content, n)
		}
	}
	return node, field.Join(errs...)
}

// wordNode returns the YAML of a value that is one word.
func wordNode(v any) (*yaml.Node, error) {
	n := new(yaml.Node)
	err := n.Encode(v)
	if n.Style == yaml.SingleQuotedStyle {
		n.Style = yaml.DoubleQuotedStyle // as marshalYAML writes them elsewhere
	}
	return n, err
}

// marshalYAML returns v as YAML that strictYAML reads: the fields of a struct in
// their order, the keys of a map sorted, and no line folded. If a text has an
// invisible character, all texts are escaped to ASCII: the library writes a
// bidirectional override as it is.
func marshalYAML(v any) ([]byte, error) {
	options := []yaml.Option{yaml.WithLineWidth(-1), yaml.WithCompactSeqIndent(false), yaml.WithQuotePreference(yaml.QuoteDouble)}
	text, err := yaml.Dump(v, options...)
	if bytes.ContainsFunc(text, isInvisible) {
		return yaml.Dump(v, append(options, yaml.WithUnicode(false))...)
	}
	return text, err
}

// isInvisible reports whether r is neither printable nor white space of YAML.
func isInvisible(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }

// Flow returns a list as YAML has it on one line. A byte that is not UTF-8 becomes U+FFFD, as it
// does in the messages of `edge replay`.
func Flow(list []string) string {
	valid := make([]string, len(list))
	for i, s := range list {
		valid[i] = string([]rune(s))
	}
	var n yaml.Node
	err := n.Encode(valid)
	n.Style = yaml.FlowStyle
	text, dumpErr := marshalYAML(&n)
	if err = field.Join(err, dumpErr); err != nil {
		panic(err) // a list of strings can be written
	}
	return strings.TrimSuffix(string(text), "\n")
}
