package codec

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// fuzzFormat looks for payloads of a format that are accepted and should not be.
func fuzzFormat(f *testing.F, format string) {
	for _, c := range conformance {
		if payload, ok := c.payloads(f)[format]; ok && len(payload) < 1000 {
			f.Add([]byte(payload))
		}
	}
	d := mustDecoder(f, conforming(format))
	f.Fuzz(func(t *testing.T, payload []byte) {
		readings, err := d.Decode(payload)
		if err != nil {
			checkRefusal(t, payload, err)
			return
		}
		again, err := d.Decode(slices.Clone(payload))
		if err != nil || !reflect.DeepEqual(again, readings) {
			t.Fatalf("Decode(%q) = %+v, then %+v, %v", payload, readings, again, err)
		}
		for _, r := range readings {
			checkReading(t, payload, r, len(d.names))
		}
	})
}

func checkRefusal(t *testing.T, payload []byte, err error) {
	t.Helper()
	var r *Refusal
	if !errors.As(err, &r) || !slices.Contains(Reasons(), r.Reason) {
		t.Fatalf("Decode(%q) = %v: not a refusal with a known reason", payload, err)
	}
}

// checkReading fails if a reading that was accepted is not complete and finite.
func checkReading(t *testing.T, payload []byte, r Reading, dimension int) {
	t.Helper()
	if r.X == nil && (r.Label == "" || r.ID == "") {
		t.Fatalf("Decode(%q) accepts neither a sample nor a label: %+v", payload, r)
	}
	if r.X != nil && len(r.X) != dimension {
		t.Fatalf("Decode(%q) has %d features, want %d", payload, len(r.X), dimension)
	}
	for _, v := range r.X {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Fatalf("Decode(%q) accepts %g", payload, v)
		}
	}
	for _, raw := range []string{r.RawID, r.RawTime} {
		if raw != "" && !json.Valid([]byte(raw)) {
			t.Fatalf("Decode(%q) passes on %q, which is not JSON", payload, raw)
		}
	}
}

func FuzzDecodeCBOR(f *testing.F) { fuzzFormat(f, FormatCBOR) }

func FuzzDecodeFloat32(f *testing.F) { fuzzFormat(f, formatFloat32) }

func FuzzDecodeFloat64(f *testing.F) { fuzzFormat(f, formatFloat64) }

func FuzzDecodeInflux(f *testing.F) { fuzzFormat(f, formatInflux) }

func FuzzDecodeCSV(f *testing.F) { fuzzFormat(f, formatCSV) }

func FuzzDecodeValue(f *testing.F) {
	for _, payload := range []string{"21.5", " -1e3\n", "NaN", "0x10", "", "1_0"} {
		f.Add([]byte(payload))
	}
	s := plane()
	s.Format, s.TopicTemplate, s.Topics = FormatValue, "{feature}", []string{"+"}
	d := mustDecoder(f, s)
	f.Fuzz(func(t *testing.T, payload []byte) {
		readings, err := d.Decode(payload)
		if err != nil {
			checkRefusal(t, payload, err)
			return
		}
		checkReading(t, payload, readings[0], 1)
	})
}

// Nothing that is unpacked is larger than allowed.
func FuzzUnpack(f *testing.F) {
	for _, payload := range []string{"", "[1,2,3]", strings.Repeat("a", 5000)} {
		for _, packed := range compressed(f, payload) {
			f.Add([]byte(packed))
		}
	}
	const limit = 4096
	u, err := newUnpacker(compressionAuto, limit)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		out, refusal := u.unpack(payload)
		if refusal != nil {
			checkRefusal(t, payload, refusal)
			return
		}
		if len(out) > max(limit, len(payload)) {
			t.Fatalf("unpack(%q) has %d bytes", payload, len(out))
		}
	})
}
