package online

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"edge/online/fleet"
)

// fleetSample draws a sample of the learners of BenchmarkFleet: class k has 6 of 36
// features raised, and the classes overlap.
func fleetSample(rng *rand.Rand, cfg *Config) Event {
	k := rng.IntN(len(cfg.Classes.Names))
	x := make([]float64, len(cfg.Features))
	for j := range x {
		if x[j] = rng.NormFloat64(); j%len(cfg.Classes.Names) == k {
			x[j]++
		}
	}
	return Event{Kind: Observe, X: x, Label: cfg.Classes.Names[k]}
}

// BenchmarkFleet is a merge of 16 members with 6 classes, 50 inducing points, three
// horizons and forests, at a member with 400 labels. The parts: what the receiver
// computes from the set, and the event that carries it out. All members publish a new
// version and the receiver learns a label between two merges. "shared" has a common basis.
func BenchmarkFleet(b *testing.B) {
	for _, name := range []string{"own", "shared"} {
		b.Run(name, func(b *testing.B) {
			learner, set, next := fleetOf16(b, name == "shared")
			var sum, whole float64
			b.ReportAllocs()
			for b.Loop() {
				next()
				from := processorTime(b)
				m, err := learner.Merge("own", set)
				if err != nil || m.Taken() != 16 {
					b.Fatal(err, m.Taken())
				}
				sum += processorTime(b) - from
				ev := MergeEvent(m)
				if out := learner.Add(&ev); out.Refused != nil {
					b.Fatal(out.Refused)
				}
				whole += processorTime(b) - from
			}
			b.ReportMetric(sum*1e3/float64(b.N), "cpu-ms/sum")
			b.ReportMetric(whole*1e3/float64(b.N), "cpu-ms/merge")
		})
	}
}

// fleetOf16 returns a learner and the contributions of 16 others. next is called before
// each merge.
func fleetOf16(b testing.TB, shared bool) (learner *Learner, set *fleet.Set, next func()) {
	cfg := DefaultConfig()
	cfg.Fleet.Shared, cfg.Fleet.Trust = shared, math.Inf(-1)
	for j := range 36 {
		cfg.Features = append(cfg.Features, fmt.Sprint("f", j))
	}
	cfg.Classes.Names = []string{"c0", "c1", "c2", "c3", "c4", "c5"}
	set = fleet.NewSet(0)
	var versions [][2]*fleet.Contribution
	for i := range 17 {
		c := cfg
		c.Seed = uint64(i)
		l, err := NewLearner(c)
		if err != nil {
			b.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(c.Seed, 1))
		learn := func(n int) {
			for range n {
				ev := fleetSample(rng, &cfg)
				l.Add(&ev)
			}
		}
		learn(200)
		if shared && i > 0 { // adopt the basis of the first
			m, err := l.Merge(fmt.Sprint("m", i), set)
			if err != nil {
				b.Fatal(err)
			}
			ev := MergeEvent(m)
			l.Add(&ev)
		} else if shared {
			set.Vacant = true
			m, err := l.Merge("own", set)
			if err != nil {
				b.Fatal(err)
			}
			ev := MergeEvent(m)
			l.Add(&ev)
			set.Offer(m.Announce)
			set.Vacant = false
		}
		learn(200)
		if i == 0 {
			learner = l
			next = func() {
				learn(16)
				l.Add(&Event{Kind: Boundary})
			}
			continue
		}
		var two [2]*fleet.Contribution
		for v := range two {
			learn(16)
			if two[v], err = l.Contribution(fmt.Sprint("m", i)); err != nil {
				b.Fatal(err)
			}
		}
		versions = append(versions, two)
		set.Put(two[0])
	}
	sequence, learn := uint64(0), next
	return learner, set, func() {
		learn()
		for _, two := range versions {
			c := *two[sequence%2]
			c.Version = fleet.Version{Epoch: 1, Sequence: sequence + 1}
			set.Put(&c)
		}
		sequence++
	}
}
