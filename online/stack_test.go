package online

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"edge/model"
)

// Newton's step against a general solver, and how curvature and evidence fade.
func TestStackStep(t *testing.T) {
	l := newTestLearner(t, testConfig(2, "a", "b", "c"))
	s, exponents := &l.ordered, l.view.Pool.Stack.Ordered.Exponents
	before, n := slices.Clone(exponents), len(exponents)
	rng := rand.New(rand.NewPCG(1, 1))
	f, g := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for i := range n {
		s.pendGrad[i] = 10 * rng.NormFloat64()
		g.SetVec(i, s.pendGrad[i]/2)
		for j := range i + 1 {
			v := 0.1 * rng.NormFloat64()
			if i == j {
				v = 40 * rng.Float64()
			}
			s.pendFisher[i*n+j] = v
			f.SetSym(i, j, v/2)
		}
		f.SetSym(i, i, f.At(i, i)+stackPrior)
	}
	s.pendLL[0], s.pendLL[1] = -6, -4
	l.learnStack(4)
	var step mat.VecDense
	if err := step.SolveVec(f, g); err != nil {
		t.Fatal(err)
	}
	const fade = 1 - 4./stackMemory
	for i := range n {
		before[i] += min(max(step.AtVec(i), -maxStackStep), maxStackStep)
		for j := range i + 1 {
			want := fade * f.At(i, j)
			if i == j {
				want += (1 - fade) * stackPrior
			}
			if got := s.fisher[i*n+j]; math.Abs(got-want) > 1e-12*stackPrior {
				t.Errorf("curvature %d %d is %v, want %v", i, j, got, want)
			}
		}
	}
	closeTo(t, "exponents", exponents, before, 1e-12)
	if got, want := l.view.Pool.Stack.Ordered.Weight, 1/(1+math.Exp(-1)); math.Abs(got-want) > 1e-12 {
		t.Errorf("weight %v after evidence of 2 nats by 4 samples, want %v", got, want)
	}
	if slices.Max(s.pendFisher) != 0 || slices.Max(s.pendGrad) != 0 || slices.Min(s.pendLL) != 0 {
		t.Error("what a minibatch has taught is still there")
	}
}

// waves draws labels of which one is frequent for 200 samples, and features
// that say little about them.
func waves(l *Learner, n int) {
	rng := rand.New(rand.NewPCG(6, 6))
	for i := range n {
		k := rng.IntN(3)
		if rng.Float64() < 0.7 {
			k = i / 200 % 3
		}
		l.Add(&Event{Kind: Observe, X: []float64{rng.NormFloat64() + float64(k)/2, rng.NormFloat64()}, Label: string(rune('a' + k))})
	}
}

// Classes that come in waves, which the order of two labels says little about,
// give the recent labels a part in the answer; a restored learner goes on in the
// same bytes; a class that leaves takes its recent labels along.
func TestStackLearnsWaves(t *testing.T) {
	cfg := testConfig(2, "a", "b", "c")
	l := newTestLearner(t, cfg)
	waves(l, 3000)
	s := &l.view.Pool.Stack
	if latest := s.Ordered.Exponents[len(cfg.Horizons)+2]; latest < 0.3 || s.Ordered.Weight < 0.9 {
		t.Errorf("exponent of the latest labels %.3f, weight %.3f", latest, s.Ordered.Weight)
	}
	data, _ := l.AppendBinary(nil)
	again, err := Restore(cfg, data)
	if err != nil {
		t.Fatal(err)
	}
	waves(l, 203)
	waves(again, 203)
	if l.Digest() != again.Digest() {
		t.Error("restored, it goes on differently")
	}
	l.Add(&Event{Kind: Boundary})
	kept := []float64{s.Recent[0], s.Recent[2]}
	if out := l.Add(&Event{Kind: ClassRemove, Label: "b"}); out.Refused != nil {
		t.Fatal(out.Refused)
	}
	if got := l.view.Pool.Stack.Recent; len(got) != 2*len(model.RecentMemories) || !slices.Equal(got[:2], kept) {
		t.Errorf("latest labels %v, want %v first", got, kept)
	}
	checkSound(t, l)
	off := testConfig(2, "a", "b", "c")
	off.Temporal = TemporalOff
	if l, err = Restore(off, data); err != nil {
		t.Fatal(err)
	}
	if l.view.Pool.Stack.Recent != nil {
		t.Error("the latest labels count although their order does not")
	}
}

// Where labels are asked for the members alone answer for samples whose place in
// the order of the labels nobody knows; where they are not any more, what was
// learnt meanwhile counts.
func TestStackWhereLabelsAreAskedFor(t *testing.T) {
	cfg := testConfig(2, "a", "b")
	cfg.Passes = fewPasses
	l := newTestLearner(t, cfg)
	trend(l, 0, 500)
	if s := l.view.Pool.Stack; s.Plain.Weight != 0 || s.Ordered.Weight == 0 {
		t.Errorf("weights %v and %v, want none without an order", s.Ordered.Weight, s.Plain.Weight)
	}
	data, _ := l.AppendBinary(nil)
	cfg.Passes = 0
	again, err := Restore(cfg, data)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := again.view.Pool.Stack.Plain.Weight, l.plain.weight(); got != want || got == 0 {
		t.Errorf("asking no more: weight %v, want %v", got, want)
	}
}
