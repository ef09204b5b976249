package cli

// TextFlag is a flag whose text is checked with the configuration.
type TextFlag struct {
	Text *string
	Name string
}

func (f TextFlag) String() string { return "" }

func (f TextFlag) Set(s string) error { *f.Text = s; return nil }

func (f TextFlag) Type() string { return f.Name }
