package codec

import (
	"testing"
)

// usage is a stream of lines with one signal.
func usage(set func(*Stream)) Stream {
	s := DefaultStream()
	s.Topics, s.Format, s.Stage.Signals = []string{"a"}, formatInflux, []string{"usage"}
	set(&s)
	return s
}

// What the cells of a line without a signal hold is nobody's fault.
func TestInfluxLinesOfOthers(t *testing.T) {
	d, err := NewDecoder(usage(func(s *Stream) { s.LabelMap = map[string]string{"1": "run"} }))
	if err != nil {
		t.Fatal(err)
	}
	for payload, want := range map[string][]Reading{
		"disk,label=root free=1 17\ncpu usage=5,label=1i 17": {{X: []float64{5}, RawTime: "17", Label: "run"}},
		"disk free=1,label=\"root\" 17\ncpu usage=5 17":      {{X: []float64{5}, RawTime: "17"}},
		"cpu,label=root usage=5 17":                          nil,
		"cpu usage=5,label=\"root\" 17":                      nil,
	} {
		got, err := d.Decode([]byte(payload))
		if want == nil && refusalOf(err).Reason != BadLabel || want != nil && (err != nil || !sameReadings(got, want)) {
			t.Errorf("Decode(%q) = %+v, %v, want %+v", payload, got, err, want)
		}
	}
}

// Without a configured time the rows have that of their arrival.
func TestInfluxWithoutTime(t *testing.T) {
	d, err := NewDecoder(usage(func(s *Stream) { s.Time = "" }))
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Decode([]byte("cpu usage=5 17\ncpu usage=6 18\n"))
	if want := rowsOf1(5, 6); err != nil || !sameReadings(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if _, err := d.Decode([]byte("cpu usage=5 yesterday")); err == nil {
		t.Error("a timestamp that is none was read")
	}
}

// rowsOf1 returns readings of one value each.
func rowsOf1(x ...float64) (list []Reading) {
	for i := range x {
		list = append(list, Reading{X: x[i : i+1]})
	}
	return list
}
