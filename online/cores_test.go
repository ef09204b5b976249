package online

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

// TestCores learns on one core and on four, with classes that are declared late: the
// states are equal. The race detector finds work that is not apart.
func TestCores(t *testing.T) {
	cfg := testConfig(3)
	cfg.Classes.Open, cfg.Batch.MaxSize, cfg.Window = true, 10, 20
	all := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(all)
	var learners [2]*Learner
	for i, cores := range []int{1, 4} {
		runtime.GOMAXPROCS(cores)
		learners[i] = newTestLearner(t, cfg)
	}
	for i, l := range learners {
		rng := rand.New(rand.NewPCG(3, 3))
		for n := range 1200 {
			ev := blob(rng, 3)
			if n%50 == 7 { // a new class, in the midst of a minibatch
				ev.Label = fmt.Sprint("c", n/400)
			}
			l.Add(&ev)
		}
		if !l.WarmedUp() || l.forest == nil || l.bank.Cores() != []int{1, 4}[i] {
			t.Fatalf("learner %d: warmed up %t, %d cores", i, l.WarmedUp(), l.bank.Cores())
		}
	}
	if one, four := learners[0].Digest(), learners[1].Digest(); one != four {
		t.Errorf("digest %s on one core, %s on four", one, four)
	}
}

const turn = 10 // minibatches that are timed together, as a loop learns a queue: those of the other learner left the cache cold

// BenchmarkCores is the elapsed time of a minibatch on one core and on two, which take
// turns: medians, and the median of the quotients of neighbours.
func BenchmarkCores(b *testing.B) {
	if runtime.GOMAXPROCS(0) < 2 {
		b.Skip("one core")
	}
	for _, s := range []struct{ c, m, d, b int }{{6, 50, 33, 16}, {10, 100, 128, 16}, {6, 200, 33, 16}} {
		for _, mode := range []struct {
			name string
			rate float64
		}{{"fixed", 0}, {"learn", 0.02}} {
			b.Run(fmt.Sprintf("C=%d/M=%d/D=%d/B=%d/%s", s.c, s.m, s.d, s.b, mode.name), func(b *testing.B) {
				all := runtime.GOMAXPROCS(0)
				var learners [2]*Learner
				var records [2][]Record
				for i := range learners {
					runtime.GOMAXPROCS(1 + i)
					var events []Event
					learners[i], events = benchLearner(b, s.c, s.m, s.d, s.b, mode.rate)
					for learners[i].batch.len() > 0 {
						learners[i].Add(&events[0])
					}
					records[i] = endless(events)
				}
				runtime.GOMAXPROCS(all)
				var took [2][]float64
				var gains []float64
				at := 0
				for b.Loop() {
					for i, l := range learners {
						start := time.Now()
						first := at % (len(records[i]) / 2)
						learnAll(l, records[i][first:first+turn*s.b])
						took[i] = append(took[i], float64(time.Since(start).Nanoseconds())/1e3/turn)
					}
					at += turn * s.b
					gains = append(gains, took[0][len(took[0])-1]/took[1][len(took[1])-1])
				}
				if one, two := learners[0].Digest(), learners[1].Digest(); one != two {
					b.Errorf("digest %s on one core, %s on two", one, two)
				}
				for i, unit := range []string{"one-core-µs", "two-cores-µs"} {
					b.ReportMetric(median(took[i]), unit)
					b.ReportMetric(slices.Min(took[i]), "least-"+unit)
				}
				b.ReportMetric(median(gains), "gain")
			})
		}
	}
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}
