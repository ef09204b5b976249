package codec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// home is a stream of signals with each kind of rule, whose values are held.
func home(format string) Stream {
	s := DefaultStream()
	s.Topics, s.Format = []string{"a"}, format
	s.Stage.Signals = []string{"plain", "contact", "mode", "power", "energy"}
	s.Raw.Values = map[string]Value{
		"contact": {Map: map[string]float64{"true": 0, "false": 1, "ajar": 0.5, "7": 7, "none": 9}, Scale: 1},
		"mode":    {OneHot: []string{"off", "heat", "2"}, Other: Other{Missing: true}, Scale: 1},
		"power":   {Unit: "W", Scale: 1},
		"energy":  {Scale: 0.001, Offset: 2, Other: Other{Numeric: true, Number: 5000}},
	}
	s.Stage.Hold.Every = time.Second
	return s
}

// TestValues reads one value of one signal in JSON and, where it is a text, as a message
// of format value. Long: one table.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		signal, json string
		want         []float64 // nil: refused
		refused      string    // part of the refusal
	}{
		{"plain", `12.5`, []float64{12.5}, ""},
		{"plain", `"12.5"`, []float64{12.5}, ""},
		{"plain", `" -1e3 "`, []float64{-1000}, ""},
		{"plain", `true`, []float64{1}, ""},
		{"plain", `false`, []float64{0}, ""},
		{"plain", `"ON"`, []float64{1}, ""},
		{"plain", `"off"`, []float64{0}, ""},
		{"plain", `"Open"`, []float64{1}, ""},
		{"plain", `"closed"`, []float64{0}, ""},
		{"plain", `"online"`, []float64{1}, ""},
		{"plain", `"offline"`, []float64{0}, ""},
		{"plain", `null`, []float64{nan}, ""},
		{"plain", `""`, []float64{nan}, ""},
		{"plain", `" Unknown "`, []float64{nan}, ""},
		{"plain", `"unavailable"`, []float64{nan}, ""},
		{"plain", `"None"`, []float64{nan}, ""},
		{"plain", `"NaN"`, []float64{nan}, ""},
		{"plain", `"closd"`, nil, `signal "plain" is "closd": want a number, or one of true, false, on, off, open, closed, online, offline; did you mean "closed"?; values.plain can map it, or have other: missing`},
		{"plain", `"12.5 °C"`, nil, `signal "plain" is "12.5 °C": want a number; values.plain can have unit: "°C"`},
		{"plain", `"0x1F"`, nil, `signal "plain" is "0x1F": want a decimal number; hexadecimal digits`},
		{"plain", `"-40%"`, nil, `values.plain can have unit: "%"`},
		{"plain", `"12:30"`, nil, `want a number, or one of true`},
		{"plain", `"12,5"`, nil, `want a number`},
		{"plain", `"1,234.5"`, nil, `no other separator`},
		{"plain", `"1.234,5"`, nil, `no other separator`},
		{"plain", `"0x10"`, nil, `hexadecimal digits are not read`},
		{"plain", `"−40"`, []float64{-40}, ""}, // U+2212
		{"plain", `".5"`, []float64{0.5}, ""},
		{"plain", `"+5"`, []float64{5}, ""},
		{"plain", `"+2.15000E+01"`, []float64{21.5}, ""},
		{"plain", `"007.50"`, []float64{7.5}, ""},
		{"plain", `"2026-11-22"`, nil, `want a number`},
		{"plain", `"1.2.3"`, nil, `want a number`},
		{"plain", `"-"`, nil, `want a number`},
		{"plain", `"+1e999"`, nil, `beyond the range of a float64`},
		{"plain", `"1e999"`, nil, `beyond the range of a float64`},
		{"plain", `1e999`, nil, `beyond the range of a float64`},
		{"plain", `{"a":1}`, nil, `signal "plain" is an object: want a number, a text, true or false; give the path of one in fields`},

		{"contact", `true`, []float64{0}, ""},
		{"contact", `"false"`, []float64{1}, ""},
		{"contact", `"ajar"`, []float64{0.5}, ""},
		{"contact", `7`, []float64{7}, ""},
		{"contact", `"7.0"`, []float64{7}, ""},
		{"contact", `"none"`, []float64{9}, ""}, // the map's own word comes first
		{"contact", `"unknown"`, []float64{nan}, ""},
		{"contact", `8`, nil, `signal "contact" is "8": want one of 7, ajar, false, none, true`},
		{"contact", `"ayar"`, nil, `did you mean "ajar"?`},

		{"mode", `"off"`, []float64{1, 0, 0}, ""},
		{"mode", `"heat"`, []float64{0, 1, 0}, ""},
		{"mode", `2.0`, []float64{0, 0, 1}, ""},
		{"mode", `null`, []float64{nan, nan, nan}, ""},
		{"mode", `"dry"`, []float64{nan, nan, nan}, ""}, // other: missing

		{"power", `"12.5 W"`, []float64{12.5}, ""},
		{"power", `"12.5W"`, []float64{12.5}, ""},
		{"power", `"+012.5 W"`, []float64{12.5}, ""},
		{"power", `"12.5"`, []float64{12.5}, ""},
		{"power", `12.5`, []float64{12.5}, ""},
		{"power", `"−12.5 W"`, []float64{-12.5}, ""},
		{"power", `"12,5 W"`, nil, `want a number with a decimal point`},
		{"power", `"1.2 kW"`, nil, `signal "power" is "1.2 kW": want a number, or one with the unit W`},
		{"power", `"5 mW"`, nil, `the unit W`},
		{"power", `"W"`, nil, `the unit W`},
		{"power", `"ON"`, nil, `the unit W`},
		{"power", `true`, nil, `the unit W`},

		{"energy", `1500`, []float64{3.5}, ""},
		{"energy", `"1500"`, []float64{3.5}, ""},
		{"energy", `"error"`, []float64{7}, ""}, // other: 5000, scaled
		{"energy", `"unavailable"`, []float64{nan}, ""},
	} {
		want := Reading{Absent: make([]bool, 7)}
		for i, name := range []string{"plain", "contact", "mode", "mode", "mode", "power", "energy"} {
			want.Absent[i] = name != c.signal
		}
		at := slices.Index(want.Absent, false)
		want.X = slices.Repeat([]float64{nan}, 7)
		copy(want.X[at:], c.want)
		check := func(how string, got []Reading, err error) {
			t.Helper()
			if c.want == nil {
				if refusalOf(err).Reason != NotANumber || !strings.Contains(err.Error(), c.refused) || len(refusalOf(err).Err.Error()) > 300 {
					t.Errorf("%s of %s as %s: %+v, %v, want a refusal with %s", c.json, c.signal, how, got, err, c.refused)
				}
			} else if err != nil || !sameReadings(got, []Reading{want}) {
				t.Errorf("%s of %s as %s: %+v, %v, want %+v", c.json, c.signal, how, got, err, want)
			}
		}
		got, err := mustDecoder(t, home(FormatJSON)).Decode(fmt.Appendf(nil, `{"linkquality":7,"%s":%s}`, c.signal, c.json))
		check("JSON", got, err)
		if json.Valid([]byte(c.json)) && c.json != "1e999" {
			got, err = mustDecoder(t, home(FormatCBOR)).Decode([]byte(asCBOR(t, fmt.Sprintf(`{"%s":%s}`, c.signal, c.json))))
			check("CBOR", got, err)
		}
		var text string
		if json.Unmarshal([]byte(c.json), &text) == nil && strings.TrimSpace(text) != "" {
			s := home(FormatValue)
			s.Topics, s.TopicTemplate = []string{"room/+/state"}, "room/{signal}/state"
			got, err = mustDecoder(t, s).DecodeMessage(new(Scratch), "room/"+c.signal+"/state", []byte(text))
			check("value", got, err)
		}
	}
}

// A unit has one meaning in all its spellings.
func TestSpellingsOfUnits(t *testing.T) {
	for unit, texts := range map[string][]string{
		"°C": {"-3.5 °C", "−3.5\u00a0°C", "-3.5℃", "-3.5 ºC"},
		"℃":  {"-3.5 °C", "-3.5 ℃"},
		"µA": {"-3.5 µA", "-3.5 \u03bcA"},
		"Ω":  {"-3.5 Ω", "-3.5 \u2126"},
	} {
		s := DefaultStream()
		s.Topics, s.Format, s.Stage.Signals = []string{"a"}, FormatValue, []string{"x"}
		s.Raw.Values = map[string]Value{"x": {Unit: unit, Scale: 1}}
		d := mustDecoder(t, s)
		for _, text := range texts {
			if got, err := d.Decode([]byte(text)); err != nil || got[0].X[0] != -3.5 {
				t.Errorf("unit %s: %s is %+v, %v", unit, text, got, err)
			}
		}
	}
}
