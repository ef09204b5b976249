package online

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
	"edge/online/sep"
	"edge/online/wire"
)

// filtered is the number of window points that have not been swept.
func filtered(l *Learner) int {
	var e wire.Encoder
	if l.bank.EncodeFiltered(&e); len(e.Buf) == 0 {
		return 0
	}
	return wire.NewDecoder(e.Buf, "", ErrState).Int(sep.Replay, "filtered")
}

// singles is a learner that learns one sample at a time and has a few filtered ones.
func singles(t *testing.T, rng *rand.Rand) *Learner {
	t.Helper()
	cfg := testConfig(3, "a", "b", "c")
	cfg.Batch.MaxSize = 1
	l := newTestLearner(t, cfg)
	feed(l, rng, 200)
	for filtered(l) != sep.Replay-1 {
		feed(l, rng, 1)
	}
	return l
}

// bank is a copy of all posteriors.
func bank(l *Learner) []model.Gaussian { return l.Posterior().Bank }

// lower returns the lower triangles of U.
func lower(g *model.Gaussian) (u []float64) {
	for k := range g.Classes() {
		for i := range g.M {
			at := (k*g.M + i) * g.M
			u = append(u, g.U[at:at+i+1]...)
		}
	}
	return u
}

// A learner that is restored between two samples learnt alone has the same
// posterior, to the last bit, and carries on to the same state.
func TestFilteredCarryOnExactly(t *testing.T) {
	for _, track := range []float64{0, 200} {
		cfg := testConfig(3, "a")
		cfg.Track, cfg.Batch.MaxSize = track, 3
		events, chaos := rand.New(rand.NewPCG(2, 2)), rand.New(rand.NewPCG(3, 3))
		straight, broken := newTestLearner(t, cfg), newTestLearner(t, cfg)
		seen := map[int]bool{}
		for i := range 400 {
			ev := blob(events, 3)
			straight.Add(&ev)
			broken.Add(&ev)
			if chaos.IntN(2) == 0 {
				straight.Add(&Event{Kind: Boundary})
				broken.Add(&Event{Kind: Boundary})
			}
			state, _ := broken.AppendBinary(nil)
			var err error
			if broken, err = Restore(cfg, state); err != nil {
				t.Fatal(err)
			}
			if i%10 == 9 { // a difference stays
				if a, b := straight.Digest(), broken.Digest(); a != b {
					t.Fatalf("digests differ after %d events: %s, %s", i+1, a, b)
				}
			}
			a, b := bank(straight), bank(broken)
			for h := range a {
				if !slices.Equal(a[h].Mean, b[h].Mean) || !slices.Equal(lower(&a[h]), lower(&b[h])) {
					t.Fatalf("posteriors differ after %d events, %d of them filtered", i+1, filtered(straight))
				}
			}
			seen[filtered(straight)] = true
		}
		for n := range sep.Replay {
			if !seen[n] {
				t.Errorf("%d filtered samples did not occur", n)
			}
		}
	}
}

// A wrong label is removed from the filtered samples as it is from the others.
func TestCorrectFiltered(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	l := singles(t, rng)
	for filtered(l) != 1 {
		feed(l, rng, 1)
	}
	ev := blob(rng, 3)
	l.Add(&ev)
	before, points := filtered(l), l.bank.Window()
	right := map[string]string{"a": "b", "b": "c", "c": "a"}[ev.Label]
	out := l.Add(&Event{Kind: Correct, X: ev.X, Label: right, Name: ev.Label, Probs: []float64{0.5, 0.3, 0.2}})
	if out.Refused != nil || l.Counters().CorrectionsExact != 1 {
		t.Fatalf("%+v, %d exact", out, l.Counters().CorrectionsExact)
	}
	// One was removed, and learnt again with the right label.
	if filtered(l) != before || l.bank.Window() != points {
		t.Errorf("%d filtered of %d, want %d of %d", filtered(l), l.bank.Window(), before, points)
	}
	checkSound(t, l)
}

// A single sample that cannot be included leaves no trace.
func TestFilterRollsBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	l := singles(t, rng)
	for filtered(l) != 1 {
		feed(l, rng, 1)
	}
	before, params, points := bank(l), slices.Clone(l.view.Bases[0].Zs), l.bank.Window()
	l.bank.Own()
	l.view.Bases[0].Noise = math.NaN() // then no site is a number
	ev := blob(rng, 3)
	if out := l.Add(&ev); !errors.Is(out.Refused, model.ErrNotFinite) || l.Counters().StepsRefused != 1 {
		t.Fatalf("%+v", out)
	}
	if filtered(l) != 1 || l.bank.Window() != points || !slices.Equal(l.view.Bases[0].Zs, params) {
		t.Error("the window was not restored")
	}
	for h, g := range bank(l) {
		if !slices.Equal(g.Mean, before[h].Mean) || !slices.Equal(lower(&g), lower(&before[h])) {
			t.Errorf("horizon %d: the posterior was not restored", h)
		}
	}
}

func TestFilterDoesNotAllocate(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	l := singles(t, rng)
	events := make([]Event, 256)
	for i := range events {
		events[i] = blob(rng, 3)
	}
	next := 0
	if n := testing.AllocsPerRun(20*sep.Replay, func() {
		l.Add(&events[next%len(events)])
		next++
	}); n != 0 {
		t.Errorf("a sample learnt alone allocates %g times", n)
	}
}
