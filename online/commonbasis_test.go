package online

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
	"edge/online/fleet"
	"edge/test/fleettest"
)

func sharedConfig() Config {
	cfg := fleetConfig()
	cfg.Fleet.Shared = true
	return cfg
}

// offer returns the basis that a member founds after n samples.
func offer(t *testing.T, cfg Config, author string, seed uint64, n int, classes ...string) *fleet.Common {
	t.Helper()
	set := fleet.NewSet(0)
	set.Vacant, set.Tag = true, seed
	m, err := taught(t, cfg, seed, n, classes...).Merge(author, set)
	if err != nil || m.Announce == nil {
		t.Fatalf("no basis is founded: %+v, %v", m, err)
	}
	data, err := m.Announce.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := fleet.DecodeCommon(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// offered returns a set with a common basis alone.
func offered(c *fleet.Common) *fleet.Set {
	set := fleet.NewSet(0)
	set.Offer(c)
	return set
}

// A learner that hears of a basis in the warm-up builds its model there, and one whose
// warm-up is over learns the kept buffer again: both have the same model, to the last bit.
// Afterwards the buffer is dropped.
func TestBasisIsAdopted(t *testing.T) {
	cfg, all := sharedConfig(), []string{"c0", "c1", "c2"}
	start := offer(t, cfg, "a", 7, 112, all...)
	early, late := taught(t, cfg, 1, 32, all...), taught(t, cfg, 1, 0, all...)
	merged(t, early, offered(start))
	further := func(l *Learner, from, to int) {
		for _, ev := range samples(1, to, all...)[from:] {
			l.Add(&ev)
		}
	}
	further(early, 32, 48)
	further(late, 0, 48)
	if !early.WarmedUp() || !late.WarmedUp() || early.warmup.len() > 0 || late.warmup.len() != 48 {
		t.Fatalf("the buffers have %d and %d samples", early.warmup.len(), late.warmup.len())
	}
	merged(t, late, offered(start))
	for what, l := range map[string]*Learner{"in the warm-up": early, "after it": late} {
		if l.common.Birth != start.Birth || l.common.start != nil || l.warmup.len() > 0 || !slices.Equal(l.view.Scale.Mu, start.Scale.Mu) {
			t.Errorf("%s: %+v, %d samples kept", what, l.common, l.warmup.len())
		}
	}
	a, b := contribution(t, early, "x", 1), contribution(t, late, "x", 1)
	if a.BasisEpoch != start.ID() || !bytes.Equal(fleettest.Encode(t, a), fleettest.Encode(t, b)) {
		t.Error("the contributions differ")
	}
	if got := correctly(t, late, all...); got < 0.8 {
		t.Errorf("right for %g of the samples", got)
	}
}

// The kept buffer has an end: twice that of the warm-up, or a merge that settles the
// basis. Without basis: shared nothing is kept.
func TestKeptBufferEnds(t *testing.T) {
	cfg, all := sharedConfig(), []string{"c0", "c1", "c2"}
	l := taught(t, cfg, 1, 96, all...)
	if l.warmup.len() != 96 {
		t.Fatalf("the buffer has %d samples", l.warmup.len())
	}
	if again, err := Restore(cfg, stateOf(l)); err != nil || again.Digest() != l.Digest() || !again.warmup.kept {
		t.Fatalf("the kept buffer is not restored: %v", err)
	}
	x, label := l.warmup.x[:2], l.classes.names[l.warmup.y[0]]
	l.Add(&Event{Kind: Correct, X: slices.Clone(x), Name: label, Label: "c0"})
	if n := l.Counters(); n.CorrectionsExact+n.CorrectionsAdded != 1 || l.warmup.len() != 96 {
		t.Errorf("after a correction %d samples are kept, %+v", l.warmup.len(), n)
	}
	teach(l, 2, 16, all...)
	if l.warmup.len() > 0 {
		t.Errorf("after %d labels %d are kept", l.view.N, l.warmup.len())
	}
	l = taught(t, cfg, 1, 64, all...)
	set := fleet.NewSet(0)
	set.Vacant, set.Settled = true, true
	if merged(t, l, set); l.warmup.kept || l.common.Number != 1 {
		t.Errorf("after a merge that settles it: kept %v, basis %d", l.warmup.kept, l.common.Number)
	}
	if l = taught(t, fleetConfig(), 1, 64, all...); l.warmup.kept {
		t.Error("a learner with a basis of its own keeps its buffer")
	}
}

// A learner that has dropped its buffer projects its sites: its answers stay nearly what
// they were, and on the basis that it has already they stay.
func TestBasisIsAdoptedByProjection(t *testing.T) {
	cfg, all := sharedConfig(), []string{"c0", "c1", "c2"}
	cfg.Experts.Regression = On
	for _, ranked := range []bool{false, true} {
		l := taught(t, cfg, 1, 304, all...)
		own := offer(t, cfg, "a", 1, 304, all...) // the same samples: the own basis, rounded
		other := offer(t, cfg, "a", 7, 304, all...)
		if ranked {
			for _, c := range []*fleet.Common{own, other} {
				c.Scale.Ranks = ranksFor(c.Scale.Mu, c.Scale.Sd)
			}
		}
		for what, c := range map[string]struct {
			start     *fleet.Common
			tolerance float64
		}{"own": {own, 1e-3}, "other": {other, 0.25}} {
			again, err := Restore(cfg, stateOf(l))
			if err != nil {
				t.Fatal(err)
			}
			if again.warmup.kept {
				t.Fatal("the buffer is kept")
			}
			merged(t, again, offered(c.start))
			if ranked && what == "own" {
				c.tolerance = 0.25
			}
			var worst, mean float64
			for _, ev := range samples(8, 50, all...) {
				p, _ := l.Predict(ev.X)
				q, _ := again.Predict(ev.X)
				if a, b := regressionOf(l, ev.X), regressionOf(again, ev.X); !ranked && !near(a, b) {
					t.Errorf("%s: the regression says %.6f, before %.6f", what, b, a)
				}
				for k := range p.Probs {
					diff := math.Abs(p.Probs[k] - q.Probs[k])
					worst, mean = max(worst, diff), mean+diff/150
				}
			}
			if again.common.Birth != c.start.Birth || mean > c.tolerance/4 || worst > 2*c.tolerance {
				t.Errorf("%s, ranks %v: probabilities differ by %g, in the mean by %g; basis %+v", what, ranked, worst, mean, again.common)
			}
			teach(again, 5, 100, all...)
			if got := correctly(t, again, all...); got < 0.75 {
				t.Errorf("%s: right for %g of the samples afterwards", what, got)
			}
			if s := again.Counters(); s.StepsRefused > 0 {
				t.Errorf("%s: %d steps were refused", what, s.StepsRefused)
			}
		}
	}
}

// regressionOf returns the log probabilities of the regression.
func regressionOf(l *Learner, x []float64) []float64 {
	z, logs := make([]float64, len(x)), make([]float64, len(l.view.Names))
	l.view.Scale.To(z, x)
	model.KnownTo(z, z)
	l.view.Pool.Stack.Linear.LogsTo(logs, z)
	return logs
}

func near(a, b []float64) bool {
	for i := range a {
		if !(math.Abs(a[i]-b[i]) <= 1e-9) {
			return false
		}
	}
	return a[0] != a[1]
}

// ranksFor returns ranks of features that are spread evenly.
func ranksFor(mu, sd []float64) (ranks []float64) {
	for j := range mu {
		for i := range 33 {
			ranks = append(ranks, mu[j]+sd[j]*math.Sqrt(12)*(float64(i)/32-0.5))
		}
	}
	return ranks
}

// Members with a common start stay together: each merge moves the parameters by the
// average, and the learning rate is that of several.
func TestParametersAreAveraged(t *testing.T) {
	cfg, all := sharedConfig(), []string{"c0", "c1", "c2"}
	start := offer(t, cfg, "m0", 7, 112, all...)
	var members []*Learner
	set := offered(start)
	for i := range 3 {
		l := taught(t, cfg, uint64(20+i), 0)
		merged(t, l, set)
		teach(l, uint64(20+i), 160, all...)
		members = append(members, l)
		set.Put(contribution(t, l, fmt.Sprint("m", i), 1))
	}
	apart := func() (sum float64) {
		for i, v := range members[0].bank.Params().Theta {
			sum += math.Abs(v - members[1].bank.Params().Theta[i])
		}
		return sum
	}
	before := apart()
	for i, l := range members {
		theta := l.bank.Params().Theta
		m, err := l.Merge(fmt.Sprint("m", i), set)
		if err != nil {
			t.Fatal(err)
		}
		ev := MergeEvent(m)
		if out := l.Add(&ev); out.Refused != nil {
			t.Fatal(out.Refused)
		}
		if m.Sharing.Members != 3 || l.common.members != 3 || math.Abs(l.common.rate(l.view.N)-math.Sqrt(3)) > 1e-15 {
			t.Fatalf("averages %d members, rate %g", m.Sharing.Members, l.common.rate(l.view.N))
		}
		for j, v := range l.bank.Params().Theta {
			if want := theta[j] + float64(m.Sharing.Move[j]); v != want {
				t.Errorf("member %d: parameter %d is %g, want %g", i, j, v, want)
			}
		}
	}
	if after := apart(); after > before/2 {
		t.Errorf("the parameters are %g apart, before %g", after, before)
	}
	for _, l := range members {
		again, err := Restore(cfg, stateOf(l))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []*Learner{l, again} {
			teach(l, 9, 40, all...)
		}
		if l.Digest() != again.Digest() {
			t.Error("the restored learner goes on to another state")
		}
	}
	if c := (common{members: 100, at: 5}); c.rate(5) != maxRate || c.rate(10_006) != 1 || (&common{}).rate(7) != 1 {
		t.Error("the rate is not bounded")
	}
	own := fleetConfig() // the configuration has changed
	l, err := Restore(own, stateOf(members[0]))
	if err != nil {
		t.Fatal(err)
	}
	if merged(t, l, set); l.common != (common{}) || contribution(t, l, "m0", 2).BasisEpoch != 0 {
		t.Errorf("with basis: own the learner has %+v", l.common)
	}
}

// A learner that sees other classes than the author keeps a basis of its own, in the
// warm-up and after it.
func TestOtherClassesShareNoBasis(t *testing.T) {
	cfg := sharedConfig()
	start := offer(t, cfg, "a", 7, 112, "c0", "c1")
	for _, n := range []int{10, 200} {
		l := taught(t, cfg, 1, n, "c2", "c3")
		m := merged(t, l, offered(start))
		if n > 64 && m.Unfit != fleet.OtherClasses {
			t.Errorf("unfit for %q", m.Unfit)
		}
		teach(l, 2, 64, "c2", "c3")
		if l.common != (common{}) || l.warmup.len() > 0 || slices.Equal(l.view.Scale.Mu, start.Scale.Mu) {
			t.Errorf("after %d labels: %+v, %d samples kept", n, l.common, l.warmup.len())
		}
		if c := contribution(t, l, "x", 1); c.BasisEpoch != 0 {
			t.Errorf("the contribution is of basis %x", c.BasisEpoch)
		}
	}
	// A merge that is computed in the warm-up and ends it: its event closes the minibatch.
	l := taught(t, cfg, 1, 10, "c2", "c3")
	merged(t, l, fleet.NewSet(0))
	teach(l, 2, 38, "c2", "c3")
	if l.WarmedUp() {
		t.Fatal("the warm-up has ended: the test shows nothing")
	}
	teach(l, 2, 3, "c2", "c3") // minShared labels and more
	if merged(t, l, offered(start)); !l.WarmedUp() || l.common != (common{}) {
		t.Errorf("at the end of the warm-up: %+v", l.common)
	}
}

// A merge whose basis is of another shape is refused, and changes nothing.
func TestSharingOfAnotherShape(t *testing.T) {
	cfg, all := sharedConfig(), []string{"c0", "c1", "c2"}
	wide := cfg
	wide.Inducing = 13
	start := offer(t, wide, "a", 7, 112, all...)
	for n, l := range map[int]*Learner{10: taught(t, cfg, 1, 10, all...), 100: taught(t, cfg, 1, 100, all...)} {
		if m := merged(t, l, offered(start)); m.Unfit != fleet.OtherInducing || l.common.Number != 0 {
			t.Errorf("%d labels: unfit %q, basis %d", n, m.Unfit, l.common.Number)
		}
		before := stateOf(l)
		for _, s := range []*fleet.Sharing{{Birth: start.Birth, Start: start}, {Birth: start.Birth, Move: make([]float32, 5)}} {
			ev := MergeEvent(&fleet.Merge{Horizons: []float64{math.Inf(1)}, Weights: []float64{1}, Sharing: s})
			if out := l.Add(&ev); !errors.Is(out.Refused, ErrShape) || !bytes.Equal(before, stateOf(l)) {
				t.Errorf("%d labels: %+v is not refused, or changes the state: %v", n, s, out.Refused)
			}
		}
	}
}

// Founding, adoption in the warm-up and after it, averages, a new basis by request and a
// change of the classes in between end in the bytes of a replay of the records alone, and
// of states restored on the way.
func TestSharedBasisIsReplayed(t *testing.T) {
	for name, c := range map[string]struct {
		author string
		first  int // samples before the first merge
		units  fleet.Units
	}{
		"founds": {"z", 70, fleet.Raw}, "adopts in the warm-up": {"a", 0, fleet.Raw}, "learns again": {"a", 90, fleet.Raw},
		"projects": {"a", 150, fleet.Raw}, "standard units": {"a", 150, fleet.Standard},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, all := sharedConfig(), []string{"c0", "c1", "c2"}
			cfg.Fleet.Units = c.units
			live, set := taught(t, cfg, 1, 0), fleet.NewSet(0)
			var records []Record
			add := func(ev Event) {
				records = append(records, Record{Seq: uint64(len(records) + 1), Event: ev})
				if out := live.Add(&ev); out.Refused != nil {
					t.Fatal(out.Refused)
				}
			}
			rng, adopted := rand.New(rand.NewPCG(5, 1)), 0
			other := taught(t, cfg, 3, 0)
			for i := range 450 {
				if i >= c.first && (i-c.first)%50 == 0 {
					if i == c.first && c.author < "own" {
						set.Offer(offer(t, cfg, c.author, 7, 112, all...))
					}
					set.Vacant, set.Tag = set.Common() == nil, uint64(i)
					set.Rebase = map[int]fleet.Rebase{c.first + 200: fleet.Pooled, c.first + 250: fleet.First}[i]
					set.Settled = i > 300
					m, err := live.Merge("own", set)
					if err != nil {
						t.Fatal(err)
					}
					if m.Announce != nil {
						set.Offer(m.Announce)
					}
					for range 5 { // come while the merge is on its way to the journal
						add(ring(rng, all))
					}
					add(MergeEvent(m))
					if m.Sharing.Members > 1 {
						adopted++
					}
					teach(other, uint64(100+i), 60, all...)
					if out, _ := other.Merge("m", set); out != nil {
						ev := MergeEvent(out)
						other.Add(&ev)
					}
					if other.WarmedUp() {
						set.Put(contribution(t, other, "m", uint64(i+1)))
					}
				}
				add(ring(rng, all))
				if i == 230 || i == 30 {
					add(Event{Kind: ClassRemove, Label: "c2"})
				}
				if i%50 == 25 {
					again, err := Restore(cfg, stateOf(live))
					if err != nil || again.Digest() != live.Digest() {
						t.Fatalf("after %d labels another state is restored: %v", i, err)
					}
				}
			}
			if live.common.Number != 3 || adopted == 0 {
				t.Errorf("basis %+v, %d averages: the test shows nothing", live.common, adopted)
			}
			again, refused, err := Replay(func() (*Learner, error) { return NewLearner(cfg) }, records)
			if err != nil || len(refused) > 0 {
				t.Fatal(err, refused)
			}
			if live.Digest() != again.Digest() {
				t.Error("the replay ends in another state")
			}
		})
	}
}

// A common basis whose scaling is far from the own one leaves a sound state.
func TestCommonScaleFarAway(t *testing.T) {
	for _, sd := range []float64{1e-200, 1e-160, 1e160, 1e300} {
		cfg, all := sharedConfig(), []string{"c0", "c1", "c2"}
		start := offer(t, cfg, "a", 7, 112, all...)
		start.Scale.Sd[0] = sd
		l := taught(t, cfg, 3, 300, all...)
		merged(t, l, offered(start))
		if again, err := Restore(cfg, stateOf(l)); err != nil || again.Digest() != l.Digest() {
			t.Errorf("standard deviation %g: %v", sd, err)
		}
	}
}
