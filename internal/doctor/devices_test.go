package doctor

import (
	"strings"
	"testing"

	"edge/internal/config"
)

// Topics of several devices that neither topic nor payload tells apart are named.
func TestDevicesThatCountAsOne(t *testing.T) {
	const of = ": several devices on f/+/v would count as one: topic_template names the level that tells them apart, or device their name in the payload"
	const inputs = "streams.s.inputs: no level has the same name in topic_template of all inputs, so that all devices count as one"
	for stream, want := range map[string]string{
		`topics: [f/+/v], signals: [x], window: {length: 64}`:                                                                       "streams.s.topics" + of,
		`topics: [$share/g/f/+/v], signals: [x], window: {length: 64}`:                                                              "streams.s.topics" + strings.Replace(of, "f/+", "$share/g/f/+", 1),
		`topics: [f/#], signals: [x], hold: {on: any}`:                                                                              "streams.s.topics" + strings.Replace(of, "f/+/v", "f/#", 1),
		`topics: [f/+/v], topic_template: "{device}/+/v", signals: [x], hold: {on: any}`:                                            "streams.s.topics" + of,
		`topics: [f/+/v], topic_template: "f/{device}/v", signals: [x], window: {length: 64}`:                                       "",
		`topics: [g/+/+/v], topic_template: "g/+/{device}/v", signals: [x], window: {length: 64}`:                                   "",
		`topics: [f/+/#], topic_template: "f/{device}/#", signals: [x], window: {length: 64}`:                                       "",
		`topics: [f/+/v], device: mac, signals: [x], window: {length: 64}`:                                                          "",
		`topics: [f/+/v], where: {id: [7]}, signals: [x], window: {length: 64}`:                                                     "",
		`topics: [f/v], signals: [x], window: {length: 64}`:                                                                         "",
		`topics: [f/+/v], features: [x]`:                                                                                            "",
		`topics: [f/+], topic_template: "f/{feature}", format: value, features: [x, y]`:                                             "",
		`topics: [f/+/+], topic_template: "f/+/{feature}", format: value, features: [x, y]`:                                         "streams.s.topics" + strings.Replace(of, "/v", "/+", 1),
		`topics: [f/+/+], topic_template: "f/{device}/{signal}", format: value, signals: [x, y], hold: {on: any}`:                   "",
		`topics: [f/+/v], format: value, fields: {x: f/+/v}, signals: [x], hold: {on: any}`:                                         "",
		`topics: [h/+/x/v], topic_template: "h/+/{signal}/v", format: value, signals: [x, y], hold: {on: any}`:                      "",
		`inputs: {a: {topics: [f/+/v]}, b: {topics: [g]}}, hold: {every: 5s}`:                                                       "streams.s.inputs.a.topics" + of,
		`inputs: {a: {topics: [f/+/v], topic_template: "f/{d}/v"}, b: {topics: [g/+], topic_template: "g/{e}"}}, hold: {every: 5s}`: inputs,
		`inputs: {a: {topics: [f/+/v], topic_template: "f/{d}/v"}, b: {topics: [g]}}, hold: {every: 5s}`:                            inputs,
		`inputs: {a: {topics: [f/+/v], topic_template: "f/{d}/v"}, b: {topics: [g/+], topic_template: "g/{d}"}}, hold: {every: 5s}`: "",
	} {
		c, err := config.Parse("c.yaml", []byte("streams: {s: {"+stream+"}}\nmodels: {m: {streams: [s]}}\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(DeviceWarnings(c), "\n"); got != want {
			t.Errorf("%s: %q, want %q", stream, got, want)
		}
	}
}

// A state, or a label, on several topics whose levels do not name the device is that of all devices.
func TestLabelsOfAllDevices(t *testing.T) {
	const of = "labels[0].topics: a label on plant/+/state is the state of all devices of stream v, until the next one: {device} in topic_template tells the devices apart"
	const byID = "labels[0].topics: a label on plant/+/label finds a sample of any device of stream v by its id: {device} in topic_template tells the devices apart"
	const last = "labels[0].topics: a label on plant/+/label is that of the newest sample, of any device of stream v: {device} in topic_template tells the devices apart"
	for labels, want := range map[string]string{
		`{topics: [plant/+/label], last: true, model: m}`:                                              last,
		`{topics: [plant/+/label], last: true, topic_template: "plant/{device}/label", model: m}`:      "",
		`{topics: [plant/+/label], last: true, model: f}`:                                              "labels[0].topics: a label on plant/+/label is that of the newest sample, of any device of stream f: {device} in topic_template, also of the stream, tells the devices apart",
		`{topics: [plant/+/label], model: f}`:                                                          "",
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
  f: {topics: [plant/+/f], features: [x]}
models: {m: {streams: [v]}, n: {streams: [v]}, one: {streams: [one]}, f: {streams: [f]}}
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
