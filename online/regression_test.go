package online

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
)

// A step against the derivative of the log loss by differences, and the rates
// that follow from two of them.
func TestRegressionStep(t *testing.T) {
	cfg := testConfig(2, "a", "b", "c")
	l := newTestLearner(t, cfg)
	teachBlobs(l, cfg.warmup())
	r, v := &l.regression, &l.view.Pool.Stack.Linear
	if len(v.W) != 9 {
		t.Fatalf("%d weights after the warm-up, want 9", len(v.W))
	}
	loss := func(w, x []float64, label int) float64 {
		logs := make([]float64, 3)
		(&model.Regression{D: 2, W: w}).LogsTo(logs, x)
		return -logs[label]
	}
	const weight = 1.5
	raw, labels := []float64{0.4, -1.2, math.NaN(), 0.7}, []int{2, 0}
	for i, label := range labels {
		w, squares := slices.Clone(v.W), slices.Clone(r.squares)
		sample := raw[2*i : 2*i+2]
		l.learnRegression(sample, labels[i:i+1], []float64{weight})
		x := make([]float64, 2)
		l.view.Scale.To(x, sample)
		for j := range w {
			const h = 1e-5
			at := slices.Clone(w)
			at[j] += h
			up := loss(at, x, label)
			at[j] -= 2 * h
			g := weight * (up - loss(at, x, label)) / (2 * h)
			wantSquare := squares[j]*(1-1./linearMemory) + g*g
			want := w[j] - linearRate*g/(math.Sqrt(wantSquare)+linearTiny)
			if math.Abs(r.squares[j]-wantSquare) > 1e-8 || math.Abs(v.W[j]-want) > 1e-6 {
				t.Errorf("sample %d, weight %d: %v with %v, want %v with %v", i, j, v.W[j], r.squares[j], want, wantSquare)
			}
		}
	}
}

// teachBlobs teaches n samples of three classes around corners.
func teachBlobs(l *Learner, n int) {
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range n {
		k := i * 7 % 3
		l.Add(&Event{Kind: Observe, X: []float64{2*float64(k%2) + rng.NormFloat64(), 2*float64(k/2) + rng.NormFloat64()}, Label: string(rune('a' + k))})
	}
}

// trend teaches n samples whose class is on which side of a plane they lie; they
// wander, so that a kernel never has seen where they come next.
func trend(l *Learner, from, n int) {
	rng := rand.New(rand.NewPCG(8, uint64(from)))
	for i := from; i < from+n; i++ {
		along := float64(i)/40 + rng.NormFloat64()
		side := rng.NormFloat64()
		label := "a"
		if side > 0 {
			label = "b"
		}
		l.Add(&Event{Kind: Observe, X: []float64{along + side, along - side}, Label: label})
	}
}

// What goes on in a line the regression knows; restored, it goes on in the same
// bytes; where the order of labels does not count there is none.
func TestRegressionLearnsTrends(t *testing.T) {
	cfg := testConfig(2, "a", "b")
	l := newTestLearner(t, cfg)
	trend(l, 0, 1500)
	s := &l.view.Pool.Stack
	if exponent := s.Exponents[len(s.Exponents)-1]; exponent < 0.3 {
		t.Errorf("exponent of the regression %.3f", exponent)
	}
	data, _ := l.AppendBinary(nil)
	again, err := Restore(cfg, data)
	if err != nil {
		t.Fatal(err)
	}
	trend(l, 1500, 203)
	trend(again, 1500, 203)
	if l.Digest() != again.Digest() {
		t.Error("restored, it goes on differently")
	}
	checkSound(t, l)
	off := testConfig(2, "a", "b")
	off.Temporal = TemporalOff
	if l, err = Restore(off, data); err != nil {
		t.Fatal(err)
	}
	trend(l, 1500, 50)
	if len(l.view.Pool.Stack.Linear.W) != 0 {
		t.Error("a regression without an order of labels, which nobody asks")
	}
	checkSound(t, l)
}

// A class that comes later begins with weights of 0, one that leaves takes its
// own along.
func TestRegressionClasses(t *testing.T) {
	cfg := testConfig(2, "a", "b", "c")
	l := newTestLearner(t, cfg)
	teachBlobs(l, 2*cfg.warmup())
	l.Add(&Event{Kind: Boundary})
	before, squares := slices.Clone(l.view.Pool.Stack.Linear.W), slices.Clone(l.regression.squares)
	if out := l.Add(&Event{Kind: ClassAdd, Label: "d"}); out.Refused != nil {
		t.Fatal(out.Refused)
	}
	closeTo(t, "weights with a fourth class", l.view.Pool.Stack.Linear.W, append(slices.Clone(before), 0, 0, 0), 0)
	if out := l.Add(&Event{Kind: ClassRemove, Label: "b"}); out.Refused != nil {
		t.Fatal(out.Refused)
	}
	closeTo(t, "weights without the second", l.view.Pool.Stack.Linear.W, append(slices.Concat(before[:3], before[6:]), 0, 0, 0), 0)
	closeTo(t, "squares", l.regression.squares, append(slices.Concat(squares[:3], squares[6:]), 0, 0, 0), 0)
	teachBlobs(l, 50) // b is new again
	checkSound(t, l)
}

// A state from before there was a regression is read, and it has to earn its
// exponent; one whose numbers are not finite is refused.
func TestRegressionInStates(t *testing.T) {
	cfg := testConfig(2, "a", "b", "c")
	l := newTestLearner(t, cfg)
	teachBlobs(l, 2*cfg.warmup())
	write := func(content func(e *encoder)) []byte {
		e := &encoder{buf: []byte(stateMagic)}
		e.uint(stateVersion)
		l.encodeCore(e)
		for _, s := range sections {
			var body encoder
			if s.encode(l, &body); s.name == "regression" {
				body.buf = nil
				content(&body)
			}
			if len(body.buf) > 0 {
				e.string(s.name)
				e.bytes(body.buf)
			}
		}
		e.string("")
		return e.buf
	}
	old, err := Restore(cfg, write(func(*encoder) {}))
	if err != nil {
		t.Fatal(err)
	}
	s := &old.view.Pool.Stack
	if e := s.Exponents; e[len(e)-1] != 0 || slices.ContainsFunc(s.Linear.W, func(w float64) bool { return w != 0 }) {
		t.Errorf("exponents %v, weights %v", s.Exponents, s.Linear.W)
	}
	teachBlobs(old, 300)
	if e := s.Exponents; e[len(e)-1] == 0 || len(s.Linear.W) != 9 {
		t.Errorf("after 300 labels: exponents %v, weights %v", s.Exponents, s.Linear.W)
	}
	checkSound(t, old)
	for name, spoil := range map[string]func(){
		"weight":  func() { l.view.Pool.Stack.Linear.W[4] = math.Inf(1) },
		"square":  func() { l.regression.squares[4] = -1 },
		"squares": func() { l.regression.squares[4] = math.Inf(1) },
	} {
		was, squared := l.view.Pool.Stack.Linear.W[4], l.regression.squares[4]
		spoil()
		if _, err := Restore(cfg, write(l.encodeRegression)); !errors.Is(err, ErrState) {
			t.Errorf("%s: %v, want %v", name, err, ErrState)
		}
		l.view.Pool.Stack.Linear.W[4], l.regression.squares[4] = was, squared
	}
}
