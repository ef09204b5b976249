package forest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
)

// meet gives a learner the forests of members, of equal weights, and tells it of a merge.
func meet(l *Learner, all ...*model.Forest) {
	members := &model.MemberForests{Own: 1, Share: 1}
	for _, f := range all {
		members.All = append(members.All, model.MemberForest{Forest: f, Weight: 1, Index: []int{0, 1, 2}[:f.Classes]})
	}
	l.Tune(members)
}

// member returns a forest that has learnt other samples.
func member(seed uint64) *model.Forest {
	l := learner(Sizes{Trees: 4, Leaves: 12, Stored: 80})
	l.Learn(stream(rand.New(rand.NewPCG(seed, 1)), 200))
	return l.Contributed()
}

// tunedLearner has learnt samples alone and beside two members.
func tunedLearner(s Sizes) *Learner {
	l := learner(s)
	l.view.Counts = []uint64{40, 30, 30}
	rng := rand.New(rand.NewPCG(20, 1))
	l.Learn(stream(rng, 100))
	meet(l, member(21), member(22))
	l.Learn(stream(rng, 100))
	return l
}

// meanLoss is the negative log probability of a sample's class by the mean.
func meanLoss(l *Learner, raw []float32, label int) float64 {
	logs := make([]float64, l.forest.Classes)
	l.tuned.forest.LogsTo(logs, raw)
	l.members.MeanTo(logs, nil, raw, nil)
	return -logs[label]
}

// A step of the tuned weights against the derivative of the mean's log loss by differences. A
// third of it is that of the own logits, since three forests have the mean.
func TestTunedStep(t *testing.T) {
	l := tunedLearner(Sizes{Trees: 3, Leaves: 6, Stored: 60})
	const h, weight, label, forests = 0.01, 1.5, 1, 3
	raw := make([]float32, 5)
	model.RawTo(raw, []float64{0.3, -0.7, 0.2, 1, 7})
	leaves := make([]uint8, 3)
	l.forest.LeavesTo(leaves, raw)
	const tree = 1
	row := func(s []float32) []float32 {
		at := (tree*l.forest.Leaves + int(leaves[tree])) * 3
		return s[at : at+3]
	}
	gradient := make([]float64, 3)
	for k := range gradient {
		w := &row(l.tuned.forest.Weights)[k]
		was := *w
		*w = was + h
		gradient[k] = meanLoss(l, raw, label)
		*w = was - h
		gradient[k] = forests * weight * (gradient[k] - meanLoss(l, raw, label)) / (2 * h)
		*w = was
	}
	before, squares := slices.Clone(row(l.tuned.forest.Weights)), slices.Clone(row(l.tuned.squares))
	own, base := slices.Clone(l.forest.Weights), slices.Clone(l.tuned.base)
	l.tune(raw, leaves, label, weight)
	for k, g := range gradient {
		square := float64(squares[k])*(1-1./memory) + g*g
		want := float64(before[k]) - forests*rate*g/(math.Sqrt(square)+tiny)
		if got := row(l.tuned.forest.Weights)[k]; math.Abs(float64(got)-want) > 1e-4 || math.Abs(float64(row(l.tuned.squares)[k])-square) > 1e-4 {
			t.Errorf("class %d: %v with %v, want %v with %v", k, got, row(l.tuned.squares)[k], want, square)
		}
	}
	if !slices.Equal(own, l.forest.Weights) || !slices.Equal(base, l.tuned.base) {
		t.Error("the own weights or the base have changed")
	}
}

// The tuned weights begin with the own ones and the stored samples; the own forest is the same
// with members and without; and what is published is what the next merge leaves.
func TestTune(t *testing.T) {
	s := Sizes{Trees: 3, Leaves: 12, Stored: 60}
	rng := rand.New(rand.NewPCG(23, 1))
	x, labels, weights := stream(rng, 150)
	alone, with := learner(s), learner(s)
	for _, l := range []*Learner{alone, with} {
		l.view.Counts, l.view.N = []uint64{2, 1, 1}, 150
		l.Learn(x, labels, weights)
	}
	if alone.Contributed() != alone.forest {
		t.Error("without members a learner contributes another forest than its own")
	}
	meet(with, member(24), member(25))
	again := learner(s)
	again.view.Counts, again.view.N = alone.view.Counts, alone.view.N
	again.Learn(x, labels, weights)
	again.Among(with.members)
	again.tuned = &tuned{forest: again.forest.Clone(), squares: slices.Clone(again.squares), biasSquares: slices.Clone(again.biasSquares)}
	for i := 90; i < 150; i++ { // the ring has 60
		raw := make([]float32, 5)
		model.RawTo(raw, x[i*5:(i+1)*5])
		leaves := make([]uint8, 3)
		again.forest.LeavesTo(leaves, raw)
		again.tune(raw, leaves, labels[i], float64(float32(weights[i])))
	}
	if !slices.Equal(with.tuned.forest.Weights, again.tuned.forest.Weights) || !slices.Equal(with.tuned.base, alone.forest.Weights) {
		t.Error("the first tuned weights are not those of the stored samples")
	}
	x, labels, weights = stream(rng, 200)
	alone.Learn(x, labels, weights)
	with.Learn(x, labels, weights)
	if !slices.Equal(alone.forest.Weights, with.forest.Weights) || !slices.Equal(alone.forest.Nodes, with.forest.Nodes) || alone.random != with.random {
		t.Error("the own forest differs")
	}
	with.view.N = 160 // too few for stored samples to be learnt again
	published := with.Contributed()
	base, w := slices.Clone(with.tuned.base), slices.Clone(with.tuned.forest.Weights)
	with.Tune(with.members)
	for i, got := range with.tuned.forest.Weights {
		if want := base[i] + (w[i]-base[i])/float32(math.Sqrt(3)); math.Abs(float64(got-want)) > 1e-5 || got != published.Weights[i] || got != with.tuned.base[i] {
			t.Fatalf("weight %d is %v, want %v; published %v, base %v", i, got, want, published.Weights[i], with.tuned.base[i])
		}
	}
	checkTuned(t, with)
	with.Tune(nil)
	if with.tuned != nil || with.view.Pool.Stack.Tuned != nil || with.Contributed() != with.forest {
		t.Error("tuned weights without members")
	}
}

// With a tenth more labels 12 stored samples for each of three forests are learnt again at a
// merge, of 300 each eighth or ninth, the oldest first, from the new base; not before, and not twice.
func TestRelearn(t *testing.T) {
	s := Sizes{Trees: 3, Leaves: 12, Stored: 300}
	l := tunedLearner(s)
	l.Learn(stream(rand.New(rand.NewPCG(26, 1)), 200))
	without := func() *Learner { // what the merge leaves if nothing is learnt again
		other, err := decoded(encoded(l), s)
		if err != nil {
			t.Fatal(err)
		}
		other.view.Counts, other.tuned.relearnt = l.view.Counts, math.MaxUint64
		other.Tune(l.members)
		return other
	}
	for _, step := range []struct {
		labels uint64
		again  bool
	}{{400, true}, {439, false}, {441, true}, {441, false}} {
		l.view.N = step.labels
		learnt, damped := without(), without()
		for i := 35; i >= 0; i-- {
			learnt.tune(learnt.stored(learnt.ring.latest(1 + i*300/36)))
		}
		l.Tune(l.members)
		want := damped
		if step.again {
			want = learnt
		}
		if !slices.Equal(l.tuned.forest.Weights, want.tuned.forest.Weights) || !slices.Equal(l.tuned.base, damped.tuned.base) {
			t.Errorf("%d labels: the weights are not those with stored samples learnt again: %v", step.labels, step.again)
		}
		if slices.Equal(learnt.tuned.forest.Weights, damped.tuned.forest.Weights) {
			t.Error("to learn again changes nothing")
		}
	}
}

// checkTuned reports tuned weights that do not go with the own forest.
func checkTuned(t *testing.T, l *Learner) {
	t.Helper()
	check(t, l)
	f, own := l.tuned.forest, l.forest
	if f != l.view.Pool.Stack.Tuned || f.Classes != own.Classes || f.Leaves != own.Leaves || &f.Nodes[0] != &own.Nodes[0] || &f.Used[0] != &own.Used[0] {
		t.Fatal("the tuned forest is not that of the view, or has other partitions")
	}
	for _, s := range [...][]float32{l.tuned.base, l.tuned.squares, f.Weights} {
		if len(s) != len(own.Weights) {
			t.Fatalf("%d numbers of %d weights", len(s), len(own.Weights))
		}
	}
}

// What counts for a step is the number of forests that know the label, and for the damping its
// mean over the own labels.
func TestKnowing(t *testing.T) {
	l := tunedLearner(Sizes{Trees: 3, Leaves: 6, Stored: 60})
	l.members.All[0].Index = []int{0, 1, -1}
	l.members.All[1].Index = []int{0, -1, -1}
	for k, want := range []int{3, 2, 1} {
		if got := l.knowing(k); got != want {
			t.Errorf("%d forests know class %d, want %d", got, k, want)
		}
	}
	// The labels are 40, 30 and 30.
	if got, want := l.damping(), float32(math.Sqrt(100./(40*3+30*2+30))); math.Abs(float64(got-want)) > 1e-7 {
		t.Errorf("damping %g, want %g", got, want)
	}
	l.view.Counts = nil
	if got := l.damping(); got != 1 {
		t.Errorf("damping %g without labels, want 1", got)
	}
}

// clusters draws samples of three classes of eight clusters each, whose centres are corners of
// a cube in five dimensions.
func clusters(rng *rand.Rand, n int) (x []float64, labels []int, weights []float64) {
	for range n {
		corner := rng.IntN(24)
		row := make([]float64, 5)
		for j := range row {
			row[j] = float64(corner>>j&1) + 0.15*rng.NormFloat64()
		}
		x, labels, weights = append(x, row...), append(labels, corner*7%24%3), append(weights, 1)
	}
	return x, labels, weights
}

// together lets four learners exchange what they tune to their mean. It returns the log losses
// of that mean, and of the mean of their own forests.
func together(seed uint64) (tuned, own float64) {
	const nodes, judges = 4, 4000
	s := Sizes{Trees: 30, Leaves: 60, Stored: 500}
	var all [nodes]*Learner
	var published [nodes]*model.Forest
	for i := range all {
		all[i] = New(Config{Features: 5, Sizes: s, Seed: seed + uint64(i)}, &model.Posterior{Names: []string{"a", "b", "c"}, Counts: []uint64{1, 1, 1}})
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 20 {
		for _, l := range all {
			l.Learn(clusters(rng, 40))
		}
		for i, l := range all {
			published[i] = l.Contributed().Clone()
		}
		for i, l := range all {
			meet(l, slices.Delete(slices.Clone(published[:]), i, i+1)...)
		}
	}
	x, labels, _ := clusters(rng, judges)
	raw, logs := make([]float32, 5), make([]float64, 3)
	apart := &model.MemberForests{Own: 1}
	for _, l := range all[1:] {
		apart.All = append(apart.All, model.MemberForest{Forest: l.forest, Weight: 1, Index: []int{0, 1, 2}})
	}
	for i, label := range labels {
		model.RawTo(raw, x[i*5:(i+1)*5])
		tuned += meanLoss(all[0], raw, label) / judges
		all[0].forest.LogsTo(logs, raw)
		apart.MeanTo(logs, nil, raw, nil)
		own -= logs[label] / judges
	}
	return tuned, own
}

// Learners that tune their forests to the mean answer better together than the mean of those
// that learn apart.
func TestTunedTogether(t *testing.T) {
	var tuned, own float64
	for seed := range uint64(4) {
		a, b := together(100 * seed)
		t.Logf("log loss: tuned %.3f, the mean of four that learn apart %.3f", a, b)
		tuned, own = tuned+a, own+b
	}
	if !(tuned < 0.8*own) {
		t.Errorf("log loss %.3f, the mean of four that learn apart has %.3f", tuned/4, own/4)
	}
}

// A restored learner carries on in the same bytes, and so do the tuned weights when classes
// come and go and trees grow; a snapshot does not change meanwhile.
func TestTunedState(t *testing.T) {
	s := Sizes{Trees: 4, Leaves: 20, Stored: 70}
	live := tunedLearner(s)
	rng := rand.New(rand.NewPCG(40, 1))
	for part := range 12 {
		again := learner(s)
		again.view.Names = slices.Clone(live.view.Names)
		if err := decodeInto(again, encoded(live)); err != nil {
			t.Fatal(err)
		}
		again.view.Counts = live.view.Counts
		again.Among(live.members)
		live.Share()
		snapshot := live.view.Pool.Stack.Tuned
		kept := snapshot.Clone()
		x, labels, weights := stream(rng, 30)
		for _, l := range []*Learner{live, again} {
			switch part {
			case 3:
				l.view.Names = append(slices.Clone(l.view.Names), "d")
				l.Grow()
			case 6:
				l.view.Names = []string{"a", "b", "c"}
				l.DropClass(3, []int{0, 1, 2, -1})
			case 8:
				l.Tune(l.members)
			}
			l.Learn(x, labels, weights)
			checkTuned(t, l)
		}
		if !slices.Equal(encoded(live), encoded(again)) {
			t.Fatalf("part %d: the restored learner has other bytes", part)
		}
		if !slices.Equal(snapshot.Weights, kept.Weights) || !slices.Equal(snapshot.Bias, kept.Bias) || !slices.Equal(snapshot.Nodes, kept.Nodes) {
			t.Fatalf("part %d: the tuned forest of a snapshot has changed", part)
		}
	}
}
