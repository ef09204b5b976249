package codec_test

import (
	"errors"
	"fmt"

	"edge/stream/codec"
)

func ExampleNewDecoder() {
	s := codec.DefaultStream()
	s.Topics = []string{"factory/+/vibration"}
	s.Features = []string{"rms", "kurtosis", "peak_hz"}
	d, err := codec.NewDecoder(s)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, payload := range []string{
		`{"id":"p7-000123","features":{"rms":0.82,"kurtosis":3.9,"peak_hz":118.5},"label":"worn"}`,
		`{"rms":0.82,"kurtosis":3.9,"peak_hz":118.5}`,
		`[0.82,3.9]`,
		`{"rms":0.82,"kurtosis":NaN,"peak_hz":118.5}`,
	} {
		readings, err := d.Decode([]byte(payload))
		var refusal *codec.Refusal
		if errors.As(err, &refusal) {
			fmt.Printf("%s: %v\n", refusal.Reason, refusal.Err)
			continue
		}
		fmt.Printf("id %q, features %v, label %q\n", readings[0].ID, readings[0].X, readings[0].Label)
	}
	// Output:
	// id "p7-000123", features [0.82 3.9 118.5], label "worn"
	// id "", features [0.82 3.9 118.5], label ""
	// wrong_dimension: 2 numbers, want 3
	// not_a_number: NaN and Infinity are not JSON: want null
}

func ExampleNewLabelDecoder() {
	l := codec.DefaultLabels()
	l.Last, l.Map = true, map[string]string{"1": "worn", "0": "ok"}
	d := codec.NewLabelDecoder(l)
	for _, payload := range []string{`{"id":"p7-000123","label":1}`, "0"} {
		readings, err := d.Decode([]byte(payload))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("id %q, label %q\n", readings[0].ID, readings[0].Label)
	}
	// Output:
	// id "p7-000123", label "worn"
	// id "last", label "ok"
}
