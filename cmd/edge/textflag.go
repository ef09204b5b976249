package main

// textFlag is a flag whose text is checked with the configuration.
type textFlag struct {
	text *string
	name string
}

func (f textFlag) String() string     { return "" }
func (f textFlag) Set(s string) error { *f.text = s; return nil }
func (f textFlag) Type() string       { return f.name }
