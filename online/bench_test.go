package online

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"edge/model"
)

// sizes are those of the performance figures: (C, M, D, B).
var sizes = []struct{ c, m, d, b int }{{6, 50, 33, 1}, {6, 50, 33, 16}, {6, 100, 128, 100}, {10, 200, 784, 200}}

// benchLearner is a warmed-up learner with the default horizons and window.
func benchLearner(b *testing.B, c, m, d, size int, rate float64) (*Learner, []Event) {
	return learnerAfter(b, c, m, d, size, rate, max(4*size, 2*m), max(8*size, 4*m))
}

// learnerAfter is a learner with a warm-up of that length, after that many samples.
func learnerAfter(b *testing.B, c, m, d, size int, rate float64, warmup, samples int) (*Learner, []Event) {
	cfg := DefaultConfig()
	cfg.Inducing, cfg.Batch.MaxSize, cfg.LearningRate, cfg.Warmup = m, size, rate, warmup
	cfg.Classes.Max = max(cfg.Classes.Max, c)
	for i := range d {
		cfg.Features = append(cfg.Features, fmt.Sprint("f", i))
	}
	for k := range c {
		cfg.Classes.Names = append(cfg.Classes.Names, fmt.Sprint("c", k))
	}
	l, err := NewLearner(cfg)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	events := make([]Event, samples)
	for i := range events {
		k := rng.IntN(c)
		x := make([]float64, d)
		for j := range x {
			x[j] = rng.NormFloat64()
			if j%c == k {
				x[j] += 2
			}
		}
		events[i] = Event{Kind: Observe, X: x, Label: cfg.Classes.Names[k]}
		l.Add(&events[i])
	}
	return l, events
}

// timed repeats op, of n samples, and reports processor time, which other programs on
// the machine affect far less than the clock.
func timed(b *testing.B, n int, op func()) {
	b.ReportAllocs()
	start := processorTime(b)
	for b.Loop() {
		op()
	}
	taken := processorTime(b) - start
	b.ReportMetric(taken*1e6/float64(b.N), "cpu-µs/op")
	b.ReportMetric(taken*1e6/float64(b.N*n), "cpu-µs/sample")
}

// processorTime is the processor time of this program up to now, in seconds.
func processorTime(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// BenchmarkStep is one closed minibatch of the default model: its samples'
// judgement, both sweeps of three horizons over the window, and (learn) the
// gradient step with projection.
func BenchmarkStep(b *testing.B) {
	for _, s := range sizes {
		for _, mode := range []struct {
			name string
			rate float64
		}{{"fixed", 0}, {"learn", 0.02}} {
			b.Run(fmt.Sprintf("C=%d/M=%d/D=%d/B=%d/%s", s.c, s.m, s.d, s.b, mode.name), func(b *testing.B) {
				l, events := benchLearner(b, s.c, s.m, s.d, s.b, mode.rate)
				minibatches(b, l, events)
			})
		}
	}
}

// minibatches times those that l closes by count.
func minibatches(b *testing.B, l *Learner, events []Event) {
	n, next, records := l.cfg.Batch.MaxSize, 0, endless(events)
	for l.batch.len() > 0 {
		l.Add(&events[0])
	}
	timed(b, n, func() {
		learnAll(l, records[next:next+n])
		next = (next + n) % len(events)
	})
}

// endless returns the records of events, twice: of any of the first as many follow as there
// are.
func endless(events []Event) (records []Record) {
	for range 2 {
		for _, ev := range events {
			records = append(records, Record{Event: ev})
		}
	}
	return records
}

// learnAll learns records as a loop does that has all of them.
func learnAll(l *Learner, records []Record) {
	for i := range records {
		l.expect(records[i:])
		l.Add(&records[i].Event)
	}
}

// BenchmarkPredict is one prediction, of the whole model and of a single
// posterior; BenchmarkPredictBatch is one of n that are loaded as a batch.
func BenchmarkPredict(b *testing.B) {
	for _, s := range sizes[1:] {
		b.Run(fmt.Sprintf("C=%d/M=%d/D=%d", s.c, s.m, s.d), func(b *testing.B) {
			l, events := benchLearner(b, s.c, s.m, s.d, s.b, 0.02)
			single := l.Posterior() // of one horizon and uncorrected
			single.Bank, single.Weights, single.Pool = single.Bank[:1], []float64{1}, model.Pool{}
			b.Run("whole", func(b *testing.B) { predictions(b, l.Posterior(), events) })
			b.Run("single", func(b *testing.B) { predictions(b, single, events) })
		})
	}
}

// predictions times those of p, one by one.
func predictions(b *testing.B, p *model.Posterior, events []Event) {
	ws, dst := model.NewWorkspace(), make([]float64, len(p.Classes()))
	next := 0
	timed(b, 1, func() {
		dst, _, _ = p.PredictTo(dst, events[next].X, ws)
		next = (next + 1) % len(events)
	})
}

func BenchmarkPredictBatch(b *testing.B) {
	for _, s := range sizes[1:] {
		b.Run(fmt.Sprintf("C=%d/M=%d/D=%d", s.c, s.m, s.d), func(b *testing.B) {
			l, events := benchLearner(b, s.c, s.m, s.d, s.b, 0.02)
			p, ws := l.Posterior(), model.NewWorkspace()
			var x []float64
			for i := range events {
				x = append(x, events[i].X...)
			}
			for _, n := range []int{1, 4, 16, 64} {
				b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
					dst := make([]float64, s.c)
					next := 0
					timed(b, n, func() {
						if err := p.Load(x[next*s.d:(next+n)*s.d], n, ws); err != nil {
							b.Fatal(err)
						}
						for i := range n {
							dst, _ = p.AnswerTo(dst, i, 0, ws)
						}
						next = (next + n) % (len(events) &^ 63)
					})
				})
			}
		})
	}
}

// BenchmarkCost is a minibatch and a prediction of the default model, with one
// of its sizes changed at a time: docs/results/cost.sh plots it.
func BenchmarkCost(b *testing.B) {
	const c, m, d, n = 6, 50, 33, 16
	at := func(axis string, value, c, m, d, n int) {
		b.Run(fmt.Sprintf("%s=%d", axis, value), func(b *testing.B) {
			l, events := learnerAfter(b, c, m, d, n, 0.02, max(n, 64), 4*max(n, 64))
			b.Run("step", func(b *testing.B) { minibatches(b, l, events) })
			if axis != "B" {
				b.Run("prediction", func(b *testing.B) { predictions(b, l.Posterior(), events) })
			}
		})
	}
	for _, v := range []int{25, 50, 71, 100, 141, 200, 283, 400} {
		at("M", v, c, v, d, n)
	}
	for _, v := range []int{2, 3, 6, 12, 25, 50, 100} {
		at("C", v, v, m, d, n)
	}
	for _, v := range []int{2, 4, 8, 16, 33, 64, 128, 256, 784} {
		at("D", v, c, m, v, n)
	}
	for _, v := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 400} {
		at("B", v, c, m, d, v)
	}
}

// BenchmarkSnapshot is one snapshot, with the copies that the next step makes.
func BenchmarkSnapshot(b *testing.B) {
	l, _ := benchLearner(b, 6, 50, 33, 16, 0.02)
	timed(b, 1, func() {
		l.Posterior()
		l.bank.Own()
	})
}

// BenchmarkState is the encoding of a state, as for a checkpoint.
func BenchmarkState(b *testing.B) {
	l, _ := benchLearner(b, 6, 50, 33, 16, 0.02)
	var state []byte
	timed(b, 1, func() {
		var err error
		if state, err = l.AppendBinary(state[:0]); err != nil {
			b.Fatal(err)
		}
	})
}
