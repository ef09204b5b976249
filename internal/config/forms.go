package config

import (
	"iter"

	"go.yaml.in/yaml/v4"

	"edge/stream/field"
)

// variant is a value that has several forms in YAML, such as a number or a mapping.
type variant interface {
	// Form returns a pointer to the part that a node of this kind sets, nil if the
	// value has no such form. It discards the present form.
	Form(kind field.Kind) any
	// Forms lists the forms, for an error.
	Forms() string
}

// ordered is a mapping whose order has a meaning.
type ordered interface {
	// Entry returns a pointer to the value of a key, which it adds if it is new. The
	// pointer is valid until the next call.
	Entry(key string) any
	// Entries returns the keys in order, with pointers to their values.
	Entries() iter.Seq2[string, any]
}

// kindOf returns the kind of a node that is no alias.
func kindOf(n *yaml.Node) field.Kind {
	switch n.Kind {
	case yaml.ScalarNode:
		return field.Word
	case yaml.SequenceNode:
		return field.List
	}
	return field.Mapping
}
