package train

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"edge/model"
	"edge/online"
	"edge/online/sep"
	"edge/test/golden"
	"edge/test/offlineep"
)

// cloud is a set in memory.
type cloud struct {
	d int
	x []float64
	y []int
}

func (c *cloud) Len() int                 { return len(c.y) }
func (c *cloud) Row(i int, dst []float64) { copy(dst, c.x[i*c.d:(i+1)*c.d]) }
func (c *cloud) Class(i int) int          { return c.y[i] }
func (c *cloud) part(from, to int) *cloud { return &cloud{c.d, c.x[from*c.d : to*c.d], c.y[from:to]} }
func names(c int) []string                { return []string{"a", "b", "c", "d", "e"}[:c] }
func (c *cloud) label(i int) string       { return names(5)[c.y[i]] }
func (c *cloud) event(i int) *online.Event {
	return &online.Event{Kind: online.Observe, X: c.x[i*c.d : (i+1)*c.d], Label: c.label(i)}
}

// newCloud draws n points around a centre for each of c classes, in units that
// differ between the features.
func newCloud(n, d, c int, seed uint64) *cloud {
	rng := rand.New(rand.NewPCG(seed, 99))
	centres := make([]float64, c*d)
	for i := range centres {
		centres[i] = 1.5 * rng.NormFloat64()
	}
	s := &cloud{d: d}
	for i := range n {
		k := i % c
		for j := range d {
			s.x = append(s.x, float64(j+1)*(centres[k*d+j]+rng.NormFloat64())+3)
		}
		s.y = append(s.y, k)
	}
	return s
}

func trainConfig(d, m int, kernel online.Kernel) online.Config {
	cfg := online.DefaultConfig()
	cfg.Window, cfg.Batch.MaxSize = 12, 5
	for i := range d {
		cfg.Features = append(cfg.Features, fmt.Sprint("f", i))
	}
	cfg.Inducing, cfg.Kernel = m, kernel
	cfg.LabelNoise.Start = 0
	return cfg
}

func fullBatch(passes int) Config {
	how := Default()
	how.Batch, how.Passes, how.Damping, how.Schedule = 0, passes, 0.5, Constant
	return how
}

func newTestTrainer(t *testing.T, cfg online.Config, how Config, c int, set Samples) *Trainer {
	t.Helper()
	tr, err := New(cfg, how, names(c), set)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func run(t *testing.T, tr *Trainer, steps int) {
	t.Helper()
	for range steps {
		if tr.Done() {
			return
		}
		if _, err := tr.Step(); err != nil {
			t.Fatal(err)
		}
	}
}

// A minibatch that holds all samples of a small set is a full batch, whose sites are damped:
// replaced at once they oscillate, and the log evidence falls.
func TestSmallSet(t *testing.T) {
	for _, n := range []int{30, 60, 100, 130} {
		cfg, set := trainConfig(2, 10, online.Shared), newCloud(n, 2, 3, 4)
		how := Default()
		tr := newTestTrainer(t, cfg, how, 3, set)
		run(t, tr, math.MaxInt)
		if last, best := tr.curve[len(tr.curve)-1], slices.Max(tr.curve); last < best-0.1 {
			t.Errorf("%d samples: the log evidence ends at %.3g a sample, and was %.3g", n, last, best)
		}
		if full := how; n <= how.Batch {
			full.Batch = 0
			other := newTestTrainer(t, cfg, full, 3, set)
			run(t, other, math.MaxInt)
			if !slices.Equal(tr.b, other.b) {
				t.Errorf("%d samples: minibatches of %d end elsewhere than full batches", n, how.Batch)
			}
		}
	}
}

// slowStep is the tied step of one minibatch by its formula, with
// explicit matrices and inverses: A ← (1 − ρn/N)A + ρ Σ s1·w·wᵀ, with
// cavities from (1 − 1/N)A.
func slowStep(tr *Trainer, rows []int, first bool) (a []*mat.SymDense, b []*mat.VecDense) {
	m, c, n, all := tr.m, tr.c, len(rows), float64(tr.n)
	tr.load(tr.set, rows)
	mean, variance := mat.NewDense(n, c, nil), mat.NewDense(n, c, nil)
	w := make([]*mat.Dense, c)
	for k := range c {
		w[k] = mat.NewDense(n, m, slices.Clone(tr.work.w[tr.basis(k)][:n*m]))
		p := mat.NewDense(m, m, nil)
		bk := mat.NewVecDense(m, nil)
		ak := mat.NewSymDense(m, nil)
		for i := range m {
			for j := range i + 1 {
				ak.SetSym(i, j, tr.A[(k*m+i)*m+j])
			}
			bk.SetVec(i, tr.b[k*m+i])
		}
		p.Scale(1-1/all, ak)
		for i := range m {
			p.Set(i, i, p.At(i, i)+1)
		}
		var v mat.Dense
		if err := v.Inverse(p); err != nil {
			panic(err)
		}
		var mk, row mat.VecDense
		mk.MulVec(&v, bk)
		mk.ScaleVec(1-1/all, &mk)
		for i := range n {
			wi := mat.NewVecDense(m, w[k].RawRowView(i))
			row.MulVec(&v, wi)
			mean.Set(i, k, mat.Dot(wi, &mk))
			variance.Set(i, k, mat.Dot(wi, &row))
		}
		a, b = append(a, ak), append(b, bk)
	}
	keep := 1 - tr.damping*float64(n)/all
	if first {
		keep = 1
	}
	for k := range c {
		a[k].ScaleSym(keep, a[k])
		b[k].ScaleVec(keep, b[k])
	}
	var s sep.Site
	s.Resize(c)
	for i := range n {
		for k := range c {
			s.A[k], s.V[k] = mean.At(i, k), variance.At(i, k)
			s.T[k] = tr.work.q[tr.basis(k)][i] + s.V[k]
		}
		s.Update(tr.set.Class(rows[i]), 0, 1)
		for k := range c {
			wi := mat.NewVecDense(m, w[k].RawRowView(i))
			a[k].SymRankOne(a[k], tr.damping*s.S1[k], wi)
			b[k].AddScaledVec(b[k], tr.damping*s.S2[k], wi)
		}
	}
	return a, b
}

// The tied update of minibatches, in the first pass and later, and that of a
// full batch, against the slow step.
func TestTiedStep(t *testing.T) {
	set := newCloud(30, 3, 3, 1)
	for _, c := range []struct {
		name   string
		kernel online.Kernel
		batch  int
	}{
		{"minibatch, shared kernel", online.Shared, 8},
		{"minibatch, kernel per class", online.PerClass, 8},
		{"full batch", online.PerClass, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			how := Default()
			how.Batch, how.Rate, how.Settle, how.Damping = c.batch, 0, 0, 0.7
			tr := newTestTrainer(t, trainConfig(3, 7, c.kernel), how, 3, set)
			for step := range 9 {
				if tr.next == 0 {
					tr.shuffle()
				}
				rows := slices.Clone(tr.order[tr.next:min(tr.next+tr.batch, tr.n)])
				a, b := slowStep(tr, rows, tr.pass == 0 && c.batch > 0)
				run(t, tr, 1)
				for k := range 3 {
					var want, got []float64
					for i := range tr.m {
						for j := range i + 1 {
							want, got = append(want, a[k].At(i, j)), append(got, tr.A[(k*tr.m+i)*tr.m+j])
						}
					}
					golden.Close(t, "A", got, want, 1e-10)
					golden.Close(t, "b", tr.b[k*tr.m:(k+1)*tr.m], b[k].RawVector().Data, 1e-10)
				}
				if t.Failed() {
					t.Fatalf("at step %d, pass %d", step, tr.pass)
				}
			}
		})
	}
}

// An explicit site of a minibatch, against the product of all others by
// explicit matrices: at the start of a pass, when A holds each site once, and
// later in it, when they have faded.
func TestExplicitStep(t *testing.T) {
	const n, c, m, batch = 60, 3, 5, 12
	set := newCloud(n, 3, c, 1)
	for _, kernel := range []online.Kernel{online.Shared, online.PerClass} {
		t.Run(string(kernel), func(t *testing.T) {
			how := Default()
			how.Batch, how.Rate, how.Sites = batch, 0, Merged
			tr := newTestTrainer(t, trainConfig(3, m, kernel), how, c, set)
			run(t, tr, n/batch)
			tr.current()
			left, checked := 1.0, 0
			for range n / batch {
				a, b, old1, old2 := slices.Clone(tr.A), slices.Clone(tr.b), slices.Clone(tr.s1), slices.Clone(tr.s2)
				run(t, tr, 1)
				end := tr.next
				if end == 0 { // the pass is complete
					end = n
				}
				rows := tr.order[end-batch : end]
				var s sep.Site
				s.Resize(c)
				for i, r := range rows {
					bounded := false
					for k := range c {
						w := mat.NewVecDense(m, tr.work.w[tr.basis(k)][i*m:(i+1)*m])
						p, h := mat.NewSymDense(m, nil), mat.NewVecDense(m, nil)
						for i := range m {
							for j := range i + 1 {
								p.SetSym(i, j, a[(k*m+i)*m+j])
							}
							p.SetSym(i, i, p.At(i, i)+1)
							h.SetVec(i, b[k*m+i])
						}
						var full, vw, mean mat.VecDense
						if err := full.SolveVec(p, w); err != nil {
							t.Fatal(err)
						}
						bounded = bounded || left*old1[r*c+k]*mat.Dot(w, &full) > maxOwn
						p.SymRankOne(p, -left*old1[r*c+k], w)
						h.AddScaledVec(h, -left*old2[r*c+k], w)
						if err := errors.Join(vw.SolveVec(p, w), mean.SolveVec(p, h)); err != nil {
							t.Fatal(err)
						}
						s.A[k], s.V[k] = mat.Dot(w, &mean), mat.Dot(w, &vw)
						s.T[k] = tr.work.q[tr.basis(k)][i] + s.V[k]
					}
					if bounded {
						continue
					}
					checked++
					s.Update(set.Class(r), 0, 1)
					golden.Close(t, "s1", tr.s1[r*c:(r+1)*c], s.S1, 1e-9)
					golden.Close(t, "s2", tr.s2[r*c:(r+1)*c], s.S2, 1e-9)
				}
				left *= 1 - float64(batch)/n
			}
			if checked < n/2 {
				t.Errorf("%d of %d samples had a small part in their marginals", checked, n)
			}
		})
	}
}

// Where the tied sites are the sum of their updates, nothing moves.
func TestTiedFixedPoint(t *testing.T) {
	how := fullBatch(400)
	how.Rate = 0
	tr := newTestTrainer(t, trainConfig(2, 6, online.Shared), how, 3, newCloud(24, 2, 3, 4))
	run(t, tr, 400)
	before := slices.Clone(tr.A)
	if err := tr.update(tr.order, false); err != nil {
		t.Fatal(err)
	}
	golden.Close(t, "A", tr.A, before, 1e-9)
}

// Explicit sites converge to those of the slow expectation propagation, and to its
// log evidence.
func TestExplicitFixedPoint(t *testing.T) {
	how := fullBatch(400)
	how.Rate, how.Sites, how.Noise = 0, Merged, 1
	set := newCloud(12, 2, 3, 7)
	tr := newTestTrainer(t, trainConfig(2, 4, online.Shared), how, 3, set)
	run(t, tr, 400)
	x := make([]float64, len(set.x))
	for i := range set.y {
		tr.scale.To(x[i*2:(i+1)*2], set.x[i*2:(i+1)*2])
	}
	e := offlineep.New(t, tr.params, x, set.y, 3, 0)
	e.Converge(t)
	golden.Close(t, "s1", tr.s1, e.S1, 1e-7)
	golden.Close(t, "s2", tr.s2, e.S2, 1e-7)
	got, err := tr.logEvidence()
	if err != nil {
		t.Fatal(err)
	}
	golden.Close(t, "log Z_q", []float64{got}, []float64{e.LogZq(t)}, 1e-8)
}

// The tied log evidence by determinants and solves.
func TestTiedLogEvidence(t *testing.T) {
	const n, m, c = 20, 5, 3
	how := fullBatch(60)
	how.Rate = 0
	tr := newTestTrainer(t, trainConfig(2, m, online.PerClass), how, c, newCloud(n, 2, c, 9))
	run(t, tr, 60)
	got, err := tr.logEvidence()
	if err != nil {
		t.Fatal(err)
	}
	phi := func(f float64) (total float64) {
		for k := range c {
			p, b := mat.NewSymDense(m, nil), mat.NewVecDense(m, nil)
			for i := range m {
				for j := range i + 1 {
					p.SetSym(i, j, f*tr.A[(k*m+i)*m+j])
				}
				p.SetSym(i, i, p.At(i, i)+1)
				b.SetVec(i, f*tr.b[k*m+i])
			}
			var x mat.VecDense
			if err := x.SolveVec(p, b); err != nil {
				t.Fatal(err)
			}
			total += 0.5*mat.Dot(b, &x) - 0.5*math.Log(mat.Det(p))
		}
		return total
	}
	want := phi(1) + n*(phi(1-1./n)-phi(1))
	tr.sum = 0 // the next update adds up log Z_i of the state before it
	if err := tr.update(tr.order, false); err != nil {
		t.Fatal(err)
	}
	golden.Close(t, "log Z_q", []float64{got}, []float64{want + tr.sum}, 1e-10)
}

// Kernels that are alike and do not move make no difference.
func TestKernelPerClassThatIsShared(t *testing.T) {
	set := newCloud(90, 3, 3, 2)
	var probs [2][]float64
	for i, kernel := range []online.Kernel{online.Shared, online.PerClass} {
		how := Default()
		how.Batch, how.Rate, how.Passes = 20, 0, 3
		tr := newTestTrainer(t, trainConfig(3, 8, kernel), how, 3, set)
		run(t, tr, 1000)
		if err := tr.Predict(set, func(_ int, p []float64) { probs[i] = append(probs[i], p...) }); err != nil {
			t.Fatal(err)
		}
	}
	golden.Close(t, "probabilities", probs[1], probs[0], 1e-12)
}

// The learner of a finished training gives the answers of the trainer, survives a
// restart byte for byte, and continues to learn, new classes included.
func TestLearnerCarriesOn(t *testing.T) {
	all := newCloud(360, 3, 4, 12)
	// the last class is not trained on
	trained, later := &cloud{d: 3}, &cloud{d: 3}
	for i, y := range all.y {
		into := trained
		if y == 3 || i >= 240 {
			into = later
		}
		into.x, into.y = append(into.x, all.x[i*3:(i+1)*3]...), append(into.y, y)
	}
	for _, kernel := range []online.Kernel{online.Shared, online.PerClass} {
		t.Run(string(kernel), func(t *testing.T) {
			cfg := trainConfig(3, 10, kernel)
			how := Default()
			how.Batch, how.Passes = 30, 4
			tr := newTestTrainer(t, cfg, how, 3, trained)
			run(t, tr, 1000)
			l, err := tr.Learner()
			if err != nil {
				t.Fatal(err)
			}
			if !l.WarmedUp() || l.Posterior().N != uint64(trained.Len()) || l.Posterior().Counts[0] == 0 {
				t.Errorf("warm %v, %d samples, counts %v", l.WarmedUp(), l.Posterior().N, l.Posterior().Counts)
			}
			p, ws := l.Posterior(), model.NewWorkspace()
			err = tr.Predict(trained, func(i int, want []float64) {
				got, _, err := p.PredictTo(nil, trained.x[i*3:(i+1)*3], ws)
				if err != nil {
					t.Fatal(err)
				}
				golden.Close(t, "probabilities", got, want, 1e-9)
			})
			if err != nil {
				t.Fatal(err)
			}
			state, _ := l.AppendBinary(nil)
			again, err := online.Restore(cfg, state)
			if err != nil {
				t.Fatal(err)
			}
			for i := range later.y {
				for _, learner := range []*online.Learner{l, again} {
					if out := learner.Add(later.event(i)); out.Refused != nil {
						t.Fatal(out.Refused)
					}
				}
			}
			if l.Digest() != again.Digest() {
				t.Error("the restored learner ends elsewhere")
			}
			s := l.Scores()
			if len(s.Classes) != 4 || s.Window.Error > 0.4 {
				t.Errorf("classes %v, error of the last samples %.3f", s.Classes, s.Window.Error)
			}
			if want := map[online.Kernel]int{online.Shared: 1, online.PerClass: 4}[kernel]; len(l.Posterior().Bases) != want {
				t.Errorf("%d kernels, want %d", len(l.Posterior().Bases), want)
			}
		})
	}
}

// Training raises the log evidence and ends where it does not rise any more.
func TestTrainingEnds(t *testing.T) {
	all := newCloud(400, 4, 3, 21)
	how := fullBatch(500)
	how.Patience, how.Tolerance, how.Rate = 10, 1e-3, 0.02
	tr := newTestTrainer(t, trainConfig(4, 12, online.Shared), how, 3, all.part(0, 200))
	run(t, tr, 1000)
	s, err := tr.Score(all.part(200, 400))
	if err != nil {
		t.Fatal(err)
	}
	if s.N != 200 || s.Error > 0.2 {
		t.Errorf("error %.3f of %d held-out samples", s.Error, s.N)
	}
	if tr.Passes() >= 500 || !(tr.Evidence() > tr.curve[0]) {
		t.Errorf("%g passes, log evidence %.4f, at first %.4f", tr.Passes(), tr.Evidence(), tr.curve[0])
	}
}

func TestSignRule(t *testing.T) {
	r := newSignRule(3)
	theta := make([]float64, 3)
	r.Ascend(theta, []float64{1, -2, 100}, 0.1)
	golden.Close(t, "first step", theta, []float64{0.1, -0.2, signStep}, 1e-15)
	r.Ascend(theta, []float64{1, 1, 0}, 0.1)
	golden.Close(t, "second step", theta, []float64{0.1 + 0.102, -0.2 + 0.05, signStep}, 1e-15)
	golden.Close(t, "rates", r.rate, []float64{1.02, 0.5, 1}, 1e-15)
}

func TestTrainingValidate(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"sign rule on minibatches": func(h *Config) { h.Optimizer = SignRule },
		"unknown schedule":         func(h *Config) { h.Schedule = "up" },
		"no pass":                  func(h *Config) { h.Passes = 0 },
		"negative rate":            func(h *Config) { h.Rate = -1 },
		"NaN damping":              func(h *Config) { h.Damping = math.NaN() },
	} {
		how := Default()
		change(&how)
		if err := how.Validate(); !errors.Is(err, online.ErrConfig) {
			t.Errorf("%s: %v, want ErrConfig", name, err)
		}
	}
}
