package config

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// Write writes c as YAML that reads back as c, apart from texts that are not
// UTF-8. Only the environment can set these; they are written as !!binary, which
// strictYAML refuses.
func Write(w io.Writer, c *Config) error {
	text, err := marshalYAML(c)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
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

// flow returns a list on one line. A byte that is not UTF-8 becomes U+FFFD, as it
// does in the messages of `edge replay`.
func flow(list []string) string {
	valid := make([]string, len(list))
	for i, s := range list {
		valid[i] = string([]rune(s))
	}
	var n yaml.Node
	err := n.Encode(valid)
	n.Style = yaml.FlowStyle
	text, dumpErr := marshalYAML(&n)
	if err = errors.Join(err, dumpErr); err != nil {
		panic(err) // a list of strings can be written
	}
	return strings.TrimSuffix(string(text), "\n")
}
