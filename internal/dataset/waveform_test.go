package dataset

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Class means are those of the generator: half the sum of two triangles.
func TestWaveformMeans(t *testing.T) {
	const n = 30000
	w := NewWaveform(7)
	var sum [3][WaveformFeatures]float64
	var count [3]float64
	var row Row
	for range n {
		w.Next(&row)
		k := int(row.Label[0] - '0')
		count[k]++
		for i, v := range row.X {
			sum[k][i] += v
		}
	}
	for k, pair := range waveformPairs {
		if math.Abs(count[k]/n-1.0/3) > 0.015 { // five standard errors
			t.Errorf("class %d has %.0f of %d samples", k, count[k], n)
		}
		for i := range WaveformFeatures {
			got := sum[k][i] / count[k]
			want := (triangle(pair[0], i+1) + triangle(pair[1], i+1)) / 2
			if math.Abs(got-want) > 0.1 { // variance at most 1 + 36/12, 10000 samples: five standard errors
				t.Errorf("class %d, x%d: mean %.3f, want %.3f", k, i+1, got, want)
			}
		}
	}
}

func TestWaveformTriangles(t *testing.T) {
	// Breiman et al.: h1 peaks with 6 at 11, h2 at 15, h3 at 7, all fall by 1 a step.
	for which, peak := range []int{11, 15, 7} {
		for i, want := range map[int]float64{peak: 6, peak - 1: 5, peak + 5: 1, peak - 6: 0, peak + 6: 0} {
			if got := triangle(which, i); got != want {
				t.Errorf("h%d(%d) = %g, want %g", which+1, i, got, want)
			}
		}
	}
}

func TestWaveformSeeds(t *testing.T) {
	draw := func(seed uint64) (rows []Row) {
		w := NewWaveform(seed)
		for range 5 {
			var row Row
			w.Next(&row)
			rows = append(rows, row)
		}
		return rows
	}
	if diff := cmp.Diff(draw(3), draw(3)); diff != "" {
		t.Errorf("one seed, two streams:\n%s", diff)
	}
	if cmp.Equal(draw(3), draw(4)) {
		t.Error("seeds 3 and 4 give the same stream")
	}
}

// The best that a classifier can do is to choose the class whose density at x is
// the largest. For a class of triangles a, b with d = a − b and r = x − b,
//
//	∫₀¹ exp(−|r − u·d|²/2) du = √(2π/D)·exp(−(|r|² − m²D)/2)·[Φ(√D(1−m)) − Φ(−√D·m)]
//
// with D = |d|² and m = r·d/D. Its error over samples drawn is the Bayes error:
// 0.1330 ± 0.0001 of 10⁷ samples.
func TestWaveformBayesError(t *testing.T) {
	const n, bayes = 200000, 0.133
	phi := func(z float64) float64 { return 0.5 * math.Erfc(-z/math.Sqrt2) }
	var row Row
	w, wrong := NewWaveform(11), 0
	for range n {
		w.Next(&row)
		best, at := math.Inf(-1), -1
		for k, pair := range waveformPairs {
			var rr, rd, dd float64
			for i, x := range row.X {
				b := triangle(pair[1], i+1)
				d, r := triangle(pair[0], i+1)-b, x-b
				rr, rd, dd = rr+r*r, rd+r*d, dd+d*d
			}
			m, root := rd/dd, math.Sqrt(dd)
			density := -0.5*math.Log(dd) - 0.5*(rr-m*m*dd) + math.Log(phi(root*(1-m))-phi(-root*m))
			if density > best {
				best, at = density, k
			}
		}
		if at != int(row.Label[0]-'0') {
			wrong++
		}
	}
	got := float64(wrong) / n
	if se := math.Sqrt(bayes * (1 - bayes) / n); math.Abs(got-bayes) > 5*se {
		t.Errorf("the best classifier has an error of %.5f, want %g ± %.5f", got, bayes, se)
	}
}
