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
)

func testConfig(d int, names ...string) Config {
	cfg := DefaultConfig()
	cfg.Inducing, cfg.Window, cfg.Batch.MaxSize = 8, 12, 5
	cfg.Classes.Names = names
	for i := range d {
		cfg.Features = append(cfg.Features, fmt.Sprint("f", i))
	}
	return cfg
}

func newTestLearner(t testing.TB, cfg Config) *Learner {
	t.Helper()
	l, err := NewLearner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// blob draws from three Gaussian classes that touch.
func blob(rng *rand.Rand, d int) Event {
	k := rng.IntN(3)
	x := make([]float64, d)
	for i := range x {
		x[i] = 10 + 3*rng.NormFloat64()
	}
	x[k%d] += 6
	return Event{Kind: Observe, X: x, Label: string(rune('a' + k))}
}

func feed(l *Learner, rng *rand.Rand, n int) {
	for range n {
		ev := blob(rng, len(l.cfg.Features))
		l.Add(&ev)
	}
}

// checkSound asserts the invariants that hold after every event.
func checkSound(t *testing.T, l *Learner) {
	t.Helper()
	state, err := l.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(l.cfg, state); err != nil {
		t.Errorf("the state cannot be restored: %v", err)
	}
	for h := range l.view.Bank {
		for _, v := range l.view.Bank[h].Mean {
			if v-v != 0 {
				t.Fatalf("horizon %d: mean holds %v", h, v)
			}
		}
		u, m := l.view.Bank[h].U, l.cfg.Inducing
		for k := range l.view.Latent {
			for i := range m { // V = UᵀU is positive definite and at most the prior
				if d := u[(k*m+i)*m+i]; !(d > 0 && d <= 1+1e-9) {
					t.Fatalf("horizon %d class %d: pivot %v is not in (0, 1]", h, k, d)
				}
			}
		}
	}
	probs, novelty, err := l.Posterior().PredictTo(nil, make([]float64, len(l.cfg.Features)), model.NewWorkspace())
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, p := range probs {
		if !(p >= 0 && p <= 1+1e-12) {
			t.Errorf("probability %v", p)
		}
		sum += p
	}
	if len(probs) > 0 && math.Abs(sum-1) > 1e-9 || !(novelty >= 0 && novelty <= 1) {
		t.Errorf("probabilities %v sum to %v, novelty %v", probs, sum, novelty)
	}
}

func TestLearns(t *testing.T) {
	l := newTestLearner(t, testConfig(3))
	feed(l, rand.New(rand.NewPCG(1, 1)), 2000)
	s := l.Scores()
	// The best possible error of these blobs, by Monte Carlo, is 0.13; classes are undeclared.
	if s.N != 2000 || s.Error > 0.19 || s.NLL > 0.5 {
		t.Errorf("error %.3f, nll %.3f of %d samples", s.Error, s.NLL, s.N)
	}
	if got := l.Posterior().Classes(); len(got) != 3 {
		t.Errorf("classes %v", got)
	}
	checkSound(t, l)
}

// Missing features cost some accuracy, and learning continues.
func TestLearnsWithMissingFeatures(t *testing.T) {
	l := newTestLearner(t, testConfig(3))
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		ev := blob(rng, 3)
		if rng.IntN(3) == 0 {
			ev.X[rng.IntN(3)] = math.NaN()
		}
		if out := l.Add(&ev); out.Refused != nil {
			t.Fatal(out.Refused)
		}
	}
	// Without the feature that moves, a class is confused with its neighbours: of a
	// third of the samples, a third lacks it.
	if s := l.Scores(); s.Error > 0.25 || s.NLL > 0.65 {
		t.Errorf("error %.3f, nll %.3f", s.Error, s.NLL)
	}
	checkSound(t, l)
}

// Encoding and decoding at any moment has no effect on the rest; the same seed and
// events give the same bytes.
func TestRestoreCarriesOnExactly(t *testing.T) {
	for _, c := range []struct {
		track float64
		size  int
	}{{0, 5}, {200, 5}, {0, 70}} {
		cfg := testConfig(3, "a")
		cfg.Track, cfg.Batch.MaxSize = c.track, c.size
		straight := newTestLearner(t, cfg)
		broken := newTestLearner(t, cfg)
		events, chaos := rand.New(rand.NewPCG(2, 2)), rand.New(rand.NewPCG(3, 3))
		for i := range 600 {
			ev := blob(events, 3)
			if chaos.IntN(50) == 0 {
				ev = Event{Kind: Boundary}
			}
			straight.Add(&ev)
			broken.Add(&ev)
			if chaos.IntN(20) == 0 || i < 40 {
				state, err := broken.AppendBinary(nil)
				if err != nil {
					t.Fatal(err)
				}
				if broken, err = Restore(cfg, state); err != nil {
					t.Fatal(err)
				}
				again, _ := broken.AppendBinary(nil)
				if !bytes.Equal(state, again) {
					t.Fatalf("after %d events: encoding the decoded state gives other bytes", i+1)
				}
			}
			if i > 100 && i%10 != 9 {
				continue // a difference stays
			}
			if a, b := straight.Digest(), broken.Digest(); a != b {
				t.Fatalf("%+v: digests differ after %d events: %s, %s", c, i+1, a, b)
			}
		}
		if !straight.WarmedUp() {
			t.Error("the test should reach past the warm-up")
		}
		checkSound(t, straight)
	}
}

// A state is accepted with another minibatch size.
func TestRestoreWithOtherSettings(t *testing.T) {
	cfg := testConfig(3)
	cfg.Window, cfg.Batch.MaxSize = 2, 40
	l := newTestLearner(t, cfg)
	feed(l, rand.New(rand.NewPCG(2, 2)), 130)
	state, _ := l.AppendBinary(nil)
	cfg.Batch.MaxSize, cfg.LearningRate = 3, 0
	cfg.Classes.Names = []string{"new"}
	for _, cfg.Temporal = range []Temporal{TemporalOff, TemporalOn, TemporalAuto} {
		l, err := Restore(cfg, state)
		if err != nil {
			t.Fatal(err)
		}
		feed(l, rand.New(rand.NewPCG(4, 4)), 10)
		checkSound(t, l)
	}
	l, err := Restore(cfg, state)
	if err != nil {
		t.Fatal(err)
	}
	feed(l, rand.New(rand.NewPCG(4, 4)), 50)
	checkSound(t, l)

	cfg.Inducing++
	if _, err := Restore(cfg, state); !errors.Is(err, ErrShape) {
		t.Errorf("another number of inducing points gave %v, want ErrShape", err)
	}
}

func TestRefusals(t *testing.T) {
	cfg := testConfig(2, "a", "b")
	cfg.Classes.Max = 3
	l := newTestLearner(t, cfg)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		l.Add(&Event{Kind: Observe, X: []float64{rng.NormFloat64(), 1}, Label: []string{"a", "b"}[rng.IntN(2)]})
	}
	for _, tc := range []struct {
		name string
		ev   Event
		want error
	}{
		{"too few features", Event{X: []float64{1}, Label: "a"}, model.ErrDimension},
		{"nothing known", Event{X: []float64{math.NaN(), math.NaN()}, Label: "a"}, model.ErrNotFinite},
		{"infinite", Event{X: []float64{0, math.Inf(-1)}, Label: "a"}, model.ErrNotFinite},
		{"no label", Event{X: []float64{0, 0}}, ErrClass},
		{"a class", Event{X: []float64{0, 0}, Label: "c"}, nil},
		{"one class too many", Event{X: []float64{0, 0}, Label: "d"}, ErrClass},
	} {
		tc.ev.Kind = Observe
		before := l.Digest()
		out := l.Add(&tc.ev)
		if !errors.Is(out.Refused, tc.want) {
			t.Errorf("%s: refused with %v, want %v", tc.name, out.Refused, tc.want)
		}
		if tc.want != nil && !errors.Is(tc.want, ErrClass) && l.Digest() != before {
			t.Errorf("%s: the state changed", tc.name)
		}
	}
	if got := l.Counters().LabelsRefused; got != 2 {
		t.Errorf("%d labels refused, want 2", got)
	}
	checkSound(t, l)
}

// A step that fails half way restores the state and is counted.
func TestRefusedStepRollsBack(t *testing.T) {
	cfg := testConfig(3, "a", "b", "c")
	l := newTestLearner(t, cfg)
	rng := rand.New(rand.NewPCG(9, 9))
	feed(l, rng, 200)
	before, post := l.bankState(), l.Posterior()
	l.bank.Own()
	l.view.Bases[0].Noise = math.NaN() // then no site is a number
	for range l.cfg.Batch.MaxSize {    // without being judged
		ev := blob(rng, 3)
		l.batch.add(ev.X, l.classes.index[ev.Label], 1, 1)
		l.batch.ll = append(l.batch.ll, -1, -2, -3)
	}
	var out Outcome
	l.flush(&out)
	if !errors.Is(out.Refused, model.ErrFactor) && !errors.Is(out.Refused, model.ErrNotFinite) || l.Counters().StepsRefused != 1 {
		t.Errorf("refused with %v, %d counted", out.Refused, l.Counters().StepsRefused)
	}
	if !bytes.Equal(before, l.bankState()) || !slices.Equal(post.Bank[1].Mean, l.view.Bank[1].Mean) || !slices.Equal(post.Weights, l.view.Weights) {
		t.Error("the earlier state was not restored")
	}
	feed(l, rng, 100)
	if l.Counters().StepsRefused != 1 {
		t.Error("steps after the refused one fail")
	}
	checkSound(t, l)
}

// Data that breaks naive implementations: the posterior stays sound and no
// step is lost.
func TestHardNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	label := func() string { return string(rune('a' + rng.IntN(3))) }
	for name, draw := range map[string]func(i int) ([]float64, string){
		"constant features": func(int) ([]float64, string) { return []float64{4, 4, 0}, label() },
		"duplicated rows":   func(i int) ([]float64, string) { return []float64{float64(i / 40 % 3), 1, 2}, label() },
		"tiny and huge": func(int) ([]float64, string) {
			return []float64{1e-300 * rng.Float64(), 1e300 * rng.Float64(), 1}, label()
		},
		"largest finite": func(int) ([]float64, string) {
			return []float64{math.MaxFloat64, -math.MaxFloat64, rng.Float64()}, label()
		},
		"both signs of huge": func(int) ([]float64, string) {
			return []float64{(rng.Float64()*2 - 1) * 1.7e308, 0, rng.Float64()}, label()
		},
		"one class for ever": func(int) ([]float64, string) { return []float64{rng.Float64(), 2, 3}, "only" },
		"sorted by class": func(i int) ([]float64, string) {
			return []float64{rng.Float64() + float64(i/200), 2, 3}, string(rune('a' + i/200))
		},
		"outliers": func(i int) ([]float64, string) {
			v := rng.NormFloat64()
			if i%97 == 5 {
				v = 1e9
			}
			return []float64{v, 1, v}, label()
		},
		"labels without cause": func(int) ([]float64, string) { return []float64{rng.NormFloat64(), 0, 0}, label() },
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 16} {
				cfg := testConfig(3)
				cfg.Batch.MaxSize = size
				cfg.Track = 300
				l := newTestLearner(t, cfg)
				for i := range 1000 {
					x, y := draw(i)
					if out := l.Add(&Event{Kind: Observe, X: x, Label: y}); out.Refused != nil {
						t.Fatalf("sample %d: %v", i, out.Refused)
					}
				}
				checkSound(t, l)
			}
		})
	}
}

func TestNoAllocationAfterWarmup(t *testing.T) {
	cfg := testConfig(3, "a", "b", "c")
	l := newTestLearner(t, cfg)
	rng := rand.New(rand.NewPCG(8, 8))
	feed(l, rng, 1000)
	events := make([]Event, 256)
	for i := range events {
		events[i] = blob(rng, 3)
	}
	next := 0
	if n := testing.AllocsPerRun(50, func() {
		for range cfg.Batch.MaxSize {
			l.Add(&events[next%len(events)])
			next++
		}
	}); n != 0 {
		t.Errorf("a minibatch step allocates %g times", n)
	}
	p, ws := l.Posterior(), model.NewWorkspace()
	dst := make([]float64, 3)
	if n := testing.AllocsPerRun(50, func() { dst, _, _ = p.PredictTo(dst, events[0].X, ws) }); n != 0 {
		t.Errorf("a prediction allocates %g times", n)
	}
}

func TestConfigValidate(t *testing.T) {
	if err := testConfig(3).Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	for name, spoil := range map[string]func(*Config){
		"inducing":          func(c *Config) { c.Inducing = 1 },
		"horizons":          func(c *Config) { c.Horizons = nil },
		"window":            func(c *Config) { c.Window = -1 },
		"batch.max_size":    func(c *Config) { c.Batch.MaxSize = 0 },
		"batch.max_wait":    func(c *Config) { c.Batch.MaxWait = 1 },
		"classes.max":       func(c *Config) { c.Classes.Max = 1 },
		"classes.names":     func(c *Config) { c.Classes.Names = []string{"a", "a"} },
		"damping":           func(c *Config) { c.Damping = math.NaN() },
		"learning_rate":     func(c *Config) { c.LearningRate = -1 },
		"label_noise.start": func(c *Config) { c.LabelNoise.Start = 0.3 },
		"track":             func(c *Config) { c.Track = 1 },
		"temporal":          func(c *Config) { c.Temporal = "sometimes" },
		"regression":        func(c *Config) { c.Experts.Regression = "linear" },
		"forest":            func(c *Config) { c.Experts.Forest = "large" },
		"fleet.unseen":      func(c *Config) { c.Fleet.Unseen = "ask" },
		"fleet.trust":       func(c *Config) { c.Fleet.Trust = math.NaN() },
		"fleet.precision":   func(c *Config) { c.Fleet.Precision = 1 },
		"fleet.horizons":    func(c *Config) { c.Fleet.Horizons = []Horizon{77} },
		"features":          func(c *Config) { c.Features = nil },
	} {
		cfg := testConfig(3)
		spoil(&cfg)
		if err := cfg.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s out of range gave %v", name, err)
		}
	}
	cfg := testConfig(3)
	cfg.Drift.Lambda = 2e6
	if err := cfg.Validate(); err == nil || err.Error() != "drift.lambda: 2000000: want standard deviations times samples, 1 to 1000000" {
		t.Errorf("a large number out of range gave %v", err)
	}
}
