package online

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"edge/model"
	"edge/online/conformal"
)

// The lateness of a label is the number of labels since its prediction, this one included.
func TestLateness(t *testing.T) {
	l := newTestLearner(t, testConfig(2))
	feed(l, rand.New(rand.NewPCG(1, 1)), 50)
	now := l.view.N + uint64(l.Pending())
	for _, c := range []struct {
		name    string
		probs   []float64
		version uint64
		want    float64
	}{
		{"label with its sample", nil, 10, 1},
		{"unknown version", []float64{}, 0, 1},
		{"before the next label", []float64{}, now, 1},
		{"thirty labels", []float64{}, now - 29, 30},
		{"model that was reset since", []float64{}, now + 1, 1},
	} {
		ev := &Event{Kind: Observe, Probs: c.probs, Meta: conformal.PredictionMeta{Version: c.version}}
		if got := l.lateness(ev); got != c.want {
			t.Errorf("%s: %v labels, want %v", c.name, got, c.want)
		}
	}
	l.view.N += 5000
	if got, want := l.lateness(&Event{Kind: Observe, Probs: []float64{}, Meta: conformal.PredictionMeta{Version: 1}}), float64(model.FarAhead+1); got != want {
		t.Errorf("5000 labels later: %v, want the bound %v", got, want)
	}
}

// A minibatch has at most one independent error, and less of one where its labels are late.
func TestEvidenceOfMinibatch(t *testing.T) {
	for _, c := range []struct {
		late []float64
		want float64 // samples with like errors
	}{
		{[]float64{1}, 1},
		{[]float64{1, 1, 1}, 3},
		{[]float64{1, 2, 3}, 3},
		{[]float64{100}, 100},
		{[]float64{50, 50}, 50},
		{[]float64{1, 100}, 2},
	} {
		var b minibatch
		for _, late := range c.late {
			b.add([]float64{1}, 0, 1, late)
		}
		if got := b.evidence(); got.N != len(c.late) || math.Abs(got.Alike-c.want) > 1e-12 {
			t.Errorf("labels %v late: %+v, want %v with like errors", c.late, got, c.want)
		}
	}
}

// A restart within a minibatch of late labels changes nothing.
func TestLatenessIsRestored(t *testing.T) {
	cfg := testConfig(2)
	l, rng := newTestLearner(t, cfg), rand.New(rand.NewPCG(1, 1))
	feed(l, rng, 100)
	l.Add(&Event{Kind: Boundary})
	post := l.Posterior()
	late := func(l *Learner, at float64) {
		var ws model.Workspace
		x := []float64{at, 1}
		probs, _, err := post.PredictTo(nil, x, &ws)
		if err != nil {
			t.Fatal(err)
		}
		ev := Event{Kind: Observe, X: x, Label: "class 1", Probs: probs, Parts: ws.AppendParts(nil), Epoch: post.Epoch, Meta: conformal.PredictionMeta{Version: post.Version()}}
		if out := l.Add(&ev); out.Refused != nil {
			t.Fatal(out.Refused)
		}
	}
	feed(l, rng, cfg.Batch.MaxSize+1) // labels from the prediction to the late ones
	l.Add(&Event{Kind: Boundary})
	late(l, 0.1)
	state, _ := l.AppendBinary(nil)
	restored, err := Restore(cfg, state)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []*Learner{l, restored} {
		late(x, 0.2)
		x.Add(&Event{Kind: Boundary})
	}
	if l.Digest() != restored.Digest() {
		t.Error("the restored learner has another state")
	}

	l.batch.add([]float64{1, 1}, 0, 1, 4)
	l.batch.ll = append(l.batch.ll, make([]float64, len(cfg.Horizons))...)
	for _, damaged := range []float64{0, -1} {
		l.batch.errors = damaged
		state, _ := l.AppendBinary(nil)
		if _, err := Restore(cfg, state); !errors.Is(err, ErrState) {
			t.Errorf("%g independent errors of one sample: %v, want ErrState", damaged, err)
		}
	}
}
