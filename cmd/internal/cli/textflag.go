package cli

// TextFlag is a flag whose text is validated with the configuration. It
// implements pflag.Value; Name is the type in the help text.
type TextFlag struct {
	Text *string
	Name string
}

// String returns "": the flag has no default.
func (f TextFlag) String() string { return "" }

// Set stores the text.
func (f TextFlag) Set(s string) error { *f.Text = s; return nil }

// Type returns the name of the flag's type.
func (f TextFlag) Type() string { return f.Name }
