package config

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"edge/stream/codec"
	"edge/stream/signal"
)

// signals has each special form of the stage's keys.
const signals = `
mqtt: {servers: [mqtt://broker.lan]}
streams:
  pump:
    topics: ["plant/+/burst"]
    signals: [x, mode, power, contact]
    values:
      mode: {one_hot: ["off", heat], other: missing}
      power: {unit: W, scale: 0.001, offset: 2}
      contact: {map: {true: 0, off: 1, 7: 2.5}, other: 4}
    derive:
      zeta: log10(1 + power)
      alpha: zeta * 2
      mid: "lag(alpha, 5)"
    rate: {path: fs}
    qos: 0
    calendar: [hour]
    time_zone: Europe/Berlin
    window: {length: 2s, hop: 500ms, features: {x: [default, bands], mid: [mean]}}
models: {wear: {streams: [pump]}}
`

// inputs has signals of several topics.
const inputs = `
mqtt: {servers: [mqtt://broker.lan]}
streams:
  room:
    inputs:
      tv: {topics: [zigbee2mqtt/tv], fields: {tv: power, lamp: state}, max_age: 1h}
      door: {topics: [zigbee2mqtt/door], fields: {door: contact}, values: {door: {map: {"true": 0, "false": 1}}}, max_age: 0s}
      co2: {topics: [esp/co2/state], format: value, allow_retained: no, qos: 1, rate: 5}
    hold: {on: any, max_age: 5m}
    window: {length: 10}
models: {presence: {streams: [room]}}
`

// decoded returns a configuration whose streams are valid, without the checks of models.
func decoded(t *testing.T, text string, environ ...string) *Config {
	t.Helper()
	c := Default()
	if _, err := strictYAML("edge.yaml", []byte(text), &c); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ApplyEnviron(environ); err != nil {
		t.Fatal(err)
	}
	for name, s := range c.Streams {
		if err := s.Validate(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return &c
}

// What is shown of the special forms reads back.
func TestConfigShowsSignals(t *testing.T) {
	for _, text := range []string{signals, inputs} {
		want := decoded(t, text)
		var b bytes.Buffer
		if err := Write(&b, want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, decoded(t, b.String()), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("(-configuration +shown):\n%s\n%s", diff, &b)
		}
	}
}

func TestConfigSignals(t *testing.T) {
	s := decoded(t, signals).Streams["pump"]
	want := codec.DefaultStream()
	want.Topics = []string{"plant/+/burst"}
	want.Raw = codec.Raw{
		Values: map[string]codec.Value{
			"mode":    {OneHot: []string{"off", "heat"}, Other: codec.Other{Missing: true}, Scale: 1},
			"power":   {Unit: "W", Scale: 0.001, Offset: 2},
			"contact": {Map: map[string]float64{"true": 0, "off": 1, "7": 2.5}, Other: codec.Other{Numeric: true, Number: 4}, Scale: 1},
		},
		Rate: codec.Rate{Path: "fs"}, QoS: "0",
	}
	want.Stage.Signals = []string{"x", "mode", "power", "contact"}
	want.Stage.Derive = signal.Formulas{{Name: "zeta", Text: "log10(1 + power)"}, {Name: "alpha", Text: "zeta * 2"}, {Name: "mid", Text: "lag(alpha, 5)"}}
	want.Stage.Calendar, want.Stage.TimeZone = []string{"hour"}, "Europe/Berlin"
	w := &want.Stage.Window
	w.Length, w.Hop = signal.Span{Time: 2 * time.Second}, signal.Span{Time: 500 * time.Millisecond}
	w.Features = signal.Choice{Of: map[string][]string{"x": {"default", "bands"}, "mid": {"mean"}}}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, want := s.SignalNames(), []string{"x", "mode.off", "mode.heat", "power", "contact"}; !reflect.DeepEqual(got, want) {
		t.Errorf("signals %q, want %q", got, want)
	}
	if s.Raw.QoS.Level(1) != 0 || codec.QoS("").Level(1) != 1 {
		t.Errorf("quality of service %d", s.Raw.QoS.Level(1))
	}
}

// Inputs keep their order, and inherit max_age from hold; what never gets too old may be
// retained.
func TestConfigInputs(t *testing.T) {
	s := decoded(t, inputs).Streams["room"]
	if got, want := s.SignalNames(), []string{"tv", "lamp", "door", "co2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("signals %q, want %q", got, want)
	}
	if got, want := s.Filters(), []string{"zigbee2mqtt/tv", "zigbee2mqtt/door", "esp/co2/state"}; !reflect.DeepEqual(got, want) {
		t.Errorf("filters %q, want %q", got, want)
	}
	if !s.Takes("esp/co2/state") || s.Takes("esp/co2") {
		t.Error("the stream takes other topics than those of its inputs")
	}
	if s.OnMissing != codec.OnMissingMarginalise {
		t.Errorf("on_missing %s, want marginalise where values are held", s.OnMissing)
	}
	var ages []time.Duration
	var retained []bool
	for _, in := range s.Raw.Inputs {
		ages, retained = append(ages, s.MaxAge(in)), append(retained, s.TakesRetained(in))
	}
	if want := []time.Duration{time.Hour, 0, 5 * time.Minute}; !reflect.DeepEqual(ages, want) {
		t.Errorf("ages %v, want %v", ages, want)
	}
	if want := []bool{false, true, false}; !reflect.DeepEqual(retained, want) {
		t.Errorf("retained %v, want %v", retained, want)
	}
	if on := s.Stage.Hold.On; len(on) != 1 || on[0] != codec.HoldAny {
		t.Errorf("hold.on %q", on)
	}
}

// An environment variable sets keys within the special forms, and a reload sees them.
func TestConfigSignalsEnvironment(t *testing.T) {
	before := decoded(t, signals)
	c := decoded(t, signals, "EDGE_STREAMS_PUMP_DERIVE_ALPHA=zeta + 1", "EDGE_STREAMS_PUMP_WINDOW_LENGTH=4s",
		"EDGE_STREAMS_PUMP_WINDOW_FEATURES_X=mean,max", "EDGE_STREAMS_PUMP_RATE_PATH=rate", "EDGE_STREAMS_PUMP_VALUES_POWER_UNIT=kW")
	want := []string{"streams.pump.derive.alpha", "streams.pump.rate.path", "streams.pump.values.power.unit", "streams.pump.window.features.x", "streams.pump.window.length"}
	if got := before.Settings().Changes(c.Settings()); !reflect.DeepEqual(got, want) {
		t.Errorf("changes %q, want %q", got, want)
	}
	other := decoded(t, strings.Replace(signals, "      zeta: log10(1 + power)\n      alpha: zeta * 2", "      alpha: power * 2\n      zeta: log10(1 + power)", 1))
	want = []string{"streams.pump.derive", "streams.pump.derive.alpha"}
	if got := before.Settings().Changes(other.Settings()); !reflect.DeepEqual(got, want) {
		t.Errorf("changes of another order %q, want %q", got, want)
	}
}

func TestConfigRefusesSignals(t *testing.T) {
	pump := func(text string) string { return "streams:\n  pump:\n    topics: [a]\n" + text }
	for name, tc := range map[string]struct{ yaml, want string }{
		"unknown key of window":  {pump("    window: {lenght: 5}\n"), `edge.yaml:4:14: unknown key "lenght" in streams.pump.window; did you mean "length"?`},
		"unknown key of a value": {pump("    values: {x: {maps: {}}}\n"), `edge.yaml:4:18: unknown key "maps" in streams.pump.values.x; did you mean "map"?`},
		"unknown key of input":   {pump("    inputs: {x: {topic: [a]}}\n"), `edge.yaml:4:18: unknown key "topic" in streams.pump.inputs.x; did you mean "topics"?`},
		"unknown key of rate":    {pump("    rate: {pat: fs}\n"), `edge.yaml:4:12: unknown key "pat" in streams.pump.rate`},
		"list for a rate":        {pump("    rate: [5]\n"), `edge.yaml:4:11: streams.pump.rate: want a number of Hz, or {path: KEY}`},
		"word for a rate":        {pump("    rate: fast\n"), `edge.yaml:4:11: streams.pump.rate: fast: want a number`},
		"mapping for hold.on":    {pump("    hold: {on: {a: 1}}\n"), `edge.yaml:4:16: streams.pump.hold.on: want a word or a list of words`},
		"list for derive":        {pump("    derive: [a]\n"), `edge.yaml:4:13: streams.pump.derive: want keys and values`},
		"derived twice":          {pump("    derive: {a: x, a: y}\n"), `edge.yaml:4:20: streams.pump.derive.a occurs twice`},
		"word for features":      {pump("    window: {features: mean}\n"), `edge.yaml:4:24: streams.pump.window.features: want a list of features and groups, or a mapping from signal to list`},
		"length":                 {pump("    window: {length: long}\n"), `edge.yaml:4:22: streams.pump.window.length: "long": want a number of rows (256), a time (2s), or message`},
		"other":                  {pump("    values: {x: {other: maybe}}\n"), `edge.yaml:4:25: streams.pump.values.x.other: maybe: want refuse, missing, or a number`},
		"qos":                    {pump("    qos: 3\n"), `edge.yaml:4:10: streams.pump.qos: 3: want 0, 1 or 2`},
		"text in a map":          {pump("    values: {x: {map: {a: b}}}\n"), `edge.yaml:4:27: streams.pump.values.x.map.a: b: want a number`},

		"window without signals": {pump("    features: [x]\n    window: {length: 5}\n"), `edge.yaml:5:5: streams.pump.window {…}: want signals beside it`},
		"rate of years":          {pump("    signals: [x]\n    rate: 1e-10\n"), `streams.pump.rate 1e-10: want 0, or 1e-6 to 1e9 Hz`},
		"rate without signals":   {pump("    features: [x]\n    rate: 5\n"), `edge.yaml:5:5: streams.pump.rate 5: want signals beside it`},
		"dimension":              {pump("    signals: [x]\n    dimension: 3\n"), `edge.yaml:5:5: streams.pump.dimension 3: want none: signals have names`},
		"join":                   {pump("    signals: [x]\n    join: {window: 2s}\n"), `edge.yaml:5:5: streams.pump.join {2s 1000}: want none in a stream with signals`},
		"id":                     {pump("    signals: [x]\n    id: device\n"), `edge.yaml:5:5: streams.pump.id device: want none`},
		"rule of no signal":      {pump("    signals: [power]\n    values: {powr: {scale: 2}}\n"), `edge.yaml:5:5: streams.pump.values powr: want the name of a signal; did you mean "power"?`},
		"two rules":              {pump("    signals: [x]\n    values: {x: {map: {a: 1}, unit: W}}\n"), `edge.yaml:5:18: streams.pump.values.x.map {…}: want at most one of map, one_hot and unit`},
		"scale 0":                {pump("    signals: [x]\n    values: {x: {scale: 0}}\n"), `edge.yaml:5:18: streams.pump.values.x.scale 0: want a number other than 0`},
		"one number twice":       {pump("    signals: [x]\n    values: {x: {map: {1: 1, '1.0': 2}}}\n"), `streams.pump.values.x.map 1.0: want one value for one number: 1 is a key as well`},
		"one-hot collides":       {pump("    signals: [m.on, m]\n    values: {m: {one_hot: ['on']}}\n"), `edge.yaml:4:5: streams.pump.signals m.on: want each name once`},
		"map of raw numbers":     {pump("    signals: [x]\n    format: float32\n    values: {x: {map: {a: 1}}}\n"), `edge.yaml:6:14: streams.pump.values.x {…}: want scale and offset alone`},
		"rate of csv":            {pump("    signals: [x]\n    format: csv\n    rate: {path: fs}\n"), `edge.yaml:6:5: streams.pump.rate {path: fs}: want a number`},
		"value without a level":  {pump("    signals: [x, y]\n    format: value\n"), `streams.pump.topic_template "": want a level {signal}`},
		"signal of the payload":  {pump("    signals: [ts]\n"), `edge.yaml:4:5: streams.pump.signals ts: want another name`},
		"topics beside inputs":   {pump("    inputs: {x: {topics: [b]}}\n"), `edge.yaml:3:5: streams.pump.topics [a]: want none beside inputs`},
		"input without topics":   {"streams:\n  pump:\n    inputs:\n      x: {format: value}\n", `edge.yaml:4:7: streams.pump.inputs.x.topics []: want at least one filter`},
		"name of an input":       {"streams:\n  pump:\n    inputs: {X y: {topics: [b]}}\n", `streams.pump.inputs X y: want names of [a-z0-9_-]`},
		"input any":              {"streams:\n  pump:\n    inputs: {any: {topics: [b]}}\n", `streams.pump.inputs any: want names of [a-z0-9_-], and not any`},
		"name of a feature":      {pump("    signals: [x, x.mean]\n    window: {length: 8, of: [x]}\n"), `edge.yaml:4:5: streams.pump.signals x.mean: want a name that no feature of the windows has`},
		"signal of two inputs":   {"streams:\n  pump:\n    inputs: {a: {topics: [b], signals: [x]}, b: {topics: [c], signals: [x]}}\n", `streams.pump.signals x: want each name once, in all inputs`},
		"hold on no input":       {"streams:\n  pump:\n    inputs: {a: {topics: [b]}}\n    hold: {on: [c]}\n", `edge.yaml:4:12: streams.pump.hold.on c: want any, or inputs: a`},
		"hold without inputs":    {"streams:\n  pump:\n    topics: [b]\n    signals: [x]\n    hold: {on: foo}\n", `edge.yaml:5:12: streams.pump.hold.on foo: want any: the stream has no inputs`},
		"field of no signal":     {pump("    signals: [x]\n    fields: {y: z}\n"), `edge.yaml:5:5: streams.pump.fields y: want the name of a signal`},
	} {
		t.Run(name, func(t *testing.T) {
			text := tc.yaml + "models: {m: {streams: [pump]}}\nmqtt: {servers: [mqtt://h]}\n"
			if _, err := Parse("edge.yaml", []byte(text), nil); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\n= %v\nwant %s", text, err, tc.want)
			}
		})
	}
}
