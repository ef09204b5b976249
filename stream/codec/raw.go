package codec

import (
	"encoding/binary"
	"math"
	"slices"
)

// rawCodec reads little-endian IEEE 754 numbers: D features, or several times D for
// several samples.
type rawCodec struct {
	*schema
	size int // bytes of a number: 4 or 8
}

func (c rawCodec) decode(payload []byte) ([]Reading, *Refusal) {
	d := len(c.names)
	if len(payload)%(d*c.size) != 0 {
		return nil, Refuse(WrongDimension, "%d bytes, want %d, or a multiple of it", len(payload), d*c.size)
	}
	n := len(payload) / (d * c.size)
	if n > c.maxBatch {
		return nil, Refuse(TooLarge, "more than %d entries in a batch", c.maxBatch)
	}
	x := make([]float64, n*d)
	for i := range x {
		at := payload[i*c.size:]
		if c.size == 4 {
			x[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(at)))
		} else {
			x[i] = math.Float64frombits(binary.LittleEndian.Uint64(at))
		}
		switch nan := math.IsNaN(x[i]); {
		case nan && c.lenient:
			x[i] = math.NaN() // with one bit pattern for all NaN
		case nan || math.IsInf(x[i], 0):
			return nil, Refuse(NotANumber, "entry %d: feature %.40q is %v", i/d, c.names[i%d], x[i])
		}
		if at := i - d + 1; i%d == d-1 && !slices.ContainsFunc(x[at:i+1], func(v float64) bool { return v == v }) {
			return nil, Refuse(MissingFeature, "entry %d: no feature has a value", i/d)
		}
	}
	readings := make([]Reading, n)
	for i := range readings {
		readings[i].X = x[i*d : (i+1)*d : (i+1)*d]
	}
	return readings, nil
}
