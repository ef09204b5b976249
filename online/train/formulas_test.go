package train

import (
	"math"
	"testing"

	"edge/lab/labtest"
	"edge/online"
	"edge/test/golden"
)

// The learning rate at the begin, in the middle, at the end and beyond it.
func TestRates(t *testing.T) {
	for schedule, want := range map[Schedule][4]float64{
		Constant:    {0.4, 0.4, 0.4, 0.4},
		Cosine:      {0.4, 0.4 * 0.505, 0.004, 0.004},
		InverseSqrt: {0.4, 0.4 / 3, 0.4 / math.Sqrt(17), 0.4 / 5},
	} {
		how := Config{Passes: 16, Rate: 0.4, Schedule: schedule}
		golden.Close(t, string(schedule), []float64{how.rate(0), how.rate(8), how.rate(16), how.rate(24)}, want[:], 1e-12)
	}
}

// The gradient in logit ε is the difference of the log evidence of labels that may be wrong; it is 0
// where the label noise is not learnt.
func TestGradientOfLabelNoise(t *testing.T) {
	d, p := labtest.Twelve()
	for _, sites := range []Sites{Merged, Pairs, Rep} {
		at := func(logit float64, learn bool) (sum, grad float64) {
			tr := twelve(t, d, p, sites, 0.05)
			sweep(t, tr, 3, 0.7)
			tr.cfg.LabelNoise.Learn, tr.sum = learn, 0
			*tr.params.LogitEps() = logit
			if err := tr.setBases(); err != nil {
				t.Fatal(err)
			}
			if err := tr.update(tr.order, true); err != nil {
				t.Fatal(err)
			}
			return tr.sum, tr.work.grad.theta[len(tr.work.grad.theta)-1]
		}
		const logit, step = -2.5, 1e-4
		up, _ := at(logit+step, true)
		down, _ := at(logit-step, true)
		_, got := at(logit, true)
		if math.Abs(got) < 0.01 {
			t.Errorf("%s: gradient %g: the labels tell nothing", sites, got)
		}
		golden.Close(t, string(sites), []float64{got}, []float64{(up - down) / (2 * step)}, 1e-6)
		if _, kept := at(logit, false); kept != 0 {
			t.Errorf("%s: gradient %g where the label noise is not learnt", sites, kept)
		}
	}
}

// With a start for each class half of its inducing inputs are among its own samples.
func TestStartOfEachClass(t *testing.T) {
	const n, m = 90, 8
	set := &cloud{d: 1}
	for i := range n {
		set.x, set.y = append(set.x, 100*float64(i%3)+float64(i/3)/100), append(set.y, i%3)
	}
	how := fullBatch(1)
	how.Start = PerClassKMeans
	tr := newTestTrainer(t, trainConfig(1, m, online.PerClass), how, 3, set)
	for g := range 3 {
		p, near := tr.params.Group(g), 0
		for _, z := range p.Z() {
			if math.Abs(tr.scale.Raw(0, z)-100*float64(g)) < 30 {
				near++
			}
		}
		if near != m/2 {
			t.Errorf("class %d: %d of %d inducing inputs are among its samples, want half", g, near, m)
		}
	}
}

// The sites settle before the first gradient step and after the last one.
func TestSettle(t *testing.T) {
	for _, settle := range []int{0, 3} {
		how := fullBatch(2)
		how.Settle = settle
		tr := newTestTrainer(t, trainConfig(2, 4, online.Shared), how, 2, newCloud(20, 2, 2, 1))
		var steps []uint64
		for !tr.Done() {
			if _, err := tr.Step(); err != nil {
				t.Fatal(err)
			}
			steps = append(steps, tr.counts.Steps)
		}
		if s := uint64(settle); len(steps) != 2 || steps[0] != s+1 || steps[1] != 2*s+2 {
			t.Errorf("settle %d: %v updates after each pass", settle, steps)
		}
	}
}
