package sep

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A distance that is not needed is not computed to its end, and no centre depends on it.
func TestDistanceBelow(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, d := range []int{1, 15, 16, 17, 40, 128} {
		a, b := make([]float64, d), make([]float64, d)
		for i := range a {
			a[i], b[i] = rng.NormFloat64(), rng.NormFloat64()
		}
		want := distance2(a, b)
		for _, limit := range []float64{0, want / 3, want, math.Nextafter(want, 1e9), 2 * want, math.Inf(1)} {
			if got := distanceBelow(a, b, limit); want < limit && got != want || want >= limit && got < limit {
				t.Errorf("D = %d: %v below %v, the distance is %v", d, got, limit, want)
			}
		}
	}
}

// The start does not depend on the number of workers.
func TestStartOnCores(t *testing.T) {
	const n, d, m = 90, 20, 12
	rng := rand.New(rand.NewPCG(6, 6))
	x := make([]float64, n*d)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	want := StartParams(x, n, d, m, 0.01, rand.New(rand.NewPCG(7, 7)))
	for _, size := range []int{2, 3, 8} {
		got := teamOf(size, 1).startParams(x, n, d, m, 0.01, rand.New(rand.NewPCG(7, 7)))
		if !slices.Equal(got.Theta, want.Theta) {
			t.Errorf("the parameters of %d workers are not those of one", size)
		}
	}
}

// Two neighbours are where a sort puts them, and the others on their sides.
func TestOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for name, value := range map[string]func(i int) float64{
		"random":     func(int) float64 { return rng.Float64() },
		"ties":       func(int) float64 { return float64(rng.IntN(3)) },
		"equal":      func(int) float64 { return 1 },
		"rising":     func(i int) float64 { return float64(i) },
		"falling":    func(i int) float64 { return float64(-i) },
		"two slopes": func(i int) float64 { return float64(i * (i - 60)) },
		"not finite": func(i int) float64 { return []float64{math.Inf(1), math.Inf(-1), 0}[i%3] },
	} {
		for _, n := range []int{1, 2, 3, 10, 121} {
			all := make([]float64, n)
			for i := range all {
				all[i] = value(i)
			}
			sorted := slices.Sorted(slices.Values(all))
			for at := range n {
				got := slices.Clone(all)
				order(got, at)
				if next := min(at+2, n); !slices.Equal(got[at:next], sorted[at:next]) {
					t.Errorf("%s: elements %d and %d of %d are %v, want %v", name, at, at+1, n, got[at:next], sorted[at:next])
				}
				if slices.Sort(got); !slices.Equal(got, sorted) {
					t.Errorf("%s: %d elements are no longer the same", name, n)
				}
			}
		}
	}
}

// A row that is far from all centres so far is likely to be the next one, and one at a centre is not.
func TestCentresOfSeparateRows(t *testing.T) {
	const k, d = 6, 2
	var x []float64
	for i := range 60 {
		x = append(x, 100*float64(i%k), -50*float64(i%k))
	}
	for seed := range uint64(20) {
		centres := make([]float64, k*d)
		KMeans(centres, x, 60, d, rand.New(rand.NewPCG(seed, 4)))
		found := map[float64]bool{}
		for c := range slices.Chunk(centres, d) {
			found[c[0]] = true
		}
		if len(found) != k {
			t.Errorf("seed %d: centres %v, want each of %d rows", seed, centres, k)
		}
	}
}

// Where there are more centres than different rows, a centre that no row is nearest to stays one of them.
func TestCentresOfFewRows(t *testing.T) {
	const d = 2
	rows := [][]float64{{0, 1}, {5, 5}, {-3, 2}}
	var x []float64
	for i := range 30 {
		x = append(x, rows[i%3]...)
	}
	centres := make([]float64, 7*d)
	KMeans(centres, x, 30, d, rand.New(rand.NewPCG(3, 3)))
	found := map[int]bool{}
	for c := range slices.Chunk(centres, d) {
		at := slices.IndexFunc(rows, func(row []float64) bool { return slices.Equal(row, c) })
		if found[at] = true; at < 0 {
			t.Errorf("centre %v is none of the rows", c)
		}
	}
	if len(found) != 3 {
		t.Errorf("the centres are %d of 3 rows", len(found))
	}
}

// Parameters begin in the range that learning keeps, however far from each other the rows are.
func TestStartIsInRange(t *testing.T) {
	x := []float64{-1000, -1000, -1000, 1000, 1000, 1000, 0, 0, 1000}
	p := StartParams(x, 3, 3, 2, 0.0001, rand.New(rand.NewPCG(1, 1)))
	kept := p.Clone()
	kept.Clamp(0.5)
	if at := len(p.Theta) - 1; !slices.Equal(p.Theta[:at], kept.Theta[:at]) || math.Abs(p.Eps()-0.0001) > 1e-12 {
		t.Errorf("they begin at %g, label noise %g; learning keeps %g", p.Theta, p.Eps(), kept.Theta)
	}
}
