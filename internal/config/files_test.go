package config

import (
	"strings"
	"testing"
)

// A label of a file that is spelt almost like a class of the model, or is none of a closed list, is told.
func TestLabelsBesideTheClasses(t *testing.T) {
	for classes, want := range map[string]string{
		`{names: ["0", "1"]}`:                    `the label "1.0" of the file and the class "1" of classes.names are two classes`,
		`{names: ["1", "1.0"]}`:                  "",
		`{names: [a]}`:                           `the label "1.0" of the file is a text, and the number 1 in a payload is the class "1": write it so, or give the stream a label_map`,
		`{names: [a, b], open: false}`:           `the label "1.0" of the file is not among classes.names, which are closed (open: false)`,
		`{names: ["1.0", b, " A"], open: false}`: `the label "a" of the file and the class " A" of classes.names`,
		`{max: 5}`:                               `the label "1.0" of the file is a text`,
	} {
		c, err := Parse("c.yaml", []byte("streams: {s: {topics: [s], features: [x]}}\nmodels: {m: {streams: [s], classes: "+classes+"}}\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := c.LabelWarning("", []string{"1.0", "a"})
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", classes, got, want)
		}
	}
	c, err := Parse("c.yaml", []byte("streams: {s: {topics: [s], features: [x], format: csv, columns: [x, label]}}\nmodels: {m: {streams: [s]}}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.LabelWarning("m", []string{"1.0"}); got != "" {
		t.Errorf("of cells: %q", got)
	}
}
