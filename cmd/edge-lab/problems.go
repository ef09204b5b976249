package main

import (
	"math"
	"math/rand/v2"
	"slices"
)

// sample is a row of an artificial problem.
type sample struct {
	x     []float64
	class int
}

// problem is an artificial stream whose best prediction is known.
type problem struct {
	name, about string
	draw        func(rng *rand.Rand, n int) []sample
}

// problems are streams on which a model can fail while real data hide the reason.
// In the first four the features determine the class; in the others the order of
// the labels, their frequencies or wild values are at issue.
var problems = []problem{
	{"rings", "two classes in nine rings around the centre of a square", independent(2, unit, rings)},
	{"checkerboard", "two classes on the 4 × 4 fields of a square", independent(2, unit, checkerboard)},
	{"thresholds", "four classes by a threshold on each of two features, and two features without information", independent(4, unit, thresholds)},
	{"parity", "the parity of three of eleven binary features", independent(11, binary, parity)},
	{"unequal-noise", "labels of unequal frequency, independent of the features and of each other", unequalNoise},
	{"sorted", "three overlapping classes, one after the other", sorted},
	{"blocks", "labels that change after every 100 rows, independent of the features", blocks},
	{"rare", "a rare class, independent of the features, whose first 20 rows come together", rare},
	{"wild", "four overlapping classes; one value in a hundred is a thousand times too large", wild},
}

// independent returns a stream of independent rows whose d features determine the
// class.
func independent(d int, value func(*rand.Rand) float64, class func(x []float64) int) func(*rand.Rand, int) []sample {
	return func(rng *rand.Rand, n int) []sample {
		rows := make([]sample, n)
		for i := range rows {
			x := make([]float64, d)
			for j := range x {
				x[j] = value(rng)
			}
			rows[i] = sample{x, class(x)}
		}
		return rows
	}
}

// unit returns a uniform value in [0, 1).
func unit(rng *rand.Rand) float64 { return rng.Float64() }

// binary returns 0 or 1.
func binary(rng *rand.Rand) float64 { return float64(rng.IntN(2)) }

// rings returns the parity of ⌊12 r⌋, where r is the distance from the centre of
// the unit square.
func rings(x []float64) int { return int(12*math.Hypot(x[0]-0.5, x[1]-0.5)) % 2 }

// checkerboard returns the colour of one of the 4 × 4 fields of the unit square.
func checkerboard(x []float64) int { return (int(4*x[0]) + int(4*x[1])) % 2 }

// thresholds returns the quadrant of the first two features.
func thresholds(x []float64) int { return 2*int(2*x[0]) + int(2*x[1]) }

// parity returns the parity of the first three features, each 0 or 1.
func parity(x []float64) int { return int(x[0]+x[1]+x[2]) % 2 }

// noise returns d independent standard normal values.
func noise(rng *rand.Rand, d int) []float64 {
	x := make([]float64, d)
	for j := range x {
		x[j] = rng.NormFloat64()
	}
	return x
}

// choose draws a class by its frequency.
func choose(rng *rand.Rand, frequencies ...float64) int {
	u := rng.Float64()
	for k, p := range frequencies {
		if u -= p; u < 0 {
			return k
		}
	}
	return len(frequencies) - 1
}

// cluster returns a row around the centre of a class: features 2k and 2k+1 have the
// mean distance in class k and 0 in all others, with variance 1.
func cluster(rng *rand.Rand, d, class int, distance float64) sample {
	x := noise(rng, d)
	x[2*class] += distance
	x[2*class+1] += distance
	return sample{x, class}
}

// unequalFrequencies have an entropy of 0.866 nats.
var unequalFrequencies = []float64{0.64, 0.26, 0.10}

// unequalNoise has classes of the frequencies above and four features of noise. No
// prediction is better than the frequencies.
func unequalNoise(rng *rand.Rand, n int) []sample {
	rows := make([]sample, n)
	for i := range rows {
		rows[i] = sample{noise(rng, 4), choose(rng, unequalFrequencies...)}
	}
	return rows
}

// sorted has six features and three classes with 60, 30 and 10 % of the rows, in
// the order of the classes.
func sorted(rng *rand.Rand, n int) []sample {
	rows := make([]sample, n)
	for i := range rows {
		rows[i] = cluster(rng, 6, choose(rng, 0.6, 0.3, 0.1), 1.5)
	}
	slices.SortStableFunc(rows, func(a, b sample) int { return a.class - b.class })
	return rows
}

// blockLength is the number of rows with one label.
const blockLength = 100

// blocks has four features of noise. The label is drawn anew for every block from
// four equal classes, so that no prediction is better than ln 4 nats when the labels
// of a block become known at its end.
func blocks(rng *rand.Rand, n int) []sample {
	rows := make([]sample, n)
	for i, class := 0, 0; i < n; i++ {
		if i%blockLength == 0 {
			class = rng.IntN(4)
		}
		rows[i] = sample{noise(rng, 4), class}
	}
	return rows
}

// rare has eight features of noise. Rows 1 to 80 are of the frequent class, rows 81
// to 100 of the rare one, and every later row is of the rare one with probability
// 0.16. After row 100 no prediction is better than the frequencies 0.84 and 0.16.
func rare(rng *rand.Rand, n int) []sample {
	rows := make([]sample, n)
	for i := range rows {
		class := choose(rng, 0.84, 0.16)
		if i < 100 {
			class = i / 80
		}
		rows[i] = sample{noise(rng, 8), class}
	}
	return rows
}

// wild has eight features, four classes of equal frequency, and values that are a
// thousand times too large, one in a hundred, in any feature.
func wild(rng *rand.Rand, n int) []sample {
	rows := make([]sample, n)
	for i := range rows {
		rows[i] = cluster(rng, 8, rng.IntN(4), 2.25)
		for j := range rows[i].x {
			if rng.Float64() < 0.01 {
				rows[i].x[j] *= 1000
			}
		}
	}
	return rows
}
