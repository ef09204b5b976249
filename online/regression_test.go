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
// bytes, also where the order of labels does not count any more.
func TestRegressionLearnsTrends(t *testing.T) {
	cfg := testConfig(2, "a", "b")
	l := newTestLearner(t, cfg)
	trend(l, 0, 1500)
	s := &l.view.Pool.Stack
	at := len(cfg.Horizons)
	if ordered, plain := s.Ordered.Exponents[at], s.Plain.Exponents[at]; ordered < 0.3 || plain < 0.3 {
		t.Errorf("exponents of the regression %.3f and %.3f", ordered, plain)
	}
	data, _ := l.AppendBinary(nil)
	w, plain := slices.Clone(s.Linear.W), s.Plain.Exponents[at]
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
	if said := l.view.Pool.Stack; !slices.Equal(said.Linear.W, w) || said.Plain.Exponents[at] != plain {
		t.Errorf("without the order of labels the weights are %v and the exponent %v, want %v and %v", said.Linear.W, said.Plain.Exponents[at], w, plain)
	}
	trend(l, 1500, 50)
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

// A state from before there was a regression, and a blend that knows no order, is
// read, and they have to earn their part; one whose numbers are not finite is
// refused.
func TestRegressionInStates(t *testing.T) {
	cfg := testConfig(2, "a", "b", "c")
	l := newTestLearner(t, cfg)
	teachBlobs(l, 2*cfg.warmup())
	before := func(e *encoder) { // as it was written then: without expert H
		s, v, out := &l.ordered, &l.view.Pool.Stack, len(cfg.Horizons)
		others := func(x []float64, n int) {
			for j, v := range x[:n] {
				if j != out {
					e.float(v)
				}
			}
		}
		others(v.Ordered.Exponents, len(s.mean))
		e.floats(s.logw)
		e.floats(s.pendLL)
		others(s.pendGrad, len(s.mean))
		for i := range s.mean {
			if i != out {
				others(s.fisher[i*len(s.mean):], i+1)
				others(s.pendFisher[i*len(s.mean):], i+1)
			}
		}
		e.bool(v.Recent != nil)
		e.floats(v.Recent)
	}
	write := func(stack, blends, regression func(e *encoder)) []byte {
		e := &encoder{buf: []byte(stateMagic)}
		e.uint(stateVersion)
		l.encodeCore(e)
		for _, s := range sections {
			var body encoder
			switch s.name {
			case "stack":
				stack(&body)
			case "blends":
				blends(&body)
			case "regression":
				regression(&body)
			default:
				s.encode(l, &body)
			}
			if len(body.buf) > 0 {
				e.string(s.name)
				e.bytes(body.buf)
			}
		}
		e.string("")
		return e.buf
	}
	none := func(*encoder) {}
	old, err := Restore(cfg, write(before, none, none))
	if err != nil {
		t.Fatal(err)
	}
	s, was, at := &old.view.Pool.Stack, l.view.Pool.Stack, len(cfg.Horizons)
	want := slices.Clone(was.Ordered.Exponents)
	want[at] = 0
	closeTo(t, "exponents", s.Ordered.Exponents, want, 0)
	closeTo(t, "latest labels", s.Recent, was.Recent, 0)
	if s.Ordered.Weight != was.Ordered.Weight || s.Plain.Weight > 1e-12 || slices.ContainsFunc(s.Linear.W, func(w float64) bool { return w != 0 }) {
		t.Errorf("weights %v and %v, of the regression %v", s.Ordered.Weight, s.Plain.Weight, s.Linear.W)
	}
	for i := range l.ordered.mean {
		for j := range i + 1 {
			if n := len(l.ordered.mean); i != at && j != at && old.ordered.fisher[i*n+j] != l.ordered.fisher[i*n+j] {
				t.Errorf("curvature %d %d is %v, want %v", i, j, old.ordered.fisher[i*n+j], l.ordered.fisher[i*n+j])
			}
		}
	}
	teachBlobs(old, 300)
	if s.Ordered.Exponents[at] == 0 || s.Plain.Exponents[at] == 0 || len(s.Linear.W) != 9 {
		t.Errorf("after 300 labels: exponents %v and %v, weights %v", s.Ordered.Exponents, s.Plain.Exponents, s.Linear.W)
	}
	checkSound(t, old)

	w, squares := l.view.Pool.Stack.Linear.W, l.regression.squares
	for name, spoil := range map[string]func(){
		"weight":  func() { w[4] = math.Inf(1) },
		"square":  func() { squares[4] = -1 },
		"squares": func() { squares[4] = math.Inf(1) },
	} {
		weight, square := w[4], squares[4]
		spoil()
		if _, err := Restore(cfg, write(none, l.encodeBlends, l.encodeRegression)); !errors.Is(err, ErrState) {
			t.Errorf("%s: %v, want %v", name, err, ErrState)
		}
		w[4], squares[4] = weight, square
	}
}
