package model

import "slices"

// Calibration turns features as a sensor gives them now to the units in which the model has
// learnt them:
//
//	x_j ← Gain_j·x_j + Offset_j
//
// It is replaced and not changed, so that snapshots share it. nil: features are taken as they
// come.
type Calibration struct {
	Gain, Offset []float64 // D; gains are positive
}

// newCalibration returns one that leaves d features as they are.
func newCalibration(d int) *Calibration {
	return &Calibration{Gain: slices.Repeat([]float64{1}, d), Offset: make([]float64, d)}
}

// Clone returns a copy of c; of nil, one that leaves d features as they are.
func (c *Calibration) Clone(d int) *Calibration {
	if c == nil {
		return newCalibration(d)
	}
	return &Calibration{Gain: slices.Clone(c.Gain), Offset: slices.Clone(c.Offset)}
}

// OrNone returns c, or nil if it leaves every feature as it is.
func (c *Calibration) OrNone() *Calibration {
	for j := range c.Gain {
		if c.Moves(j) {
			return c
		}
	}
	return nil
}

// Equal reports whether c and o, which may be nil, have the same numbers.
func (c *Calibration) Equal(o *Calibration) bool {
	if c == nil || o == nil {
		return c == o
	}
	return slices.Equal(c.Gain, o.Gain) && slices.Equal(c.Offset, o.Offset)
}

// Valid reports whether all gains are positive, and gains and offsets within MaxFeature. nil is
// valid.
func (c *Calibration) Valid() bool {
	if c == nil {
		return true
	}
	for j, gain := range c.Gain {
		if !(gain > 0 && gain <= MaxFeature && c.Offset[j] >= -MaxFeature && c.Offset[j] <= MaxFeature) {
			return false
		}
	}
	return true
}

// Moves reports whether c changes feature j.
func (c *Calibration) Moves(j int) bool { return c != nil && (c.Gain[j] != 1 || c.Offset[j] != 0) }

// To stores x, D features or several inputs of them, in dst in the model's units. A missing
// one stays missing.
func (c *Calibration) To(dst, x []float64) {
	for i, v := range x {
		if v-v == 0 {
			v = c.At(i%len(c.Gain), v)
		}
		dst[i] = v
	}
}

// At returns value v of feature j in the model's units.
func (c *Calibration) At(j int, v float64) float64 {
	if !c.Moves(j) {
		return v
	}
	v = min(max(v, -MaxFeature), MaxFeature)
	return min(max(float64(c.Gain[j]*v)+c.Offset[j], -MaxFeature), MaxFeature)
}

// Mean returns the mean of feature j by which the model scales it, as the sensor gives it.
func (p *Posterior) Mean(j int) float64 {
	v := p.Scale.Mu[j]
	if c := p.Calibration; c.Moves(j) {
		v = min(max((v-c.Offset[j])/c.Gain[j], -MaxFeature), MaxFeature)
	}
	return v
}

// calibrated returns n inputs in the model's units: x itself without a calibration.
func (p *Posterior) calibrated(x []float64, ws *Workspace) []float64 {
	if p.Calibration == nil {
		return x
	}
	ws.calibrated = grow(ws.calibrated, len(x))
	p.Calibration.To(ws.calibrated, x)
	return ws.calibrated
}
