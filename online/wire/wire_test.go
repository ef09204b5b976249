package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func Example() {
	var e Encoder
	e.String("pump")
	e.Int(2)
	e.Floats([]float64{0.5, -1})

	d := NewDecoder(e.Buf, "example: ", ErrState)
	name := d.String(64)
	fmt.Println(name, d.Floats(d.Count(10, 8, "numbers"), "numbers"), d.End())

	d = NewDecoder(e.Buf[:len(e.Buf)-1], "example: ", ErrState)
	d.String(64)
	d.Count(10, 8, "numbers")
	fmt.Println(d.Err())
	// Output:
	// pump [0.5 -1] <nil>
	// example: truncated numbers: not a valid learner state
}

func TestSection(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 40000} {
		content := bytes.Repeat([]byte{7}, n)
		var want, got Encoder
		want.String("before")
		if n > 0 {
			want.String("name")
			want.Block(content)
		}
		got.String("before")
		got.Section("name", func(e *Encoder) { e.Buf = append(e.Buf, content...) })
		if !bytes.Equal(got.Buf, want.Buf) {
			t.Errorf("%d bytes: the section differs from name and block", n)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	var e Encoder
	e.Uint(1 << 40)
	e.Int(7)
	e.Bool(true)
	e.Bool(false)
	e.Float(math.Inf(-1))
	e.Float32(1.1)
	e.Block([]byte{1, 2})
	e.String("é")
	e.Floats([]float64{1, math.Inf(1)})
	e.Ints([]int{0, 300})
	e.Uint64(1 << 63)
	e.Floats32([]float32{1.1, float32(math.Inf(1))})
	d := NewDecoder(e.Buf, "", ErrState)
	if v := d.Uint(); v != 1<<40 {
		t.Errorf("uint %d", v)
	}
	if v := d.Int(7, "count"); v != 7 {
		t.Errorf("int %d", v)
	}
	if a, b := d.Bool(), d.Bool(); !a || b {
		t.Errorf("flags %v %v", a, b)
	}
	if v := d.Float(); !math.IsInf(v, -1) {
		t.Errorf("float %v", v)
	}
	if v := d.Float32("number"); v != float64(float32(1.1)) {
		t.Errorf("32-bit float %v", v)
	}
	if b := d.Block(2, "block"); !slices.Equal(b, []byte{1, 2}) {
		t.Errorf("block %v", b)
	}
	if s := d.String(2); s != "é" {
		t.Errorf("string %q", s)
	}
	if x := d.Floats(2, "floats"); !slices.Equal(x, []float64{1, math.Inf(1)}) {
		t.Errorf("floats %v", x)
	}
	if x := d.Ints(2, 301, "ints"); !slices.Equal(x, []int{0, 300}) {
		t.Errorf("ints %v", x)
	}
	if v := d.Uint64(); v != 1<<63 {
		t.Errorf("64 bits %x", v)
	}
	x := make([]float32, 2)
	if d.Fill32(x, "floats"); !slices.Equal(x, []float32{1.1, float32(math.Inf(1))}) {
		t.Errorf("32-bit floats %v", x)
	}
	if err := d.End(); err != nil {
		t.Error(err)
	}
}

// The first error stays, everything after it is zero, and no length is trusted.
func TestDecoderErrors(t *testing.T) {
	long := append([]byte{200}, make([]byte, 16)...) // a length of 200 or more, and 15 bytes
	for name, c := range map[string]struct {
		data []byte
		read func(d *Decoder)
		want string
	}{
		"empty":          {nil, func(d *Decoder) { d.Uint() }, "truncated number"},
		"above limit":    {[]byte{9}, func(d *Decoder) { d.Int(8, "class") }, "class 9 is above 8"},
		"no index":       {[]byte{0}, func(d *Decoder) { d.Int(-1, "class") }, "class 0 is above -1"},
		"flag":           {[]byte{2}, func(d *Decoder) { d.Bool() }, "flag 2 is above 1"},
		"string":         {long, func(d *Decoder) { d.String(1000) }, "truncated string"},
		"long string":    {[]byte{5, 1, 2, 3, 4, 5}, func(d *Decoder) { d.String(4) }, "length of a string 5 is above 4"},
		"count":          {long, func(d *Decoder) { d.Count(1000, 8, "keys") }, "truncated keys"},
		"floats":         {long, func(d *Decoder) { d.Floats(math.MaxInt, "sites") }, "truncated sites"},
		"ints":           {long, func(d *Decoder) { d.Ints(math.MaxInt, 4, "labels") }, "truncated labels"},
		"not finite":     {slices.Repeat([]byte{255}, 8), func(d *Decoder) { d.Number("scores") }, "scores hold a number that is not finite"},
		"NaN":            {slices.Repeat([]byte{255}, 8), func(d *Decoder) { d.Fill(make([]float64, 1), "scores") }, "scores holds NaN"},
		"32 bits":        {slices.Repeat([]byte{255}, 4), func(d *Decoder) { d.Float32("scores") }, "scores holds a number that is not finite"},
		"many 32 bits":   {make([]byte, 7), func(d *Decoder) { d.Fill32(make([]float32, 2), "weights") }, "truncated weights"},
		"left over":      {[]byte{1, 2}, func(d *Decoder) { d.Byte() }, "1 bytes too many"},
		"of a part":      {[]byte{1}, func(d *Decoder) { p := d.Part([]byte{2}, "section a: "); p.Bool(); d.Join(p) }, "section a: flag 2"},
		"only the first": {[]byte{9}, func(d *Decoder) { d.Int(8, "class"); d.Fail("second") }, "class 9"},
	} {
		d := NewDecoder(c.data, "state: ", ErrState)
		c.read(d)
		if err := d.End(); !errors.Is(err, ErrState) || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "state: ") {
			t.Errorf("%s: error %v, want one that contains %q", name, err, c.want)
		}
		if d.Len() != 0 && d.Err() != nil || d.Uint() != 0 || d.Floats(1, "") != nil || d.Bytes(1, "") != nil {
			t.Errorf("%s: values are read after the error", name)
		}
	}
}
