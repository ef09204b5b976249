package config

import (
	"encoding"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// appendFields appends the keys and values of a struct, one below the other, in
// the form that strictYAML reads. indent begins each line but the first.
func appendFields(dst []byte, v reflect.Value, indent string) []byte {
	first := true
	visitFields(v, func(key string, field reflect.Value) {
		if !first {
			dst = append(dst, indent...)
		}
		first = false
		dst = append(append(dst, quoteYAML(key)...), ':')
		dst = appendValue(dst, field, indent)
	})
	return dst
}

// appendValue appends the value of a key that is indented by indent, with the
// line breaks after it.
func appendValue(dst []byte, v reflect.Value, indent string) []byte {
	inner := indent + "  "
	switch {
	case isScalar(v.Type()):
		return append(append(append(dst, ' '), scalarYAML(v)...), '\n')
	case v.Kind() == reflect.Struct:
		return appendFields(append(append(dst, '\n'), inner...), v, inner)
	case v.Kind() == reflect.Map && v.Len() > 0:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		dst = append(dst, '\n')
		for _, key := range keys {
			dst = append(append(append(dst, inner...), quoteYAML(key.String())...), ':')
			dst = appendValue(dst, v.MapIndex(key), inner)
		}
		return dst
	case v.Kind() == reflect.Map:
		return append(dst, " {}\n"...)
	case v.Len() == 0:
		return append(dst, " []\n"...)
	}
	dst = append(dst, '\n')
	for i := range v.Len() {
		dst = append(append(dst, inner...), '-')
		if e := v.Index(i); e.Kind() == reflect.Struct && !isScalar(e.Type()) {
			dst = appendFields(append(dst, ' '), e, inner+"  ")
		} else {
			dst = appendValue(dst, e, inner)
		}
	}
	return dst
}

// scalarYAML returns a scalar in the form that parseScalar reads.
func scalarYAML(v reflect.Value) string {
	switch s := v.Interface().(type) {
	case encoding.TextMarshaler:
		text, err := s.MarshalText()
		if err != nil {
			panic(err) // a valid value can be written
		}
		return quoteYAML(string(text))
	case time.Duration:
		return s.String()
	}
	switch v.Kind() {
	case reflect.String:
		return quoteYAML(v.String())
	case reflect.Float32, reflect.Float64:
		text := strconv.FormatFloat(v.Float(), 'g', -1, v.Type().Bits())
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return text
	}
	return fmt.Sprint(v)
}

// quoteYAML returns s, in quotes if YAML would read another value without them.
func quoteYAML(s string) string {
	if plainYAML(s) {
		return s
	}
	return strconv.Quote(s)
}

// plainYAML reports whether a text needs no quotes, also in a list on one line
// and for a reader of YAML 1.1. A text that could be a number needs them.
func plainYAML(s string) bool {
	const signs = "_/+.$-:@ ()"
	other := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(signs, r)
	}
	first, _ := utf8.DecodeRuneInString(s)
	if !unicode.IsLetter(first) && first != '_' && first != '/' && first != '$' || strings.HasSuffix(s, " ") || strings.HasSuffix(s, ":") ||
		strings.Contains(s, ": ") || strings.ContainsFunc(s, other) {
		return false
	}
	_, word := switches[strings.ToLower(s)]
	return !word && !slices.Contains([]string{"y", "n", "null"}, strings.ToLower(s))
}

// flow returns a list on one line.
func flow(list []string) string {
	var quoted []string
	for _, s := range list {
		quoted = append(quoted, quoteYAML(s))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// Write writes c as YAML that reads back as c.
func Write(w io.Writer, c *Config) error {
	_, err := w.Write(appendFields(nil, reflect.ValueOf(c).Elem(), ""))
	return err
}
