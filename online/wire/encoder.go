package wire

import (
	"encoding/binary"
	"math"
)

// Encoder appends values to Buf. Its methods are not inlined: the program has up to some hundred
// calls of each, and 30 to 150 bytes of code for a call that is.
type Encoder struct{ Buf []byte }

// Uint appends an unsigned varint.
//
//go:noinline
func (e *Encoder) Uint(v uint64) { e.Buf = binary.AppendUvarint(e.Buf, v) }

// Int appends a count, v ≥ 0, as an unsigned varint.
//
//go:noinline
func (e *Encoder) Int(v int) { e.Uint(uint64(v)) }

// Uint64 appends the 8 bytes of v.
//
//go:noinline
func (e *Encoder) Uint64(v uint64) { e.Buf = binary.LittleEndian.AppendUint64(e.Buf, v) }

// Float appends the 8 bytes of v.
//
//go:noinline
func (e *Encoder) Float(v float64) {
	e.Buf = binary.LittleEndian.AppendUint64(e.Buf, math.Float64bits(v))
}

// Float32 appends the 4 bytes of v rounded to 32 bits.
//
//go:noinline
func (e *Encoder) Float32(v float64) {
	e.Buf = binary.LittleEndian.AppendUint32(e.Buf, math.Float32bits(float32(v)))
}

// Floats32 appends x without its length, which the reader has to know.
//
//go:noinline
func (e *Encoder) Floats32(x []float32) {
	for _, v := range x {
		e.Buf = binary.LittleEndian.AppendUint32(e.Buf, math.Float32bits(v))
	}
}

// Bool appends 1 or 0.
func (e *Encoder) Bool(v bool) {
	if v {
		e.Uint(1)
	} else {
		e.Uint(0)
	}
}

// String appends the length of s and s.
//
//go:noinline
func (e *Encoder) String(s string) {
	e.Int(len(s))
	e.Buf = append(e.Buf, s...)
}

// Block appends the length of b and b.
//
//go:noinline
func (e *Encoder) Block(b []byte) {
	e.Int(len(b))
	e.Buf = append(e.Buf, b...)
}

// Section appends a name and, as a Block, what content appends; nothing if that is empty.
func (e *Encoder) Section(name string, content func(*Encoder)) {
	before := len(e.Buf)
	e.String(name)
	start := len(e.Buf)
	content(e)
	n := len(e.Buf) - start
	if n == 0 {
		e.Buf = e.Buf[:before]
		return
	}
	e.Int(n) // makes room for it
	copy(e.Buf[len(e.Buf)-n:], e.Buf[start:start+n])
	binary.PutUvarint(e.Buf[start:], uint64(n))
}

// Floats appends x without its length, which the reader has to know.
//
//go:noinline
func (e *Encoder) Floats(x []float64) {
	for _, v := range x {
		e.Buf = binary.LittleEndian.AppendUint64(e.Buf, math.Float64bits(v))
	}
}

// Ints appends counts without their number, which the reader has to know.
func (e *Encoder) Ints(x []int) {
	for _, v := range x {
		e.Int(v)
	}
}
