package doctor

import (
	"strings"
	"testing"

	"edge/internal/config"
)

// What the payloads say of devices and entries is described for streams and inputs.
func TestDescribedEntries(t *testing.T) {
	c, err := config.Parse("c.yaml", []byte(`
streams:
  g: {topics: [rtl/events], device: {model: model, sensor: id}, where: {kind: [up, down]}, signals: [x]}
  f: {topics: [f], device: dev, features: [x]}
  k: {topics: [k], batch: "sensors.*", device: "*", where: {Id: "*"}, signals: [x]}
  i: {inputs: {t: {topics: [r], where: {n: t}, fields: {t: v}}, h: {topics: [r], where: {n: h}, fields: {h: v}}}, hold: {every: 10s}}
models: {m: {streams: [g]}, n: {streams: [f]}, k: {streams: [k]}, o: {streams: [i]}}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	Describe(&b, "c.yaml", c, false)
	for _, want := range []string{"from f, as json\n         the payload has the device at dev\n", "has the device at model, id\n         only where kind is up or down\n",
		"the payload has the device at *\n         only where Id has a value\n",
		"2 signals from r, by 2 inputs\n         t: only where n is t\n         h: only where n is h\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the description lacks %q:\n%s", want, b.String())
		}
	}
}

// The clock of a calendar is shown, in its zone: that of a machine may be UTC without a word.
func TestDescribedCalendar(t *testing.T) {
	c, err := config.Parse("c.yaml", []byte(`
streams: {g: {topics: [g], signals: [x], calendar: [hour], time_zone: UTC}, f: {topics: [f], signals: [x]}}
models: {m: {streams: [g]}, n: {streams: [f]}}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	Describe(&b, "c.yaml", c, false)
	if text := b.String(); strings.Count(text, "the calendar has ") != 1 || !strings.Contains(text, " UTC now; time_zone sets its zone\n") {
		t.Errorf("described as\n%s", text)
	}
}
