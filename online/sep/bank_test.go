package sep

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
	"edge/online/wire"
)

func testConfig(d int) Config {
	return Config{
		Features: d, Inducing: 8, Horizons: []float64{math.Inf(1), 500, 100}, Window: 12, Batch: 5, Sweeps: 2, Damping: 0.5,
		LearningRate: 0.02, NoiseStart: 0.01, NoiseMax: 0.2, LearnNoise: true, Clip: model.DefaultClip, Seed: 1,
	}
}

// blob draws from three Gaussian classes that touch.
func blob(rng *rand.Rand, d int) (x []float64, class int) {
	class = rng.IntN(3)
	x = make([]float64, d)
	for i := range x {
		x[i] = 10 + 3*rng.NormFloat64()
	}
	x[class%d] += 6
	return x, class
}

// newTestBank returns a bank of three classes, begun with 20 blobs that it has
// not learnt.
func newTestBank(t testing.TB, cfg Config, rng *rand.Rand) *Bank {
	t.Helper()
	b := New(cfg, &model.Posterior{Weights: slices.Repeat([]float64{1 / float64(len(cfg.Horizons))}, len(cfg.Horizons))})
	begin(t, b, rng)
	return b
}

// begin builds the model of b from 20 blobs of three classes, which it has not learnt.
func begin(t testing.TB, b *Bank, rng *rand.Rand) {
	t.Helper()
	var x []float64
	for range 20 {
		row, _ := blob(rng, b.cfg.Features)
		x = append(x, row...)
	}
	if err := b.Begin(x, 20, 3, false); err != nil {
		t.Fatal(err)
	}
	for k := range 3 {
		b.Grow(k)
	}
	b.EndWarmup()
}

// learn learns a minibatch of n blobs.
func learn(b *Bank, rng *rand.Rand, n int) error {
	mb := Minibatch{Latents: []int{0, 1, 2}, Live: true, Reach: math.Inf(1)}
	for range n {
		x, k := blob(rng, b.cfg.Features)
		mb.X, mb.Classes, mb.Weights = append(mb.X, x...), append(mb.Classes, k), append(mb.Weights, 1)
	}
	b.Save()
	if err := b.Learn(mb); err != nil {
		return b.Undo(err)
	}
	return nil
}

// feed learns n minibatches of the largest size.
func feed(t testing.TB, b *Bank, rng *rand.Rand, n int) {
	t.Helper()
	for range n {
		if err := learn(b, rng, b.cfg.Batch); err != nil {
			t.Fatal(err)
		}
	}
}

// encoded returns the whole state.
func encoded(b *Bank) []byte {
	var e wire.Encoder
	b.EncodeScale(&e, true)
	b.EncodeParams(&e)
	b.EncodeSites(&e)
	b.EncodePairs(&e)
	b.EncodeFiltered(&e)
	b.EncodeWaiting(&e)
	return e.Buf
}

// decoded reads a state that encoded wrote.
func decoded(cfg Config, data []byte) (*Bank, error) {
	b := New(cfg, &model.Posterior{Weights: slices.Repeat([]float64{1 / float64(len(cfg.Horizons))}, len(cfg.Horizons))})
	d := wire.NewDecoder(data, "", wire.ErrState)
	b.DecodeScale(d, true)
	b.DecodeSites(d, b.DecodeParams(d, 3, 100, 0))
	b.DecodePairs(d)
	if d.Len() > 0 {
		b.DecodeWaiting(d)
	}
	return b, d.End()
}

// A state that is read carries on with the same numbers.
func TestDecodeCarriesOn(t *testing.T) {
	for _, perClass := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(1, 1))
		cfg := testConfig(3)
		cfg.PerClass = perClass
		b := newTestBank(t, cfg, rng)
		feed(t, b, rng, 21)
		if b.waiting != cfg.Batch {
			t.Fatalf("the gradient has not followed %d samples, want those of a minibatch, %d", b.waiting, cfg.Batch)
		}
		data := encoded(b)
		again, err := decoded(cfg, data)
		if err != nil {
			t.Fatal(err)
		}
		feed(t, b, rand.New(rand.NewPCG(2, 2)), 10)
		feed(t, again, rand.New(rand.NewPCG(2, 2)), 10)
		if !slices.Equal(encoded(b), encoded(again)) {
			t.Errorf("per class %v: the restored bank carries on in another way", perClass)
		}
		for cut := range len(data) {
			if cut%97 != 0 {
				continue
			}
			if _, err := decoded(cfg, data[:cut]); !errors.Is(err, wire.ErrState) {
				t.Errorf("%d of %d bytes: %v", cut, len(data), err)
			}
		}
	}
}

// A minibatch of more than 16 samples makes several steps, each of samples spread over all of it.
func TestStepsOfAMinibatch(t *testing.T) {
	for n, steps := range map[int]int{4: 1, 15: 1, 16: 1, 17: 2, 32: 2, 33: 3, 40: 3} {
		cfg := testConfig(3)
		cfg.Batch, cfg.Window = 40, 64
		rng := rand.New(rand.NewPCG(1, 1))
		b := newTestBank(t, cfg, rng)
		mb := Minibatch{Latents: []int{0, 1, 2}, Reach: math.Inf(1)}
		for range n {
			x, k := blob(rng, 3)
			mb.X, mb.Classes, mb.Weights = append(mb.X, x...), append(mb.Classes, k), append(mb.Weights, 1)
		}
		b.Save()
		if err := b.Learn(mb); err != nil {
			t.Fatal(err)
		}
		if b.opt.Steps != uint64(steps) {
			t.Errorf("%d samples make %d steps, want %d", n, b.opt.Steps, steps)
		}
		var want []int
		for first := range steps {
			for i := first; i < n; i += steps {
				want = append(want, mb.Classes[i])
			}
		}
		if !slices.Equal(b.winY, want) {
			t.Errorf("%d samples are learnt as %v, want %v", n, b.winY, want)
		}
	}
}

// Under another scaling the points of the window are the same raw features, and missing ones stay.
func TestAdoptBasisScalesTheWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	b := newTestBank(t, testConfig(3), rng)
	feed(t, b, rng, 4)
	b.winX[4] = model.Missing // feature 1 of the second point
	p := b.Params()
	s := model.Scale{Clip: b.cfg.Clip}
	var want []float64
	for j, mu := range b.scale.Mu {
		s.Mu, s.Sd = append(s.Mu, mu+float64(j)), append(s.Sd, b.scale.Sd[j]*float64(j+2))
	}
	for i, x := range b.winX {
		j := i % 3
		want = append(want, (x*b.scale.Sd[j]-float64(j))/s.Sd[j])
	}
	want[4] = model.Missing
	b.Save()
	if err := b.AdoptBasis(&p, &s); err != nil {
		t.Fatal(err)
	}
	for i, v := range b.winX {
		if v != want[i] && !(math.Abs(v-want[i]) < 1e-12) {
			t.Errorf("feature %d of point %d is %v, want %v", i%3, i/3, v, want[i])
		}
	}
}

// Numbers that no bank has are refused: a step with them would fail, and so would each after it.
func TestDecodeRefuses(t *testing.T) {
	for name, spoil := range map[string]func(b *Bank){
		"mean":                      func(b *Bank) { b.view.Scale.Mu[1] = math.Inf(-1) },
		"standard deviation":        func(b *Bank) { b.view.Scale.Sd[1] = math.Inf(1) },
		"no standard deviation":     func(b *Bank) { b.view.Scale.Sd[1] = 0 },
		"standard deviation before": func(b *Bank) { b.sd0[0] = math.Inf(1) },
		"parameter":                 func(b *Bank) { b.params.Z()[0] = math.Inf(1) },
		"moment":                    func(b *Bank) { b.opt.M[0] = math.Inf(1) },
		"square":                    func(b *Bank) { b.opt.V[0] = -1 },
		"endless square":            func(b *Bank) { b.opt.V[3] = math.Inf(1) },
		"site":                      func(b *Bank) { b.sites[1].s2[0] = math.Inf(1) },
		"absorbed site":             func(b *Bank) { b.sites[0].diagonal[0] = -1e9 },
		"pair":                      func(b *Bank) { b.sites[0].p1[(b.winY[0]+1)%3*b.capacity] = math.Inf(1) },
	} {
		rng := rand.New(rand.NewPCG(1, 1))
		cfg := testConfig(3)
		b := newTestBank(t, cfg, rng)
		feed(t, b, rng, 21)
		if _, err := decoded(cfg, encoded(b)); err != nil {
			t.Fatal(err)
		}
		spoil(b)
		if _, err := decoded(cfg, encoded(b)); !errors.Is(err, wire.ErrState) {
			t.Errorf("%s: %v, want %v", name, err, wire.ErrState)
		}
	}
}

// A state that is accepted has the bytes that were read, and can be used.
func FuzzDecode(f *testing.F) {
	cfg := testConfig(2)
	cfg.Inducing, cfg.Horizons, cfg.Window = 3, cfg.Horizons[1:2], 4
	for _, n := range []int{0, 3, 8} {
		rng := rand.New(rand.NewPCG(1, 1))
		b := newTestBank(f, cfg, rng)
		feed(f, b, rng, n)
		f.Add(encoded(b))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := decoded(cfg, data)
		if err != nil {
			if !errors.Is(err, wire.ErrState) {
				t.Errorf("refused with %v", err)
			}
			return
		}
		again, err := decoded(cfg, encoded(b))
		if err != nil || !slices.Equal(encoded(again), encoded(b)) {
			t.Fatalf("the second decoding: %v", err)
		}
		if n := len(b.view.Latent); n != 3 {
			return
		}
		before := encoded(b)
		if err := learn(b, rand.New(rand.NewPCG(2, 2)), cfg.Batch); err != nil && !slices.Equal(encoded(b), before) {
			t.Errorf("a step that failed, %v, is not undone", err)
		}
	})
}

// Undo restores the state before a step that failed half way.
func TestUndo(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	b := newTestBank(t, testConfig(3), rng)
	feed(t, b, rng, 31)
	before := encoded(b)
	mean := slices.Clone(b.view.Bank[1].Mean)
	b.opt.V[0] = math.NaN() // poisons the gradient step
	if err := learn(b, rng, 5); !errors.Is(err, model.ErrNotFinite) {
		t.Errorf("a step that is not finite gave %v", err)
	}
	b.opt.V[0] = 0
	var e wire.Encoder
	e.Float(math.NaN())
	after := encoded(b)
	b.opt.V[0] = 1
	differ := 0
	for i := range before {
		if before[i] != after[i] {
			differ++
		}
	}
	if len(before) != len(after) || differ > len(e.Buf) {
		t.Errorf("%d bytes of the state were not restored", differ)
	}
	if !slices.Equal(mean, b.view.Bank[1].Mean) {
		t.Error("the posterior was not restored")
	}
	feed(t, b, rng, 20)
}

// A latent function that is removed leaves the others as they are; the sites of
// the window are exact.
func TestDropLatent(t *testing.T) {
	for _, perClass := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(3, 3))
		cfg := testConfig(3)
		cfg.PerClass = perClass
		b := newTestBank(t, cfg, rng)
		feed(t, b, rng, 20)
		absorbed := slices.Clone(b.sites[0].b[2*cfg.Inducing:])
		b.DropLatent(1)
		if err := b.Refresh(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(b.sites[0].b[cfg.Inducing:], absorbed) || slices.Max(b.winY) != 1 || len(b.view.Latent) != 2 {
			t.Errorf("per class %v: absorbed sites, window %v or latent functions %v are wrong", perClass, b.winY, b.view.Latent)
		}
		n := b.Window()
		if at := b.Find(b.winX[:3], b.winY[0]); at != 0 {
			t.Errorf("the oldest point was found at %d", at)
		}
		b.DropPoint(0)
		if err := b.Refresh(); err != nil || b.Window() != n-1 {
			t.Errorf("%v, %d points, want %d", err, b.Window(), n-1)
		}
	}
}

// A step with fewer new samples than the gradient follows uses those of the window as
// well, but only while the model warms up. Later every second step follows its samples
// and those of the step before it.
func TestGradientFollowsTheWindow(t *testing.T) {
	for _, c := range []struct {
		gradient int
		live     bool
		want     int
	}{{0, false, Replay}, {1, false, Replay}, {16, false, 16}, {1000, false, 30}, {16, true, 2 * Replay}} {
		cfg := testConfig(4)
		cfg.Inducing, cfg.Window, cfg.Batch, cfg.Gradient = 6, 30, 1, c.gradient
		cfg.Horizons = []float64{math.Inf(1)}
		rng := rand.New(rand.NewPCG(5, 5))
		b := newTestBank(t, cfg, rng)
		var before []float64
		for i := range 60 + Replay {
			if i == 60 {
				before = slices.Clone(b.params.Theta)
			}
			x, k := blob(rng, 4)
			b.Save()
			if err := b.Learn(Minibatch{X: x, Classes: []int{k}, Weights: []float64{1}, Latents: []int{0, 1, 2}, Live: c.live, Reach: math.Inf(1)}); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(b.work.grad.ev[0].Q); n != c.want {
			t.Errorf("gradient %d follows %d samples, want %d", c.gradient, n, c.want)
		}
		if slices.Equal(before, b.params.Theta) {
			t.Error("the step moved no parameter")
		}
	}
}

func TestStepDoesNotAllocate(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	b := newTestBank(t, testConfig(3), rng)
	feed(t, b, rng, 30)
	var mb Minibatch
	for range b.cfg.Batch {
		x, k := blob(rng, 3)
		mb.X, mb.Classes, mb.Weights = append(mb.X, x...), append(mb.Classes, k), append(mb.Weights, 1)
	}
	mb.Latents, mb.Live, mb.Reach = []int{0, 1, 2}, true, math.Inf(1)
	if n := testing.AllocsPerRun(20, func() {
		b.Save()
		if err := b.Learn(mb); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a minibatch allocates %g times", n)
	}
}

// A bank that rests has released the memory of a step.
func TestRest(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	b := newTestBank(t, testConfig(3), rng)
	feed(t, b, rng, 3)
	if b.Rest(); b.backup.sites != nil || b.spares != nil || b.work.u != nil {
		t.Error("a bank that rests keeps the memory of a step")
	}
	feed(t, b, rng, 3)
}
