package online

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"edge/model"
	"edge/online/wire"
)

// curved returns a sample whose class depends on u, uniform in [−2, 2]: on its
// magnitude, where the feature is e^3u, which a standardisation squeezes into a corner,
// or if plain is true on the sum of two features.
func curved(rng *rand.Rand, plain bool) *Event {
	u, v := 4*rng.Float64()-2, rng.NormFloat64()
	x, one := math.Exp(3*u), math.Abs(u) < 1
	if plain {
		x, one = u, u+v > 0
	}
	k := 0
	if one {
		k = 1
	}
	return &Event{Kind: Observe, X: []float64{x, v}, Label: []string{"a", "b"}[k]}
}

func scalingConfig() Config {
	cfg := testConfig(2, "a", "b")
	cfg.Inducing, cfg.Window, cfg.Warmup, cfg.Batch.MaxSize = 10, 20, 96, 16
	return cfg
}

func ranked(l *Learner) bool { return l.view.Scale.Ranks != nil }

// The last build takes ranks where they predict better by far, and then predicts
// new samples better; earlier builds do without, and so does a scaling that tracks.
func TestScalingIsChosenAtTheLastBuild(t *testing.T) {
	for name, c := range map[string]struct {
		plain bool
		track float64
		want  bool
	}{
		"ranks":    {false, 0, true},
		"no ranks": {true, 0, false},
		"tracks":   {false, 1000, false},
	} {
		cfg := scalingConfig()
		cfg.Track = c.track
		l := newTestLearner(t, cfg)
		rng := rand.New(rand.NewPCG(5, 5))
		for i := range 200 {
			if !l.WarmedUp() && ranked(l) {
				t.Errorf("%s: ranks after %d samples, before the last build", name, i)
			}
			l.Add(curved(rng, c.plain))
		}
		if got := ranked(l); got != c.want {
			t.Errorf("%s: ranks %v, want %v", name, got, c.want)
		}
		checkSound(t, l)
	}
}

// The evidence is that of a loop which predicts a sample by each horizon alone.
func TestEvidenceOfAScaling(t *testing.T) {
	for _, with := range []bool{false, true} {
		l := newTestLearner(t, scalingConfig())
		rng := rand.New(rand.NewPCG(6, 6))
		for range 80 {
			ev := curved(rng, false)
			if ev.Weight = 0.5 + rng.Float64(); rng.IntN(5) == 0 {
				ev.X[1] = math.NaN()
			}
			l.Add(ev)
		}
		got, err := l.evidence(with)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.beginModel(nil, with); err != nil {
			t.Fatal(err)
		}
		w := &l.warmup
		var want float64
		ws := model.NewWorkspace()
		for from := 0; from < w.len(); from += maxStep {
			for i := from; i < from+maxStep; i++ {
				x := slices.Clone(w.x[2*i : 2*i+2])
				if x[1] == model.Missing {
					x[1] = math.NaN()
				}
				if _, _, err := l.view.PredictTo(nil, x, ws); err != nil {
					t.Fatal(err)
				}
				var p float64
				for h, weight := range l.view.Weights {
					p += weight * ws.PerHorizon()[2*h+l.classes.latent[w.y[i]]]
				}
				want += w.w[i] * math.Log(p)
			}
			if err := l.learn(w.x[2*from:2*(from+maxStep)], w.y[from:from+maxStep], w.w[from:from+maxStep], false); err != nil {
				t.Fatal(err)
			}
		}
		if !(math.Abs(got-want) < 1e-9*math.Abs(want)) {
			t.Errorf("ranks %v: evidence %v, want %v", with, got, want)
		}
	}
}

// After the choice the bank is that of a build under the chosen scaling alone, however large
// the minibatches are.
func TestBuildAfterTheChoice(t *testing.T) {
	encoded := func(l *Learner) []byte {
		var e wire.Encoder
		l.bank.EncodeScale(&e, false)
		l.bank.EncodeRanks(&e)
		l.bank.EncodeParams(&e)
		l.bank.EncodeSites(&e)
		return e.Buf
	}
	for _, c := range []struct {
		plain bool
		size  int
	}{{false, 16}, {true, 16}, {false, 32}, {true, 32}} {
		cfg := scalingConfig()
		cfg.Batch.MaxSize = c.size
		chosen, direct := newTestLearner(t, cfg), newTestLearner(t, cfg)
		rng := rand.New(rand.NewPCG(7, 7))
		w := &direct.warmup
		for i := range 96 {
			ev := curved(rng, c.plain)
			steps := chosen.Counters().Steps
			if out := chosen.Add(ev); out.Built && i == 95 {
				if made, want := chosen.Counters().Steps-steps, uint64(96/maxStep); made != want {
					t.Errorf("%+v: the last build counts %d steps, want %d", c, made, want)
				}
			}
			if i < 96-c.size {
				direct.Add(ev)
			} else {
				direct.batch.add(ev.X, direct.classes.index[ev.Label], 1, 1)
			}
		}
		w.add(&direct.batch)
		if err := direct.beginModel(nil, !c.plain); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < 96; i += maxStep {
			end := i + maxStep
			if err := direct.learn(w.x[2*i:2*end], w.y[i:end], w.w[i:end], false); err != nil {
				t.Fatal(err)
			}
		}
		if !chosen.WarmedUp() || ranked(chosen) == c.plain {
			t.Fatalf("%+v: warmed up %v, ranks %v", c, chosen.WarmedUp(), ranked(chosen))
		}
		if !slices.Equal(encoded(chosen), encoded(direct)) {
			t.Errorf("%+v: the model differs from one that is built without the choice", c)
		}
	}
}

// Ranks are part of the state: a restored learner predicts, learns and corrects as
// the one that was saved. Ranks that fall, or are not finite, are refused.
func TestRanksInTheState(t *testing.T) {
	l := newTestLearner(t, scalingConfig())
	rng := rand.New(rand.NewPCG(8, 8))
	for range 120 {
		l.Add(curved(rng, false))
	}
	if !ranked(l) {
		t.Fatal("no ranks")
	}
	state, _ := l.AppendBinary(nil)
	again, err := Restore(l.cfg, state)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		ev := curved(rng, false)
		if i%10 == 0 {
			ev.X[0] = math.NaN()
		}
		a, _ := l.Predict(ev.X)
		b, _ := again.Predict(ev.X)
		if !slices.Equal(a.Probs, b.Probs) {
			t.Fatalf("sample %d: %v, restored %v", i, a.Probs, b.Probs)
		}
		for _, l := range []*Learner{l, again} {
			l.Add(ev)
			if i == 20 { // the sample is still in the window
				wrong := map[string]string{"a": "b", "b": "a"}[ev.Label]
				l.Add(&Event{Kind: Correct, X: ev.X, Label: wrong, Name: ev.Label})
			}
		}
	}
	if l.Digest() != again.Digest() {
		t.Error("the restored learner carries on in another way")
	}
	if l.Counters().CorrectionsExact != 1 {
		t.Errorf("%d exact corrections, want 1", l.Counters().CorrectionsExact)
	}
	for name, v := range map[string]float64{"falling": math.Inf(-1), "not a number": math.NaN(), "infinite": math.Inf(1)} {
		ranks := slices.Clone(l.view.Scale.Ranks)
		l.view.Scale.Ranks = ranks
		ranks[len(ranks)-1] = v
		if name == "falling" {
			ranks[len(ranks)-1] = ranks[len(ranks)-2] - 1
		}
		state, _ := l.AppendBinary(nil)
		if _, err := Restore(l.cfg, state); !errors.Is(err, ErrState) || !strings.Contains(err.Error(), "ranks") {
			t.Errorf("%s: error %v, want ErrState", name, err)
		}
	}
}
