package field

// Kind is the kind of YAML node that a value is written as. A type with several forms has two
// methods: Form(Kind) any returns a pointer to the part that a node of this kind sets, nil where
// there is none; Forms() string lists the forms for an error.
type Kind int

// Kinds of nodes.
const (
	Present Kind = iota // the form that the value has now, to write it
	Word
	List
	Mapping
)

// Words is a list of words. A single word may be written without brackets.
type Words []string

// Form implements the forms of a configuration value.
func (w *Words) Form(kind Kind) any {
	switch kind {
	case Word:
		*w = Words{""}
		return &(*w)[0]
	case List, Present:
		return (*[]string)(w)
	}
	return nil
}

// Forms lists the forms.
func (*Words) Forms() string { return "a word or a list of words" }
