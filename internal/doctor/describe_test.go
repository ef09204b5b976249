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

// A state, or a label, on several topics whose levels do not name the device is that of all devices.
func TestLabelsOfAllDevices(t *testing.T) {
	const of = "labels[0].topics: a label on plant/+/state is the state of all devices of stream v, until the next one: {device} in topic_template tells the devices apart"
	const byID = "labels[0].topics: a label on plant/+/label finds a sample of any device of stream v by its id: {device} in topic_template tells the devices apart"
	const last = "labels[0].topics: a label on plant/+/label is that of the newest sample, of any device of stream v: {device} in topic_template tells the devices apart"
	for labels, want := range map[string]string{
		`{topics: [plant/+/label], last: true}`:                                                        last,
		`{topics: [plant/+/label], last: true, topic_template: "plant/{device}/label"}`:                "",
		`{topics: [plant/label], last: true}`:                                                          "",
		`{topics: [plant/+/label]}`:                                                                    "",
		`{topics: [plant/+/label], topic_template: "plant/{device}/label"}`:                            "",
		`{topics: [plant/+/state], sticky: true}`:                                                      of,
		`{topics: [plant/+/state], sticky: true, topic_template: "plant/{machine}/state"}`:             of,
		`{topics: [plant/+/state], sticky: true, topic_template: "plant/{machine}/state", model: m}`:   of,
		`{topics: [plant/+/state], sticky: true, topic_template: "plant/{device}/state"}`:              "",
		`{topics: [plant/states/+], sticky: true, device: machine}`:                                    "",
		`{topics: [plant/state], sticky: true}`:                                                        "",
		`{topics: [plant/+/label], topic_template: "plant/{machine}/label"}`:                           byID,
		`{topics: [plant/+/state], sticky: true, topic_template: "plant/{machine}/state", model: one}`: "",
	} {
		c, err := config.Parse("c.yaml", []byte(`
streams:
  v: {topics: [plant/+/acc], topic_template: "plant/{device}/acc", signals: [x], window: {length: 64}}
  one: {topics: [one], signals: [x], window: {length: 64}}
models: {m: {streams: [v]}, n: {streams: [v]}, one: {streams: [one]}}
labels: [`+labels+`]
`), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(StreamWarnings(c), "\n"); got != want {
			t.Errorf("%s: %q, want %q", labels, got, want)
		}
	}
}
