package signal

import (
	"iter"

	"edge/stream/field"
	"edge/stream/signal/formula"
)

// Entry returns the expression of a name, a new one at the end if there is none.
func (f *Formulas) Entry(name string) any {
	for i := range *f {
		if (*f)[i].Name == name {
			return &(*f)[i].Text
		}
	}
	*f = append(*f, formula.Definition{Name: name})
	return &(*f)[len(*f)-1].Text
}

// Entries returns names and expressions in order.
func (f *Formulas) Entries() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for i := range *f {
			if !yield((*f)[i].Name, &(*f)[i].Text) {
				return
			}
		}
	}
}

// Form implements the forms of a configuration value: a list for all signals, or a
// mapping from signal to list.
func (c *Choice) Form(kind field.Kind) any {
	switch {
	case kind == field.List:
		*c = Choice{}
		return &c.All
	case kind == field.Mapping:
		*c = Choice{Of: map[string][]string{}}
		return &c.Of
	case kind == field.Present && c.Of != nil:
		return &c.Of
	case kind == field.Present:
		return &c.All
	}
	return nil
}

// Forms lists the forms.
func (*Choice) Forms() string {
	return "a list of features and groups, or a mapping from signal to list"
}
