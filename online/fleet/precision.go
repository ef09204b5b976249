package fleet

import (
	"encoding/binary"
	"math"
)

// Precision is the format of the numbers of a contribution's sites.
type Precision uint8

const (
	Bfloat16 Precision = 2 // 8 bits of mantissa
	Float32  Precision = 4
)

// Bytes is the size of one number.
func (p Precision) Bytes() int { return int(p) }

// numbers reads as many numbers as dst has room for, and returns the rest.
func (p Precision) numbers(dst []float64, data []byte) []byte {
	from, rest := data[:len(dst)*p.Bytes()], data[len(dst)*p.Bytes():]
	if p == Bfloat16 {
		for i := range dst {
			dst[i] = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(from[2*i:])) << 16))
		}
		return rest
	}
	for i := range dst {
		dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(from[4*i:])))
	}
	return rest
}

// number reads a number and returns the rest.
func (p Precision) number(data []byte) (float64, []byte) {
	if p == Bfloat16 {
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(data)) << 16)), data[2:]
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(data))), data[4:]
}

// store writes v rounded, and returns the rounded value and the rest.
func (p Precision) store(data []byte, v float64) (float64, []byte) {
	bits := math.Float32bits(float32(v))
	if p == Bfloat16 {
		if v-v == 0 { // to the nearest, ties to even
			bits += 0x7fff + bits>>16&1
		}
		binary.LittleEndian.PutUint16(data, uint16(bits>>16))
		return float64(math.Float32frombits(bits &^ 0xffff)), data[2:]
	}
	binary.LittleEndian.PutUint32(data, bits)
	return float64(math.Float32frombits(bits)), data[4:]
}

// storeFactor writes a row of a factor, which it replaces by the rounded numbers, and returns the
// rest. Numbers of 16 bits are rounded to whole units before, the diagonal to one at least.
func (p Precision) storeFactor(data []byte, row []float64, unit float64) []byte {
	for j, v := range row {
		if p == Bfloat16 {
			v = math.Round(v/unit)*unit + 0 // its zero has no sign
			if j == len(row)-1 {
				v = max(v, unit)
			}
		}
		row[j], data = p.store(data, v)
	}
	return data
}

// siteUnit is the unit of the factors in a message of m inducing points: 1/32 at 50. A receiver
// adds R·Rᵀ to a precision that is I at least, so that an error counts by its size beside 1,
// however small the number is. The largest singular value of the errors grows with √m, and the
// unit falls with it. The diagonal is √ridge at least, which is one unit or more.
func siteUnit(m int) float64 {
	return math.Exp2(-max(5, math.Round(math.Log2(float64(20*m))/2)))
}
