package signal

import (
	"encoding/hex"
	"slices"
	"testing"
	"time"
)

// labelled is a message of an input of held, with a label.
func labelled(input int, at int64, label string) *Message {
	m := part(input, at, at, 5)
	m.Device, m.Rows[0].Label, m.Rows[0].Null = "", label, label == "null"
	if m.Rows[0].Null {
		m.Rows[0].Label = ""
	}
	return m
}

// The label of a row that is held is a held value: it ends with another one, with null, and when
// it is older than max_age of its input.
func TestHeldLabels(t *testing.T) {
	type step struct {
		input int
		at    int64 // s
		label string
	}
	for name, c := range map[string]struct {
		hold  Hold
		steps []step
		want  []string // ids and labels
	}{
		"too old": {Hold{Every: 4 * time.Second}, []step{{0, 103, "on"}, {1, 109, ""}, {1, 121, ""}}, // of a, whose max_age is 10 s
			[]string{"@104000 on", "@108000 on", "@112000 on", "@116000 ", "@120000 "}},
		"never too old": {Hold{Every: 4 * time.Second}, []step{{1, 103, "on"}, {1, 109, ""}, {1, 121, ""}},
			[]string{"@104000 on", "@108000 on", "@112000 on", "@116000 on", "@120000 on"}},
		"null":                        {Hold{Every: 4 * time.Second}, []step{{1, 103, "on"}, {1, 105, "null"}, {1, 113, ""}}, []string{"@104000 on", "@108000 ", "@112000 "}},
		"another one":                 {Hold{Every: 4 * time.Second}, []step{{1, 103, "on"}, {0, 105, "off"}, {1, 109, ""}}, []string{"@104000 on", "@108000 off"}},
		"of an input that makes rows": {Hold{On: []string{"b"}}, []step{{1, 103, "on"}, {1, 104, ""}}, []string{"#103000 on", "#104000 "}},
		"of an input that makes none": {Hold{On: []string{"b"}}, []step{{0, 103, "on"}, {1, 104, ""}, {1, 105, "off"}, {1, 106, ""}, {1, 114, ""}}, []string{"#104000 on", "#105000 off", "#106000 on", "#114000 "}},
		"null at one that makes rows": {Hold{On: []string{"b"}}, []step{{0, 103, "on"}, {1, 104, "null"}, {1, 105, ""}}, []string{"#104000 ", "#105000 "}},
		"null at one that makes none": {Hold{On: []string{"b"}}, []step{{0, 103, "on"}, {1, 104, ""}, {0, 105, "null"}, {1, 106, ""}}, []string{"#104000 on", "#106000 "}},
	} {
		t.Run(name, func(t *testing.T) {
			through, stopped := held(t, c.hold), held(t, c.hold)
			var got, again []string
			for _, s := range c.steps {
				for _, m := range copies(through.Take(labelled(s.input, s.at*second, s.label))) {
					got = append(got, m.ID+" "+m.Label)
				}
				for _, m := range copies(stopped.Take(labelled(s.input, s.at*second, s.label))) {
					again = append(again, m.ID+" "+m.Label)
				}
				saved := stopped.Save()
				if stopped = held(t, c.hold); stopped.Restore(saved) != nil {
					t.Fatal("what is stored is not read")
				}
			}
			if !slices.Equal(got, c.want) || !slices.Equal(again, c.want) {
				t.Errorf("rows %q, with stops %q, want %q", got, again, c.want)
			}
		})
	}
}

// What version 1 has stored, without the time of the label, goes on: row a = 6 with label on at 101.5 s.
func TestRestoreVersion1(t *testing.T) {
	saved, err := hex.DecodeString("0127df5234ae75922201000017dfa1170000000000000000000000000000000000000000e87648170000000017dfa11700000000000000000000000000000000000000000001000000026f6e0000000000001840010000000000f87f0017dfa11700000000000000000000000017dfa1170000000000000000000000000000000000")
	if err != nil {
		t.Fatal(err)
	}
	s := held(t, Hold{Every: 2 * time.Second})
	if err := s.Restore(saved); err != nil {
		t.Fatal(err)
	}
	want := []made{{"@102000", "on", false, "[6 NaN]"}}
	if got := copies(s.Take(labelled(1, 103*second, ""))); !slices.Equal(got, want) {
		t.Errorf("rows %v, want %v", got, want)
	}
}
