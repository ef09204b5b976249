package codec

import (
	"slices"
	"strings"
	"testing"
)

// A refusal of lines names the line of the payload.
func TestRefusedLines(t *testing.T) {
	stream := func(format string, signals bool) Stream {
		s := DefaultStream()
		s.Topics, s.Format = []string{"a"}, format
		if format == formatCSV {
			s.Columns = []string{"ts", "a", "b", "label"}
		}
		if s.Features = []string{"a", "b"}; signals {
			s.Features, s.Stage.Signals = nil, []string{"a", "b"}
		}
		return s
	}
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		format, payload, want string
		both                  bool // also where a and b are features
	}{
		{formatCSV, "17,1,2,ok\n\n\n18,1,,ok", "missing_feature: line 4: ", true},
		{formatCSV, "17,1,2,ok\n18,1,x,ok", "not_a_number: line 2: ", true},
		{formatCSV, "17,1,2,ok\n18,1,2," + long, "bad_label: line 2: ", true},
		{formatCSV, "17,1,2,\"o\nk\"\n", "bad_label: line 1: ", true},
		{formatCSV, "17,1,2,ok\n\n18,1", "wrong_dimension: line 3: 2 cells, want 4, with commas between them", true},
		{formatInflux, "m c=1\nm c=2\nm c=3\ncpu a=1 17", "missing_feature: line 4: ", false},
		{formatInflux, "# none\n\ncpu a=1,b=2\n \ncpu a=1 17", "missing_feature: line 5: ", true},
		{formatInflux, "cpu a=1,b=2\ncpu a=1,b=\"x\"", "not_a_number: line 2: ", true},
		{formatInflux, "cpu a=1,b=2,label=\"o\nk\"\ncpu a=1,b=2", "bad_label: line 1: ", true},
		{formatInflux, "m,source=a" + strings.Repeat("b", 2000) + " a=1,b=2,source=\"x\"\ncpu a=1,b=2", "repeated_key: line 1: ", true},
		{formatInflux, "cpu a=1,b=2\n" + "m,x=" + strings.Repeat("b", 2000) + " a=1,b=2\ncpu a=1,a=2", "repeated_key: line 3: ", true},
		{formatInflux, "cpu a=1,b=2\ncpu a=", "malformed: at line 2:", true},
	} {
		for _, signals := range []bool{true, false} {
			if !signals && !c.both {
				continue
			}
			d, err := NewDecoder(stream(c.format, signals))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Decode([]byte(c.payload)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("signals %t: Decode(%.60q): %v, want %s", signals, c.payload, err, c.want)
			}
		}
	}
}

// A first line that has the names of the columns is no row.
func TestHeaderOfColumns(t *testing.T) {
	for _, columns := range [][]string{nil, {"x", "", "y"}} {
		s := DefaultStream()
		s.Topics, s.Format, s.Columns, s.Stage.Signals = []string{"a"}, formatCSV, columns, []string{"x", "y"}
		header, row := "x, y\r\n", "1,2\n"
		if columns != nil {
			header, row = "x,,y\n", "1,0,2\n"
		}
		d := mustDecoder(t, s)
		if got, err := d.Decode([]byte(header + row + row)); err != nil || len(got) != 2 {
			t.Errorf("%q: %+v, %v, want two rows", columns, got, err)
		}
		if got, err := d.Decode([]byte(row + header)); err == nil {
			t.Errorf("%q: %+v, want a refusal of the names in the second line", columns, got)
		}
	}
}

// Cells may have semicolons or tabs between them, and a separator behind the last one.
func TestSeparatorsOfCells(t *testing.T) {
	s := DefaultStream()
	s.Topics, s.Format, s.Features, s.Columns = []string{"t"}, formatCSV, []string{"x", "y"}, []string{"x", "y", "label"}
	d, err := NewDecoder(s)
	if err != nil {
		t.Fatal(err)
	}
	for payload, label := range map[string]string{
		"1.5,2,ok\n":               "ok",
		"1.5;2;ok\r\n":             "ok",
		"1.5\t2\tok":               "ok",
		"x;y;label\n1.5;2;ok":      "ok",
		"\"1.5\";\"2\";\"a; b\"":   "a; b",
		"1.5,2,ok,":                "ok",
		"x,y,label,\n1.5,2,ok, ,":  "ok",
		"1.5;2;ok;;\n":             "ok",
		"1.5, 2,a;b\tc":            "", // a tab is in no label
		"1.5,2,a;b":                "a;b",
		"1.5,2,\"a, b; c\"":        "a, b; c",
		"1.5,2,\"a; b; c\",":       "a; b; c",
		"x,y,label\n1.5,2,a;b;c\n": "a;b;c",
	} {
		got, err := d.Decode([]byte(payload))
		if label == "" {
			if err == nil {
				t.Errorf("%q: %+v, want a refusal", payload, got)
			}
			continue
		}
		if err != nil || len(got) != 1 || !slices.Equal(got[0].X, []float64{1.5, 2}) || got[0].Label != label {
			t.Errorf("%q: %+v, %v", payload, got, err)
		}
	}
}
