package dataset

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// Waveform simulates the sensors of the demo: an endless stream of samples of the
// waveform problem,
//
//	x_i = u·h_a(i) + (1−u)·h_b(i) + N(0, 1),   i = 1..21,   u uniform in [0, 1],
//
// where each of the three classes combines two of the three triangles
//
//	h1(i) = max(6 − |i−11|, 0),   h2(i) = h1(i−4),   h3(i) = h1(i+4).
//
// No classifier has a lower error than 0.133, the Bayes error, estimated from 10⁷ samples.
//
// Source: Breiman, Friedman, Olshen & Stone, "Classification and Regression
// Trees", 1984, Section 2.6.2.
type Waveform struct {
	rng    *rand.Rand
	Number int // of the last sample
}

// WaveformFeatures is the number of features of a Waveform.
const WaveformFeatures = 21

// waveformPairs are the indices of the two triangles of each class.
var waveformPairs = [3][2]int{{0, 1}, {0, 2}, {1, 2}}

// NewWaveform returns the stream of a seed.
func NewWaveform(seed uint64) *Waveform {
	return &Waveform{rng: rand.New(rand.NewPCG(seed, 0))}
}

// Features returns the names of the features.
func (w *Waveform) Features() []string {
	names := make([]string, WaveformFeatures)
	for i := range names {
		names[i] = fmt.Sprintf("x%d", i+1)
	}
	return names
}

// Classes returns the names of the three classes in the published data sets.
func (w *Waveform) Classes() []string { return []string{"0", "1", "2"} }

// Next draws the next sample. It never returns an error.
func (w *Waveform) Next(row *Row) error {
	class := w.rng.IntN(3)
	pair, u := waveformPairs[class], w.rng.Float64()
	row.X = row.X[:0]
	for i := 1; i <= WaveformFeatures; i++ {
		row.X = append(row.X, u*triangle(pair[0], i)+(1-u)*triangle(pair[1], i)+w.rng.NormFloat64())
	}
	w.Number++
	row.Number, row.Label = w.Number, strconv.Itoa(class)
	return nil
}

// triangle returns h1, h2 or h3 (which = 0, 1, 2) at i.
func triangle(which, i int) float64 {
	centre := [3]int{11, 15, 7}[which]
	return float64(max(6-max(i-centre, centre-i), 0))
}
