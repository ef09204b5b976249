package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrState marks bytes that are not a learner's state, or are damaged.
var ErrState = errors.New("not a valid learner state")

// ErrNewer marks a state of a newer program. It is an ErrState as well.
var ErrNewer = fmt.Errorf("%w of this edge, but one of a newer edge: install that one again, or put a backup from before in its place (edge restore)", ErrState)

// Decoder reads the values that an Encoder wrote. After the first error every
// method returns zero. Like those of an Encoder, its methods are not inlined.
type Decoder struct {
	rest   []byte
	err    error
	prefix string // of the text of an error
	kind   error  // wrapped by every error
}

// NewDecoder returns a decoder of data. Every error of it begins with prefix and
// wraps kind.
func NewDecoder(data []byte, prefix string, kind error) *Decoder {
	return &Decoder{rest: data, prefix: prefix, kind: kind}
}

// Part returns a decoder of a part of d's data, whose errors carry the part's
// prefix after d's. It begins with d's error.
func (d *Decoder) Part(data []byte, prefix string) *Decoder {
	p := &Decoder{rest: data, err: d.err, prefix: d.prefix + prefix, kind: d.kind}
	if p.err != nil {
		p.rest = nil
	}
	return p
}

// Err returns the first error.
func (d *Decoder) Err() error { return d.err }

// Len is the number of bytes that are left; 0 after an error.
func (d *Decoder) Len() int { return len(d.rest) }

// Fail records an error, unless there was one before. It is not inlined: it has some ninety callers.
//
//go:noinline
func (d *Decoder) Fail(format string, args ...any) {
	d.FailAs(d.kind, format, args...)
}

// FailAs is Fail with an error that wraps another one than all others of d.
func (d *Decoder) FailAs(kind error, format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%s%s: %w", d.prefix, fmt.Sprintf(format, args...), kind)
	}
	d.rest = nil
}

// Abort records an error of another package as d's error, unless there was one before.
func (d *Decoder) Abort(err error) {
	if d.err == nil {
		d.err = fmt.Errorf("%s%w: %w", d.prefix, d.kind, err)
	}
	d.rest = nil
}

// Join takes over the error of a part.
func (d *Decoder) Join(part *Decoder) {
	if d.err == nil && part.err != nil {
		d.err, d.rest = part.err, nil
	}
}

// End returns the first error; bytes that are left over are one.
//
//go:noinline
func (d *Decoder) End() error {
	if d.err == nil && len(d.rest) > 0 {
		d.Fail("%d bytes too many", len(d.rest))
	}
	return d.err
}

// Uint reads an unsigned varint.
func (d *Decoder) Uint() uint64 {
	if len(d.rest) > 0 && d.rest[0] < 0x80 { // one byte
		v := d.rest[0]
		d.rest = d.rest[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.Fail("truncated number")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// Int reads a count of at most limit. What is its name in an error.
func (d *Decoder) Int(limit int, what string) int {
	v := d.Uint()
	if limit < 0 || v > uint64(limit) {
		d.Fail("%s %d is above %d", what, v, limit)
		return 0
	}
	return int(v)
}

// Count reads the number of elements, of size bytes each or more, that follow:
// at most limit.
func (d *Decoder) Count(limit, size int, what string) int {
	n := d.Int(limit, what)
	if n > len(d.rest)/size {
		d.Fail("truncated %s", what)
		return 0
	}
	return n
}

// Bool reads a flag.
//
//go:noinline
func (d *Decoder) Bool() bool { return d.Int(1, "flag") == 1 }

// Byte reads one byte.
func (d *Decoder) Byte() byte {
	if b := d.Bytes(1, "byte"); len(b) == 1 {
		return b[0]
	}
	return 0
}

// Uint64 reads 8 bytes.
func (d *Decoder) Uint64() uint64 {
	if len(d.rest) < 8 {
		d.Fail("truncated")
		return 0
	}
	v := binary.LittleEndian.Uint64(d.rest)
	d.rest = d.rest[8:]
	return v
}

// Bytes reads n bytes, which alias the data.
func (d *Decoder) Bytes(n int, what string) []byte {
	if n > len(d.rest) {
		d.Fail("truncated %s", what)
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

// Block reads a length, of at most limit, and that many bytes, which alias the data.
func (d *Decoder) Block(limit int, what string) []byte {
	return d.Bytes(d.Int(limit, "length of a "+what), what)
}

// String reads a string of at most limit bytes.
//
//go:noinline
func (d *Decoder) String(limit int) string { return string(d.Block(limit, "string")) }

// Float reads any 64-bit value.
func (d *Decoder) Float() float64 { return math.Float64frombits(d.Uint64()) }

// Number reads a finite 64-bit value.
func (d *Decoder) Number(what string) float64 {
	v := d.Float()
	if v-v != 0 {
		d.Fail("%s hold a number that is not finite", what)
		return 0
	}
	return v
}

// Float32 reads a finite 32-bit value.
func (d *Decoder) Float32(what string) float64 {
	if len(d.rest) < 4 {
		d.Fail("truncated %s", what)
		return 0
	}
	v := math.Float32frombits(binary.LittleEndian.Uint32(d.rest))
	d.rest = d.rest[4:]
	if v-v != 0 {
		d.Fail("%s holds a number that is not finite", what)
		return 0
	}
	return float64(v)
}

// Fill32 reads len(dst) 32-bit values, whatever they are.
func (d *Decoder) Fill32(dst []float32, what string) {
	if len(d.rest)/4 < len(dst) {
		d.Fail("truncated %s", what)
		return
	}
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(d.rest[4*i:]))
	}
	d.rest = d.rest[4*len(dst):]
}

// Fill reads len(dst) values, none of them NaN.
func (d *Decoder) Fill(dst []float64, what string) {
	if len(d.rest)/8 < len(dst) {
		d.Fail("truncated %s", what)
		return
	}
	for i := range dst {
		v := d.Float()
		if math.IsNaN(v) {
			d.Fail("%s holds NaN", what)
			return
		}
		dst[i] = v
	}
}

// Numbers reads len(dst) finite values.
//
//go:noinline
func (d *Decoder) Numbers(dst []float64, what string) {
	for i := range dst {
		dst[i] = d.Number(what)
	}
}

// Floats reads n values, none of them NaN, into a new slice; nil after an error.
func (d *Decoder) Floats(n int, what string) []float64 {
	if d.err != nil || len(d.rest)/8 < n {
		d.Fail("truncated %s", what)
		return nil
	}
	x := make([]float64, n)
	d.Fill(x, what)
	return x
}

// Ints reads n indices below limit into a new slice; nil after an error.
func (d *Decoder) Ints(n, limit int, what string) []int {
	if d.err != nil || len(d.rest) < n {
		d.Fail("truncated %s", what)
		return nil
	}
	x := make([]int, n)
	for i := range x {
		x[i] = d.Int(limit-1, what)
	}
	return x
}
