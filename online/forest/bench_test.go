package forest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"edge/model"
)

// BenchmarkLearn learns one label, and BenchmarkLogs answers for one sample, of a forest
// of the default size that is full.
func BenchmarkLearn(b *testing.B) {
	for _, size := range []struct{ c, d int }{{2, 8}, {6, 33}, {40, 21}} {
		b.Run(fmt.Sprintf("C=%d_D=%d", size.c, size.d), func(b *testing.B) {
			l, x, y := full(size.c, size.d)
			weight := []float64{1}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				at := i % len(y)
				l.Learn(x[at*size.d:(at+1)*size.d], y[at:at+1], weight)
			}
		})
	}
}

func BenchmarkLogs(b *testing.B) {
	for _, size := range []struct{ c, d int }{{2, 8}, {6, 33}, {40, 21}} {
		b.Run(fmt.Sprintf("C=%d_D=%d", size.c, size.d), func(b *testing.B) {
			l, x, y := full(size.c, size.d)
			raw, logs := make([]float32, size.d), make([]float64, size.c)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				at := i % len(y)
				model.RawTo(raw, x[at*size.d:(at+1)*size.d])
				l.forest.LogsTo(logs, raw)
			}
		})
	}
}

// full has learnt 20000 samples, of which it returns 1000.
func full(c, d int) (*Learner, []float64, []int) {
	rng := rand.New(rand.NewPCG(1, 1))
	names := make([]string, c)
	l := New(Config{Features: d, Sizes: Sizes{50, 64, 1000}, Seed: 1}, &model.Posterior{Names: names})
	centre := make([]float64, c*d)
	for i := range centre {
		centre[i] = rng.NormFloat64()
	}
	const n = 20000
	x, y, w := make([]float64, n*d), make([]int, n), make([]float64, n)
	for i := range y {
		y[i], w[i] = rng.IntN(c), 1
		for j := range d {
			x[i*d+j] = centre[y[i]*d+j] + rng.NormFloat64()
		}
	}
	l.Learn(x, y, w)
	return l, x[:1000*d], y[:1000]
}

// BenchmarkGrowAnew grows a tree of a forest of the default size from 1000 stored samples.
func BenchmarkGrowAnew(b *testing.B) {
	for _, size := range []struct{ c, d int }{{2, 8}, {6, 33}, {40, 21}} {
		b.Run(fmt.Sprintf("C=%d_D=%d", size.c, size.d), func(b *testing.B) {
			l, _, _ := full(size.c, size.d)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				l.growAnew(i % l.cfg.Trees)
			}
		})
	}
}
