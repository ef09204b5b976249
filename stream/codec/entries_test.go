package codec

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"edge/stream/field"
	"edge/stream/topic"
)

// gateway is a stream of one signal, x, whose payloads name the device.
func gateway(format string, set func(*Stream)) Stream {
	s := DefaultStream()
	s.Topics, s.Format, s.Stage.Signals = []string{"a"}, format, []string{"x"}
	s.Entries.Device = Device{Path: "dev"}
	if set != nil {
		set(&s)
	}
	return s
}

// byKey makes the members of an object the entries, whose keys are the devices.
func byKey(batch string, where map[string]field.Words) func(*Stream) {
	return func(s *Stream) { s.Entries = Entries{Batch: batch, Device: Device{Path: "*"}, Where: where} }
}

// ofDevices returns readings as "device x x …", those of one device together.
func ofDevices(readings []Reading) (list []string) {
	for len(readings) > 0 {
		n := SameDevice(readings)
		text := readings[0].Device
		for _, r := range readings[:n] {
			text += fmt.Sprint(" ", r.X[0])
		}
		list, readings = append(list, text), readings[n:]
	}
	return list
}

// entryCases are payloads of several devices.
var entryCases = []struct {
	name, format, payload string
	set                   func(*Stream)
	want                  []string // as ofDevices returns them
	refused               string   // part of the refusal
}{
	{name: "a member", format: FormatJSON, payload: `{"dev":"p7","x":1}`, want: []string{"p7 1"}},
	{name: "a number", format: FormatJSON, payload: `{"dev":183,"x":1}`, want: []string{"183 1"}},
	{name: "levels", format: FormatJSON, payload: `{"model":"Nexus-TH","id":183,"x":1}`, want: []string{"Nexus-TH/183 1"},
		set: func(s *Stream) { s.Entries.Device = Device{Levels: Paths{{"model", "model"}, {"sensor", "id"}}} }},
	{name: "a name that no topic has", format: FormatJSON, payload: `{"dev":"/dev/sda+#1%","x":1}`, want: []string{"%2Fdev%2Fsda%2B%231%25 1"}},
	{name: "none", format: FormatJSON, payload: `{"x":1}`, refused: "bad_id: no device is at dev: it has x"},
	{name: "an empty one", format: FormatJSON, payload: `{"dev":"","x":1}`, refused: "bad_id: no device is at dev: it has dev, x"},
	{name: "an object", format: FormatJSON, payload: `{"dev":{},"x":1}`, refused: "bad_id: no device is at dev"},
	{name: "a long one", format: FormatJSON, payload: `{"dev":"` + strings.Repeat("d", 129) + `","x":1}`, refused: "bad_id: the device"},
	{name: "entries", format: FormatJSON, payload: `{"batch":[{"dev":"a","x":1},{"dev":"b","x":2},{"dev":"a","x":3}]}`, want: []string{"a 1 3", "b 2"}},
	{name: "an array", format: FormatJSON, payload: `[{"dev":"a","x":1},{"dev":"b","x":[2,4]},{"dev":"a","x":3}]`, want: []string{"a 1 3", "b 2 4"}},
	{name: "an entry without", format: FormatJSON, payload: `[{"dev":"a","x":1},{"x":2}]`, refused: "entry 1: no device is at dev"},
	{name: "the one around", format: FormatJSON, payload: `{"dev":"a","batch":[{"x":1},{"dev":"b","x":2},[3]]}`, want: []string{"a 1 3", "b 2"}},
	{name: "features of an entry", format: FormatJSON, payload: `{"batch":[{"dev":"a","features":[1,2]},{"dev":"b","features":[[3],[4]]}]}`, want: []string{"a 1 2", "b 3 4"}},
	{name: "another array", format: FormatJSON, payload: `{"metrics":[{"fields":{"x":1},"name":"cpu","tags":{"host":"gw"}},{"fields":{"y":2},"name":"mem","tags":{}},{"fields":{"x":3},"name":"cpu","tags":{"host":"pi"}}]}`,
		set: func(s *Stream) {
			s.Entries.Batch, s.Entries.Device.Path, s.Fields = "metrics", "tags.host", map[string]string{"x": "fields.x"}
		}, want: []string{"gw 1", "pi 3"}},
	{name: "an array inside", format: FormatJSON, payload: `{"dev":"a","data":{"values":[{"x":1},{"x":2}]}}`, set: func(s *Stream) { s.Entries.Batch = "data.values" }, want: []string{"a 1 2"}},
	{name: "no array", format: FormatJSON, payload: `{"dev":"a","batch":[],"x":1}`, set: func(s *Stream) { s.Entries.Batch = "" }, want: []string{"a 1"}},
	{name: "no signal at all", format: FormatJSON, payload: `[{"dev":"a","y":1},{"dev":"b","y":2}]`, refused: "missing_feature: entry 0: no signal is in the payload: it has dev, y"},
	{name: "those that are selected", format: FormatJSON, payload: `[{"dev":"a","ch":1,"x":1},{"dev":"b","ch":2.0,"x":2},{"dev":"c","ch":3,"x":"bad"},{"dev":"d","x":4},{"dev":"e","ch":"2","x":5}]`,
		set: func(s *Stream) { s.Entries.Where = map[string]field.Words{"ch": {"1", "2"}} }, want: []string{"a 1", "b 2", "e 5"}},
	{name: "none is selected", format: FormatJSON, payload: `{"ch":3,"x":"bad"}`, set: func(s *Stream) { s.Entries.Where = map[string]field.Words{"ch": {"1"}} }, want: nil},
	{name: "selected by what is around", format: FormatJSON, payload: `{"type":"up","batch":[{"dev":"a","x":1},{"dev":"b","type":"down","x":1}]}`,
		set: func(s *Stream) { s.Entries.Where = map[string]field.Words{"type": {"up"}} }, want: []string{"a 1"}},
	{name: "true", format: FormatJSON, payload: `[{"dev":"a","on":true,"x":1},{"dev":"b","on":false,"x":1},{"dev":"c","on":null,"x":1}]`,
		set: func(s *Stream) { s.Entries.Where = map[string]field.Words{"on": {"true"}} }, want: []string{"a 1"}},
	{name: "by index", format: FormatJSON, payload: `[["a",1],["b",2]]`,
		set: func(s *Stream) { s.Entries.Device.Path, s.Fields = "0", map[string]string{"x": "1"} }, want: []string{"a 1", "b 2"}},
	{name: "lines", format: formatInflux, payload: "cpu,dev=a x=1 1\ncpu,dev=b x=2 1\nmem,dev=b y=1 1\ncpu,dev=a x=3 2\n", want: []string{"a 1 3", "b 2"}},
	{name: "a field", format: formatInflux, payload: "cpu dev=\"a\",x=1\n", want: []string{"a 1"}},
	{name: "selected lines", format: formatInflux, payload: "cpu,dev=a,cpu=cpu0 x=1\ncpu,dev=a,cpu=total x=2\nother,dev=a,cpu=total x=\"bad\"\n",
		set: func(s *Stream) {
			s.Entries.Where = map[string]field.Words{"cpu": {"total"}, "_measurement": {"cpu"}}
		}, want: []string{"a 2"}},
	{name: "no selected line", format: formatInflux, payload: "mem,dev=a y=1\n", set: func(s *Stream) { s.Entries.Where = map[string]field.Words{"_measurement": {"cpu"}} }, want: nil},
	{name: "a line without", format: formatInflux, payload: "cpu x=1\n", refused: "line 1: no device is at dev"},
	{name: "cells", format: formatCSV, payload: "a,ok,1\nb,ok,2\na,bad,no\na,ok,3\n",
		set: func(s *Stream) {
			s.Columns, s.Entries.Where = []string{"dev", "state", "x"}, map[string]field.Words{"state": {"ok"}}
		}, want: []string{"a 1 3", "b 2"}},
	{name: "features", format: FormatJSON, payload: `{"batch":[{"dev":"a","x":1},{"dev":"b","features":[2]},{"dev":"c","ch":2,"x":"no"}],"ch":1}`,
		set: func(s *Stream) {
			s.Features, s.Stage.Signals, s.Entries.Where = []string{"x"}, nil, map[string]field.Words{"ch": {"1"}}
		}, want: []string{"a 1", "b 2"}},
	{name: "a feature without", format: FormatJSON, payload: `{"x":1}`, set: func(s *Stream) { s.Features, s.Stage.Signals = []string{"x"}, nil }, refused: "bad_id: no device is at dev"},
	{name: "members", format: FormatJSON, payload: `{"Time":"t","kitchen":{"x":1},"attic":{"y":1},"TempUnit":"C","a/b":{"x":[2,3]},"off":{"x":"bad"}}`,
		set: byKey("*", map[string]field.Words{"*": {"kitchen", "attic", "a/b"}}), want: []string{"kitchen 1", "a%2Fb 2 3"}},
	{name: "members below a key", format: FormatJSON, payload: `{"site":"hut","data":{"sensors":{"kitchen":{"x":1},"attic":{"x":2}}},"x":9}`, set: byKey("data.sensors.*", nil), want: []string{"kitchen 1", "attic 2"}},
	{name: "members in a text", format: FormatJSON, payload: `{"data":"{\"kitchen\":{\"x\":1}}"}`, set: byKey("data.*", nil), want: []string{"kitchen 1"}},
	{name: "members that are arrays", format: FormatJSON, payload: `{"Device A":[{"values":{"x":1}},{"values":{"x":2}}],"B":[{"values":{"x":3}}],"C":{"values":{"x":4}}}`,
		set: func(s *Stream) { byKey("*", nil)(s); s.Fields = map[string]string{"x": "values.x"} }, want: []string{"Device A 1 2", "B 3", "C 4"}},
	{name: "members that are rows", format: FormatJSON, payload: `{"a":[1,2],"b":[[3],[4]]}`, set: byKey("*", nil), want: []string{"a 1 2", "b 3 4"}},
	{name: "the key and what is around", format: FormatJSON, payload: `{"gw":"g1","tags":{"C1":{"x":1},"C2":{"gw":"g2","x":2}}}`,
		set: func(s *Stream) {
			byKey("tags.*", nil)(s)
			s.Entries.Device = Device{Levels: Paths{{"gateway", "gw"}, {"tag", "*"}}}
		}, want: []string{"g1/C1 1", "g2/C2 2"}},
	{name: "no members", format: FormatJSON, payload: `{"Time":"t","x":1}`, set: byKey("*", nil), refused: "missing_feature: no member is an object or an array: it has Time, x"},
	{name: "no object with members", format: FormatJSON, payload: `{"sensors":[],"t":1}`, set: byKey("sensors.*", nil), refused: "missing_feature: no signal is in the payload: it has sensors, t"},
	{name: "a bad member", format: FormatJSON, payload: `{"a":{"x":1},"b":{"x":"no"}}`, set: byKey("*", nil), refused: `not_a_number: member "b": signal "x" is "no"`},
	{name: "no signal in members", format: FormatJSON, payload: `{"a":{"y":1},"b":{"y":2}}`, set: byKey("*", nil), refused: `missing_feature: member "a": no signal is in the payload: it has y`},
	{name: "a payload that is an array", format: FormatJSON, payload: `[{"x":1}]`, set: byKey("*", nil), refused: "bad_id: entry 0: no device is at *: it has x"},
	{name: "features of members", format: FormatJSON, payload: `{"Time":"t","a":{"x":1},"b":[{"x":2},{"x":3}],"c":{"y":4}}`,
		set: func(s *Stream) {
			byKey("*", map[string]field.Words{"x": {"*"}})(s)
			s.Features, s.Stage.Signals = []string{"x"}, nil
		}, want: []string{"a 1", "b 2 3"}},
	{name: "features below a key", format: FormatJSON, payload: `{"tags":{"a":{"x":1},"b":{"features":[2]}}}`,
		set: func(s *Stream) { byKey("tags.*", nil)(s); s.Features, s.Stage.Signals = []string{"x"}, nil }, want: []string{"a 1", "b 2"}},
	{name: "a key beside them", format: FormatJSON, payload: `{"tags":{"a":{"x":1}},"y":1}`,
		set: func(s *Stream) { byKey("tags.*", nil)(s); s.Features, s.Stage.Signals = []string{"x"}, nil }, refused: `key "y" beside tags`},
	{name: "a member without a feature", format: FormatJSON, payload: `{"a":{"x":1},"b":{}}`,
		set: func(s *Stream) { byKey("*", nil)(s); s.Features, s.Stage.Signals = []string{"x"}, nil }, refused: `missing_feature: member "b": no features`},
	{name: "any value", format: FormatJSON, payload: `[{"dev":"a","on":0,"x":1},{"dev":"b","x":2},{"dev":"c","on":null,"x":3},{"dev":"d","on":{},"x":4},{"dev":"e","on":"","x":5}]`,
		set: func(s *Stream) { s.Entries.Where = map[string]field.Words{"on": {"*"}} }, want: []string{"a 1", "d 4", "e 5"}},
	{name: "no value", format: FormatJSON, payload: `{"dev":"a","params":{"wifi":{}}}`, set: func(s *Stream) { s.Entries.Where = map[string]field.Words{"params.x": {"*"}} }, want: nil},
	{name: "any tag", format: formatInflux, payload: "cpu,dev=a x=1\ncpu,dev=b,cpu=cpu0 x=2\n", set: func(s *Stream) { s.Entries.Where = map[string]field.Words{"cpu": {"*"}} }, want: []string{"b 2"}},
	{name: "members of cbor", format: FormatCBOR, payload: `{"a":{"x":1},"7":{"x":2}}`, set: byKey("*", nil), want: []string{"7 2", "a 1"}},
	{name: "cbor", format: FormatCBOR, payload: `[{"dev":"a","x":1},{"dev":7,"x":2}]`, want: []string{"a 1", "7 2"}},
}

func TestEntries(t *testing.T) {
	for _, c := range entryCases {
		payload := c.payload
		if c.format == FormatCBOR {
			payload = asCBOR(t, payload)
		}
		readings, err := mustDecoder(t, gateway(c.format, c.set)).Decode([]byte(payload))
		switch got := ofDevices(readings); {
		case c.refused != "":
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %q, %v, want the refusal %s", c.name, got, err, c.refused)
			}
		case err != nil || !reflect.DeepEqual(got, c.want):
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

// The time and the label beside members are those of members that have none.
func TestCommonTimeOfMembers(t *testing.T) {
	readings, err := mustDecoder(t, gateway(FormatJSON, byKey("tags.*", nil))).Decode([]byte(`{"ts":17,"label":"ok","tags":{"a":{"x":1},"b":{"x":2,"ts":18,"label":"no"}}}`))
	want := []Reading{{X: []float64{1}, RawTime: "17", Label: "ok", Device: "a"}, {X: []float64{2}, RawTime: "18", Label: "no", Device: "b"}}
	if err != nil || !reflect.DeepEqual(readings, want) {
		t.Errorf("%+v, %v, want %+v", readings, err, want)
	}
}

// A refusal has the device of the entry, or those of the entries whose common label it is.
func TestDeviceOfRefusal(t *testing.T) {
	for _, c := range []struct {
		format, payload string
		set             func(*Stream)
		want            string
	}{
		{FormatJSON, `{"dev":"b","x":1,"label":""}`, nil, "b"},
		{FormatJSON, `[{"dev":"a","x":1,"label":"ok"},{"dev":"b","x":1,"label":""}]`, nil, "b"},
		{FormatJSON, `{"batch":[{"dev":"a","x":1},{"dev":"b","x":1,"label":""}]}`, nil, "b"},
		{FormatJSON, `{"dev":"b","x":1,"batch":[[1]],"label":""}`, nil, "b"},
		{FormatCBOR, asCBOR(t, `[{"dev":"a","x":1},{"dev":"b","x":1,"label":""}]`), nil, "b"},
		{FormatJSON, `{"a":{"x":1},"b":[{"x":1,"label":""}]}`, byKey("*", nil), "b"},
		{formatInflux, "m,dev=a x=1\nm,dev=b x=1,label=\"\"\n", nil, "b"},
		{formatCSV, "a,1,ok\nb,1," + strings.Repeat("l", 300), func(s *Stream) { s.Columns = []string{"dev", "x", "label"} }, "b"},
		{FormatJSON, `{"batch":[{"dev":"c","x":1},{"dev":"a","x":2},{"dev":"c","x":3}],"label":""}`, nil, "c a"},
		{FormatJSON, `{"label":"","tags":{"a":{"x":1},"b":{"x":2}}}`, byKey("tags.*", nil), "a b"},
		{FormatJSON, `{"batch":[{"dev":"c","x":1},{"dev":"a","x":"no"}],"label":""}`, nil, "c"},
	} {
		readings, err := mustDecoder(t, gateway(c.format, c.set)).Decode([]byte(c.payload))
		if refusalOf(err).Reason != BadLabel || strings.Join(refusalOf(err).Devices, " ") != c.want {
			t.Errorf("%s: Decode(%q) = %v, %v, want a bad label of %s", c.format, c.payload, readings, err, c.want)
		}
	}
}

// The rows of each device are spread by the rate.
func TestRateOfDevices(t *testing.T) {
	s := gateway(FormatJSON, func(s *Stream) { s.Raw.Rate.Hz = 10 })
	readings, err := mustDecoder(t, s).Decode([]byte(`{"ts":1700000000,"batch":[{"dev":"a","x":1},{"dev":"b","x":2},{"dev":"a","x":3},{"dev":"a","x":4}]}`))
	if err != nil || len(readings) != 4 {
		t.Fatal(readings, err)
	}
	for i, want := range []time.Duration{200 * time.Millisecond, 100 * time.Millisecond, 0, 0} {
		if readings[i].Back != want {
			t.Errorf("row %d of %s is %v before its time, want %v", i, readings[i].Device, readings[i].Back, want)
		}
	}
}

func TestInvalidEntries(t *testing.T) {
	for want, set := range map[string]func(*Stream){
		`device.dev "": want a path`: func(s *Stream) {
			s.Entries.Device = Device{Levels: Paths{{"dev", ""}}}
		},
		`device "a*": want keys and array indices`:  func(s *Stream) { s.Entries.Device.Path = "a*" },
		`device "Host": want names of levels`:       func(s *Stream) { s.Entries.Device = Device{Levels: Paths{{"Host", "tags.host"}}} },
		`device 5 levels: want at most 4`:           func(s *Stream) { s.Entries.Device = Device{Levels: make(Paths, 5)} },
		`device: {sensor: dev}`:                     func(s *Stream) { s.Topics, s.TopicTemplate = []string{"+"}, "{device}" },
		`device "*": want a path; or`:               func(s *Stream) { s.Entries.Device.Path = "*" },
		`where.* "*": want a path; or`:              func(s *Stream) { s.Entries.Where = map[string]field.Words{"*": {"a"}} },
		`batch "*.a": want keys`:                    func(s *Stream) { s.Entries.Batch = "*.a" },
		`batch "a\\": want keys`:                    func(s *Stream) { s.Entries.Batch = `a\.*` },
		`batch "a*": want keys`:                     func(s *Stream) { s.Entries.Batch = "a*" },
		`batch metrics: want format json or cbor`:   func(s *Stream) { s.Format, s.Entries.Batch = formatInflux, "metrics" },
		`only topic_template names a device`:        func(s *Stream) { s.Format = FormatValue },
		`columns give csv some`:                     func(s *Stream) { s.Format = formatCSV },
		`device dev: want the name of one of colum`: func(s *Stream) { s.Format, s.Columns = formatCSV, []string{"x"} },
		`where.ch []: want a word`:                  func(s *Stream) { s.Entries.Where = map[string]field.Words{"ch": nil} },
		`where.ch "`:                                func(s *Stream) { s.Entries.Where = map[string]field.Words{"ch": {strings.Repeat("w", 129)}} },
		`where. "": want a path`: func(s *Stream) {
			s.Entries.Where = map[string]field.Words{"": {"a"}}
		},
		`device id: want id: "" beside it`: func(s *Stream) { s.Features, s.Stage.Signals, s.Entries.Device.Path = []string{"x"}, nil, "id" },
		`device {…}: want none beside inputs`: func(s *Stream) {
			in := DefaultInput()
			in.Name, in.Topics = "x", s.Topics
			s.Topics, s.Stage.Signals, s.Raw.Inputs = nil, nil, Inputs{in}
		},
	} {
		if err := gateway(FormatJSON, set).Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// An Encoder writes what the Decoder of its stream takes.
func TestEncodedDevice(t *testing.T) {
	for _, format := range []string{FormatJSON, FormatCBOR, formatCSV} {
		s := gateway(format, func(s *Stream) {
			s.Entries.Device = Device{Levels: Paths{{"model", "m.name"}, {"sensor", "m.id"}}}
			s.Entries.Where = map[string]field.Words{"kind": {"up", "other"}}
			if format == formatCSV {
				s.Columns = []string{"m.name", "m.id", "kind", "x"}
			}
		})
		e, err := NewEncoder(s)
		if err != nil {
			t.Fatal(err)
		}
		if rest := e.SetDevice([]string{"site", "a%2Fb", "7"}); !reflect.DeepEqual(rest, []string{"site"}) {
			t.Errorf("%s: the topic has %q", format, rest)
		}
		p, err := e.Row([]string{"2.5"}, -1, "")
		if err != nil {
			t.Fatal(err)
		}
		readings, err := mustDecoder(t, s).Decode(p[0].Data)
		if got := ofDevices(readings); err != nil || !reflect.DeepEqual(got, []string{"a%2Fb/7 2.5"}) {
			t.Errorf("%s: %q reads as %q, %v", format, p[0].Data, got, err)
		}
	}
}

// A device that is read can be the end of a topic, and its readings are together.
func FuzzEntries(f *testing.F) {
	for _, c := range entryCases {
		if c.format == FormatJSON {
			f.Add([]byte(c.payload))
		}
	}
	all := []*Decoder{mustDecoder(f, gateway(FormatJSON, func(s *Stream) {
		byKey("tags.*", nil)(s)
		s.Entries.Device = Device{Levels: Paths{{"model", "*"}, {"dev", "dev"}}}
	})), mustDecoder(f, gateway(FormatJSON, func(s *Stream) {
		byKey("*", map[string]field.Words{"x": {"*"}})(s)
		s.Entries.Device = Device{Levels: Paths{{"model", "*"}, {"dev", "dev"}}}
		s.Stage.Signals, s.Features, s.Fields, s.ID = nil, []string{"x"}, map[string]string{"x": "x"}, ""
	}))}
	for _, signals := range []bool{true, false} {
		all = append(all, mustDecoder(f, gateway(FormatJSON, func(s *Stream) {
			s.Entries.Device = Device{Levels: Paths{{"model", "model"}, {"dev", "dev"}}}
			s.Entries.Where, s.ID = map[string]field.Words{"ch": {"1", "2"}}, ""
			if !signals {
				s.Stage.Signals, s.Features = nil, []string{"x"}
			}
		})))
	}
	f.Add([]byte(`{"tags":{"a":{"dev":1,"x":1},"b":[{"dev":2,"x":2},{"x":3}]}}`))
	f.Add([]byte(`{"a":{"dev":1,"x":1},"b":[{"dev":2,"x":2},{"x":3}]}`))
	f.Add([]byte(`{"ch":1,"model":"m","batch":[{"dev":"a","x":1},{"dev":"b","x":2},{"dev":"a","x":3,"ch":3}]}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		for _, d := range all {
			readings, err := d.Decode(payload)
			if err != nil {
				checkRefusal(t, payload, err)
				continue
			}
			seen := map[string]bool{}
			for len(readings) > 0 {
				name := readings[0].Device
				if strings.Count(name, "/") != 1 || len(name) > maxMember || topic.Check("edge/"+name) != nil || d.signals != nil && seen[name] {
					t.Fatalf("Decode(%q): the device %q, after %v", payload, name, seen)
				}
				seen[name] = true
				readings = readings[SameDevice(readings):]
			}
		}
	})
}
