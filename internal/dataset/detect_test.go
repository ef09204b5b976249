package dataset

import (
	"fmt"
	"strings"
	"testing"

	"edge/test/files"
)

// A column with words in a file of signals may be the label, unless that is known.
func TestWordsBesideSignals(t *testing.T) {
	for _, c := range []struct {
		header string
		format Format
		label  bool
	}{
		{"user,activity,timestamp,x,y", Format{}, true},
		{"user,activity,timestamp,x,label", Format{}, false},
		{"user,activity,timestamp,x,y", Format{Label: "y"}, false},
	} {
		var b strings.Builder
		fmt.Fprintln(&b, c.header)
		for i := range 300 {
			fmt.Fprintf(&b, "7,walking,%d,%d,%d\n", 1_700_000_000_000+50*int64(i), i%7, i%3)
		}
		_, _, err := Detect(files.Write(t, "data.csv", b.String()), c.format)
		const label = "--label activity if it is the label, "
		if err == nil || !strings.Contains(err.Error(), `column "activity" has "walking": `) || strings.Contains(err.Error(), label) != c.label {
			t.Errorf("%s, label %q: %v, want %q: %v", c.header, c.format.Label, err, label, c.label)
		}
	}
}

// Files that were joined with their headers are told as that.
func TestDetectOfJoinedFiles(t *testing.T) {
	_, _, err := Detect(files.Write(t, "data.csv", "t,x,label\n1700000000,1,a\n1700000001,2,a\nt,x,label\n1700000002,1,a\n"), Format{})
	if want := `:4:1: column "t": the header occurs again: the file has several tables; awk '`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// A model of windows does not find its features among signals, of which a configuration makes them.
func TestFeaturesOfWindows(t *testing.T) {
	for feature, want := range map[string]string{
		"x.mean": `; "x.mean" is of a window of signals, which the stream of a configuration makes: -c FILE`,
		"z.mean": "; rename them, or list by --columns",
	} {
		_, err := newFile(strings.NewReader("t,x,label\n1,2,a\n"), "data.csv", Format{Features: []string{feature}})
		if err == nil || !strings.Contains(err.Error(), "the columns are t, x"+want) {
			t.Errorf("%s: %v, want %q", feature, err, want)
		}
	}
}
