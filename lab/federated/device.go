package federated

import (
	"math"
	"math/rand/v2"

	"edge/internal/dataset"
)

// Spread of the devices, where they differ.
const (
	gainSpread   = 0.25 // standard deviation of the logarithm of a feature's gain
	offsetSpread = 0.5  // of its offset, in standard deviations of the feature
)

// device measures features with gains and offsets of its own. Nil: as they are.
type device struct {
	gain, offset []float64
	x            []float64
}

// newDevice draws a device for the features of rows.
func newDevice(rows []dataset.Row, seed uint64) *device {
	rng := rand.New(rand.NewPCG(seed, 55))
	d := &device{}
	for j := range rows[0].X {
		var n, mean, squares float64
		for i := range rows {
			if v := rows[i].X[j]; v-v == 0 {
				n++
				mean += (v - mean) / n
				squares += (v*v - squares) / n
			}
		}
		sd := math.Sqrt(max(squares-mean*mean, 0))
		d.gain, d.offset = append(d.gain, math.Exp(gainSpread*rng.NormFloat64())), append(d.offset, offsetSpread*sd*rng.NormFloat64())
	}
	d.x = make([]float64, len(d.gain))
	return d
}

// measure returns x as the device measures it, until the next call.
func (d *device) measure(x []float64) []float64 {
	if d == nil {
		return x
	}
	for j, v := range x {
		d.x[j] = float64(d.gain[j]*v) + d.offset[j]
	}
	return d.x
}
