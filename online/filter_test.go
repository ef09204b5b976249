package online

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
)

// singles is a learner that is taught one sample at a time and has a few
// filtered ones.
func singles(t *testing.T, rng *rand.Rand) *Learner {
	t.Helper()
	cfg := testConfig(3, "a", "b", "c")
	cfg.Batch.MaxSize = 1
	l := newTestLearner(t, cfg)
	feed(l, rng, 200)
	for l.filtered != replay-1 {
		feed(l, rng, 1)
	}
	return l
}

// bank is a copy of all posteriors.
func bank(l *Learner) []model.Gaussian { return l.Posterior().Bank }

// The rank-one updates of filtered samples give the posterior that a
// factorisation of all sites gives.
func TestFilterIsRefresh(t *testing.T) {
	l := singles(t, rand.New(rand.NewPCG(1, 1)))
	got := bank(l)
	for h := range l.bank {
		if err := l.refresh(h, 0, len(l.winY)); err != nil {
			t.Fatal(err)
		}
	}
	for h, want := range bank(l) {
		closeTo(t, "mean", got[h].Mean, want.Mean, 1e-10)
		var u, v []float64
		for k := range want.Classes() {
			for i := range want.M {
				at := (k*want.M + i) * want.M
				u, v = append(u, got[h].U[at:at+i+1]...), append(v, want.U[at:at+i+1]...)
			}
		}
		closeTo(t, "inverse factor", u, v, 1e-10)
	}
}

// A filtered sample's site is the one of assumed-density filtering: with it the
// posterior has the moments of the sample's likelihood times the posterior before.
func TestFilterMatchesMoments(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	l := singles(t, rng)
	for l.filtered != 1 {
		feed(l, rng, 1)
	}
	before := bank(l)
	feed(l, rng, 1)
	at, m := len(l.winY)-1, l.m
	w, y := l.work.w[0][at*m:(at+1)*m], l.winY[at]
	moments := func(g *model.Gaussian, k int) (mean, v float64) {
		u := g.U[k*m*m : (k+1)*m*m]
		for i := range m {
			var a float64
			for j := range i + 1 {
				a += u[i*m+j] * w[j]
			}
			mean += w[i] * g.Mean[k*m+i]
			v += a * a
		}
		return mean, v
	}
	for h := range before {
		var st site
		st.resize(3)
		for k := range 3 {
			st.a[k], st.v[k] = moments(&before[h], k)
			st.t[k] = l.work.q[0][at] + st.v[k]
		}
		st.update(y, 0, 1)
		for k := range 3 {
			mean, v := moments(&l.view.Bank[h], k)
			wantMean, wantV := st.a[k]+st.v[k]*st.g[k], st.v[k]*max(1-st.v[k]*max(st.h[k], 0), minTilted)
			if math.Abs(mean-wantMean) > 1e-10 || math.Abs(v-wantV) > 1e-10 {
				t.Errorf("horizon %d, class %d: mean %v and variance %v, want %v and %v", h, k, mean, v, wantMean, wantV)
			}
		}
	}
}

// A learner that is restored between two samples taught alone has the same
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
			if a, b := straight.Digest(), broken.Digest(); a != b {
				t.Fatalf("digests differ after %d events: %s, %s", i+1, a, b)
			}
			a, b := bank(straight), bank(broken)
			for h := range a {
				if !slices.Equal(a[h].Mean, b[h].Mean) || !slices.Equal(lower(&a[h]), lower(&b[h])) {
					t.Fatalf("posteriors differ after %d events, %d of them filtered", i+1, straight.filtered)
				}
			}
			seen[straight.filtered] = true
		}
		for n := range replay {
			if !seen[n] {
				t.Errorf("there never were %d filtered samples", n)
			}
		}
	}
}

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

// A wrong label is taken out of the filtered samples as it is out of the others.
func TestCorrectFiltered(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	l := singles(t, rng)
	for l.filtered != 1 {
		feed(l, rng, 1)
	}
	ev := blob(rng, 3)
	l.Add(&ev)
	filtered, points := l.filtered, len(l.winY)
	right := map[string]string{"a": "b", "b": "c", "c": "a"}[ev.Label]
	out := l.Add(&Event{Kind: Correct, X: ev.X, Label: right, Name: ev.Label, Probs: []float64{0.5, 0.3, 0.2}})
	if out.Refused != nil || l.Counters().CorrectionsExact != 1 {
		t.Fatalf("%+v, %d exact", out, l.Counters().CorrectionsExact)
	}
	// One was taken out, and taught again with the right label.
	if l.filtered != filtered || len(l.winY) != points {
		t.Errorf("%d filtered of %d, want %d of %d", l.filtered, len(l.winY), filtered, points)
	}
	checkSound(t, l)
}

// A single sample that cannot be taken in leaves no trace.
func TestFilterRollsBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	l := singles(t, rng)
	for l.filtered != 1 {
		feed(l, rng, 1)
	}
	before, params, window := bank(l), slices.Clone(l.params.Theta), slices.Clone(l.winX)
	l.bases[0].Noise = math.NaN() // then no site is a number
	ev := blob(rng, 3)
	if out := l.Add(&ev); !errors.Is(out.Refused, model.ErrNotFinite) || l.Counters().StepsRefused != 1 {
		t.Fatalf("%+v", out)
	}
	if l.filtered != 1 || !slices.Equal(l.winX, window) || !slices.Equal(l.params.Theta, params) {
		t.Error("the window did not come back")
	}
	for h, g := range bank(l) {
		if !slices.Equal(g.Mean, before[h].Mean) || !slices.Equal(lower(&g), lower(&before[h])) {
			t.Errorf("horizon %d: the posterior did not come back", h)
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
	if n := testing.AllocsPerRun(20*replay, func() {
		l.Add(&events[next%len(events)])
		next++
	}); n != 0 {
		t.Errorf("a sample learnt alone allocates %g times", n)
	}
}
