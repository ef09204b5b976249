package codec

import (
	"slices"
	"strings"
	"testing"
)

// The refusal of an unknown key names the key that was meant, or what ignores other keys.
func TestUnknownKey(t *testing.T) {
	for _, tc := range []struct{ format, payload, want string }{
		{FormatJSON, `{"a":1,"temp":2,"Label":"ok"}`, `key "Label" is not a feature; did you mean "label"?`},
		{FormatJSON, `{"a":1,"temp":2,"lable":"ok"}`, `key "lable" is not a feature; did you mean "label"?`},
		{FormatJSON, `{"a":1,"Temp":2}`, `key "Temp" is not a feature; did you mean "temp"?`},
		{FormatJSON, "{\"a\":1,\"te\u0301mp\":2}", `key "te\u0301mp" is not a feature; list`}, // looks as témp does
		{FormatJSON, `{"a":1,"temp":2,"ID":"x"}`, `key "ID" is not a feature; did you mean "id"?`},
		{FormatJSON, `{"a":1,"temp":2,"battery":97}`, `key "battery" is not a feature; list the features in fields to ignore other keys`},
		{FormatJSON, `{"a":1,"temp":2,"c":97}`, `key "c" is not a feature; list the features`},
		{FormatCBOR, "\xa3\x61a\x01\x64temp\x02\x65Label\x62ok", `key "Label" is not a feature; did you mean "label"?`},
		{formatInflux, `m A=1,temp=2`, `key "A" is not a feature; did you mean "a"?`},
		{formatInflux, `m a=1,temp=2,rssi=3`, `key "rssi" is not a feature; list the features in fields`},
	} {
		s := DefaultStream()
		s.Topics, s.Format, s.Features = []string{"t"}, tc.format, []string{"a", "temp"}
		d, err := NewDecoder(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Decode([]byte(tc.payload)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.payload, err, tc.want)
		}
	}
}

// A stream whose label is "" ignores what a payload has under the key label.
func TestIgnoredLabel(t *testing.T) {
	for _, tc := range []struct {
		format, payload string
		fields          map[string]string
	}{
		{FormatJSON, `{"a":1,"temp":2,"label":"kitchen"}`, nil},
		{FormatJSON, `{"a":1,"temp":2,"label":["no","label"],"":"x"}`, map[string]string{"a": "a", "temp": "temp"}},
		{FormatJSON, `{"features":[1,2],"label":0.5}`, nil},
		{FormatCBOR, "\xa3\x61a\x01\x64temp\x02\x65label\x62ok", nil},
		{formatInflux, `m a=1,temp=2,label="kitchen"`, map[string]string{"a": "a", "temp": "temp"}},
		{formatCSV, `1,2,kitchen`, nil},
	} {
		s := DefaultStream()
		s.Topics, s.Format, s.Features, s.Fields, s.Label = []string{"t"}, tc.format, []string{"a", "temp"}, tc.fields, ""
		if tc.format == formatCSV {
			s.Columns = []string{"a", "temp", ""}
		}
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		got, err := mustDecoder(t, s).Decode([]byte(tc.payload))
		if err != nil || len(got) != 1 || got[0].Label != "" || !slices.Equal(got[0].X, []float64{1, 2}) {
			t.Errorf("%s: Decode(%q) = %+v, %v", tc.format, tc.payload, got, err)
		}
	}
}
