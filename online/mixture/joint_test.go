package mixture

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
	"edge/online/natural"
	"edge/online/wire"
)

// inFleet returns a mixture as newTestMixture, with a fleet beside its horizons.
func inFleet() *Mixture {
	m := newTestMixture()
	m.Join([]int{0, 1, 2}, Ahead)
	return m
}

// learnRandom lets both blends learn minibatches of random answers of their experts. Those
// of the first expert are right more often.
func learnRandom(m *Mixture, seed uint64, minibatches int) {
	const batch = 4
	rng := rand.New(rand.NewPCG(seed, 8))
	for range minibatches {
		for b, v := range m.blends() {
			for range batch {
				label := rng.IntN(3)
				experts := make([]float64, 3*len(v.Exponents))
				for i := range experts {
					experts[i] = -rng.ExpFloat64()
				}
				experts[label] *= 0.3
				out := model.BlendOutput{Experts: experts, Members: []float64{0.3, 0.3, 0.4}, Answer: make([]float64, 3)}
				model.AnswerTo(out.Answer, v.Exponents, experts)
				b.observe(out, label, 1)
			}
			b.learn(v, Together(batch))
		}
	}
	m.setStack()
}

// The joint learners begin at the mean of the product of the own posterior and the factors of
// the others, wherever they were before.
func TestMergeFactors(t *testing.T) {
	a, b, c := inFleet(), inFleet(), inFleet()
	learnRandom(a, 1, 30)
	learnRandom(b, 2, 30)
	learnRandom(c, 3, 30)
	others := b.OwnFactors().Add(c.OwnFactors())
	for range 2 {
		a.MergeFactors(others)
		at := 0
		for blend := range a.blends() {
			n := len(blend.slow.at)
			for i, x := range [...]*exponents{&blend.joint.slow, &blend.joint.fast} {
				own, of := blend.own()[i], others.Factors[at+i]
				for row := range n { // F·at − F_own·at_own − Σ_i η_i
					var miss float64
					for j := range n {
						f := own.curve[max(row, j)*n+min(row, j)]
						miss += (f+of.Precision[max(row, j)*n+min(row, j)])*x.at[j] - f*own.at[j]
					}
					if miss -= of.Shift[row]; math.Abs(miss) > 1e-9 {
						t.Errorf("equation %d of learner %d is missed by %g", row, i, miss)
					}
				}
			}
			at += 2
		}
		learnRandom(a, 4, 3) // until the next merge
		if a.plain.joint.slow.at[0] == a.plain.slow.at[0] {
			t.Error("joint and own learner agree: the test shows nothing")
		}
	}
}

// The joint learners come nearer to the exponents of one learner of all labels than the own
// ones.
func TestJointKnowsMore(t *testing.T) {
	one, a, b := inFleet(), inFleet(), inFleet()
	learnRandom(one, 1, 40)
	learnRandom(one, 2, 40)
	learnRandom(a, 1, 40)
	learnRandom(b, 2, 40)
	a.MergeFactors(b.OwnFactors())
	distance := func(x []float64) (sum float64) {
		for i, v := range one.plain.fast.at {
			sum += (x[i] - v) * (x[i] - v)
		}
		return math.Sqrt(sum)
	}
	if joint, own := distance(a.plain.joint.fast.at), distance(a.plain.fast.at); !(joint < own/3) {
		t.Errorf("distance %.3f, of the own learner %.3f", joint, own)
	}
}

// The factors of the own labels do not depend on those of others.
func TestTaughtIsOwn(t *testing.T) {
	a, b, other := inFleet(), inFleet(), inFleet()
	learnRandom(other, 2, 20)
	for i := range uint64(4) {
		learnRandom(a, 3+i, 5)
		learnRandom(b, 3+i, 5)
		b.MergeFactors(other.OwnFactors())
	}
	for i, f := range a.OwnFactors().Factors {
		closeTo(t, "precision", b.OwnFactors().Factors[i].Precision, f.Precision, 0)
		closeTo(t, "shift", b.OwnFactors().Factors[i].Shift, f.Shift, 0)
	}
	b.MergeFactors(nil)
	closeTo(t, "own exponent", b.plain.slow.at, a.plain.slow.at, 0)
	if b.plain.joint.on || b.plain.lead[2] != 0 || max(b.plain.lead[0], b.plain.lead[1]) != 0 {
		t.Errorf("joint is on, or its weights are left: %v", b.plain.lead)
	}
	if newTestMixture().OwnFactors() != nil {
		t.Error("a learner without a fleet teaches exponents")
	}
}

// The weights of the joint learners begin as those of the own ones, and the blend ahead of
// the members.
func TestJointLead(t *testing.T) {
	m := inFleet()
	m.plain.lead, m.plain.logw = [4]float64{-1, 0}, []float64{0, -5}
	m.ordered.logw = []float64{-9, 0}
	m.MergeFactors(inFleet().OwnFactors())
	closeTo(t, "lead", m.plain.lead[:], []float64{-1, 0, -1, 0}, 0)
	closeTo(t, "weight of the blend", m.plain.joint.logw[:], []float64{-blendLead, 0}, 0)
	closeTo(t, "weight of the ordered blend", m.ordered.joint.logw[:], []float64{-9, 0}, 0)
	closeTo(t, "weight in the view", []float64{m.view.Pool.Stack.Plain.Weight}, []float64{1 / (1 + math.Exp(-blendLead))}, 1e-15)
	m.plain.joint.logw = [2]float64{0, -5}
	m.MergeFactors(inFleet().OwnFactors())
	closeTo(t, "weight after another merge", m.plain.joint.logw[:], []float64{0, -5}, 0)
	m.MergeFactors(nil)
	closeTo(t, "weight without joint", []float64{m.view.Pool.Stack.Plain.Weight}, []float64{1 / (1 + math.Exp(5))}, 1e-15)
}

// With a fleet whose horizons begin ahead the blends begin ahead of the members as well.
func TestFleetLead(t *testing.T) {
	for lead, want := range map[float64]float64{Ahead: -blendLead, 0: 5} {
		m := newTestMixture()
		m.plain.logw, m.ordered.logw = []float64{0, -5}, []float64{-9, 0}
		m.Join([]int{0, 1, 2}, lead)
		closeTo(t, "log odds of the members", []float64{m.plain.logw[0] - m.plain.logw[1], m.ordered.logw[0] - m.ordered.logw[1]}, []float64{want, -9}, 0)
		closeTo(t, "weight in the view", []float64{m.view.Pool.Stack.Plain.Weight}, []float64{1 / (1 + math.Exp(want))}, 1e-15)
		closeTo(t, "without the fleet", m.own.plain.logw, []float64{0, -5}, 0)
	}
}

// Factors of other experts, and those that lead to exponents that are too large or to none,
// are not used.
func TestMergeFactorsRefuses(t *testing.T) {
	large := inFleet().OwnFactors()
	large.Factors[2].Shift[0] = 1e6
	negative := inFleet().OwnFactors()
	negative.Factors[3].Precision[0] = -1e3
	other := inFleet().OwnFactors()
	other.Own++
	short := inFleet().OwnFactors()
	short.Factors = short.Factors[:3]
	for i, x := range []*natural.Exponents{large, negative, other, short, nil} {
		m := inFleet()
		learnRandom(m, 1, 3)
		before := slices.Clone(m.view.Pool.Stack.Plain.Exponents)
		if m.MergeFactors(x); m.plain.joint.on {
			t.Errorf("case %d is used", i)
		}
		closeTo(t, "exponent", m.view.Pool.Stack.Plain.Exponents, before, 0)
	}
}

// A state continues to the last bit; with a forest that is there no longer the joint
// learners wait for the next merge.
func TestJointIsRestored(t *testing.T) {
	m, other := inFleet(), inFleet()
	learnRandom(m, 1, 10)
	learnRandom(other, 2, 10)
	m.MergeFactors(other.OwnFactors())
	learnRandom(m, 3, 2)
	var blends, joint wire.Encoder
	m.EncodeBlends(&blends)
	m.EncodeJoint(&joint)
	restore := func(again *Mixture) *Mixture {
		readAll(t, &blends, func(d *wire.Decoder) { again.DecodeBlends(d, d.Bool()) })
		readAll(t, &joint, again.DecodeJoint)
		return again
	}
	again := restore(inFleet())
	for _, m := range []*Mixture{m, again} {
		learnRandom(m, 4, 5)
		m.MergeFactors(other.OwnFactors())
		learnRandom(m, 5, 2)
	}
	closeTo(t, "exponent", again.view.Pool.Stack.Plain.Exponents, m.view.Pool.Stack.Plain.Exponents, 0)
	closeTo(t, "exponent", again.view.Pool.Stack.Ordered.Exponents, m.view.Pool.Stack.Ordered.Exponents, 0)
	for i, f := range m.OwnFactors().Factors {
		closeTo(t, "shift", again.OwnFactors().Factors[i].Shift, f.Shift, 0)
	}
	with := inFleet()
	with.AddForest()
	if restore(with).plain.joint.on {
		t.Error("the joint learners of other experts are used")
	}
	d := wire.NewDecoder(joint.Buf, "", wire.ErrState)
	if newTestMixture().DecodeJoint(d); d.End() == nil {
		t.Error("exponents of a fleet are read without one")
	}
}

func FuzzDecodeJoint(f *testing.F) {
	m, other := inFleet(), inFleet()
	learnRandom(m, 1, 4)
	learnRandom(other, 2, 4)
	m.MergeFactors(other.OwnFactors())
	var e wire.Encoder
	m.EncodeJoint(&e)
	f.Add(e.Buf)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, d := inFleet(), wire.NewDecoder(data, "", wire.ErrState)
		if m.DecodeJoint(d); d.End() != nil {
			return
		}
		for _, v := range m.blends() {
			for _, x := range v.Exponents {
				if x-x != 0 {
					t.Fatalf("exponents %v", v.Exponents)
				}
			}
		}
		learnRandom(m, 3, 1)
	})
}
