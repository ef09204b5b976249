package codec

import (
	"math"
	"testing"
)

// Missing features are NaN if the stream permits them, in every format, and refused
// otherwise.
func TestDecodeMissing(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name, format, payload string
		want                  []float64 // nil: refused however lenient
		strict                Reason
	}{
		{"absent", FormatJSON, `{"rms":1,"peak_hz":3}`, []float64{1, nan, 3}, MissingFeature},
		{"null", FormatJSON, `{"rms":1,"kurtosis":null,"peak_hz":3}`, []float64{1, nan, 3}, NotANumber},
		{"null in an array", FormatJSON, `[1,null,3]`, []float64{1, nan, 3}, NotANumber},
		{"in features", FormatJSON, `{"features":{"kurtosis":2}}`, []float64{nan, 2, nan}, MissingFeature},
		{"all null", FormatJSON, `[null,null,null]`, nil, NotANumber},
		{"none in features", FormatJSON, `{"features":{}}`, nil, MissingFeature},
		{"none at all", FormatJSON, `{"id":"a"}`, nil, MissingFeature},
		{"a text", FormatJSON, `{"rms":1,"kurtosis":"","peak_hz":3}`, nil, NotANumber},
		{"too few in an array", FormatJSON, `[1,3]`, nil, WrongDimension},
		{"empty cell", formatCSV, "1,,3", []float64{1, nan, 3}, MissingFeature},
		{"empty cells", formatCSV, ",,", nil, MissingFeature},
		{"absent field", formatInflux, "v rms=1,peak_hz=3", []float64{1, nan, 3}, MissingFeature},
		{"NaN", formatFloat64, raw(1, nan, 3), []float64{1, nan, 3}, NotANumber},
		{"single NaN", formatFloat32, raw(1, float32(nan), 3), []float64{1, nan, 3}, NotANumber},
		{"NaN everywhere", formatFloat64, raw(nan, nan, nan), nil, NotANumber},
		{"NaN of CBOR", FormatCBOR, "\x83\x01\xf9\x7e\x00\x03", []float64{1, nan, 3}, NotANumber},
		{"infinite of CBOR", FormatCBOR, "\x83\x01\xf9\x7c\x00\x03", nil, NotANumber},
		{"minus infinite of CBOR", FormatCBOR, "\x83\x01\xfa\xff\x80\x00\x00\x03", nil, NotANumber},
		{"infinite in a typed array", FormatCBOR, "\xd8\x55\x4c" + raw(1, float32(math.Inf(1)), 3), nil, NotANumber},
		{"infinite", formatFloat64, raw(1, math.Inf(1), 3), nil, NotANumber},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := bearing()
			s.Format = c.format
			if _, err := mustDecoder(t, s).Decode([]byte(c.payload)); err == nil || err.(*Refusal).Reason != c.strict {
				t.Errorf("strictly: %v, want %s", err, c.strict)
			}
			s.OnMissing = OnMissingMarginalise
			got, err := mustDecoder(t, s).Decode([]byte(c.payload))
			if c.want == nil {
				if err == nil {
					t.Errorf("got %v, want a refusal", got)
				}
				return
			}
			if err != nil || len(got) != 1 {
				t.Fatalf("%v, %v", got, err)
			}
			for i, v := range got[0].X {
				if math.Float64bits(v) != math.Float64bits(c.want[i]) {
					t.Errorf("feature %d is %v, want %v", i, v, c.want[i])
				}
			}
		})
	}
}
