package web

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"edge/stream"
	"edge/stream/signal"
)

func TestDescribeCourse(t *testing.T) {
	c := &stream.Course{
		Signals: []string{"x", "y", "z"}, From: 1e9, To: 3e9,
		Values: []float64{
			0.123456, 1, math.NaN(), // of a range of 0.9: four decimals
			1e9 + 0.12345, 1e9, 1e9 + 30, // the mean is large, the range is not
			12345.678, -54321.987, 0, // no decimals
		},
	}
	text, err := json.Marshal(describeCourse(c))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"from":"1970-01-01T00:00:01.000Z","to":"1970-01-01T00:00:03.000Z","signals":[{"signal":"x","values":[0.1235,1,null]},` +
		`{"signal":"y","values":[1000000000.12,1000000000,1000000030]},{"signal":"z","values":[12346,-54322,0]}]}`
	if string(text) != want {
		t.Errorf("the course is\n%s, want\n%s", text, want)
	}
	for name, c := range map[string]*stream.Course{"no stage": {}, "no window": {Signals: []string{"x"}}} {
		if v := describeCourse(c); v != nil {
			t.Errorf("%s: the course is %+v", name, v)
		}
	}
	// A constant, and values that cannot be scaled, stay as they are.
	for _, values := range [][]float64{{0.1234567, 0.1234567}, {1e300, -1e300}, {5e-324, 0}, {math.NaN()}} {
		for i, v := range roundedValues(values) {
			if got := float64(v); got != values[i] && !math.IsNaN(values[i]) {
				t.Errorf("%v becomes %v", values[i], got)
			}
		}
	}
}

func TestDescribeWindows(t *testing.T) {
	if v := describeWindows(nil); v != nil {
		t.Errorf("without windows: %+v", v)
	}
	var all []stream.Window
	for i := range int64(40) {
		all = append(all, stream.Window{Stream: "acc", Device: fmt.Sprint(i), Length: signal.Span{Rows: 128}, Rows: 64, Part: 0.50004, Last: time.Unix(i, 0)})
	}
	v := describeWindows(all)
	if len(v.Devices) != shownWindows || v.Others != 8 || v.Devices[0].Device != "39" || v.Devices[0].Length != "128" || v.Devices[0].Part != 0.5 {
		t.Errorf("%d devices, %d others, the first is %+v", len(v.Devices), v.Others, v.Devices[0])
	}
	if all[0].Device != "0" {
		t.Error("the order of the windows was changed")
	}
}
