package online

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"edge/model"
)

// oneCore runs the tasks of a posterior one after the other.
type oneCore struct{}

func (oneCore) Cores() int { return 1 }

func (oneCore) Run(n int, _ float64, task func(worker, i int) error) error {
	for i := n - 1; i >= 0; i-- {
		if err := task(0, i); err != nil {
			return err
		}
	}
	return nil
}

// Inputs that are prepared are answered as each alone, to the last bit.
func TestPrepareIsOneByOne(t *testing.T) {
	for _, kernel := range []Kernel{Shared, PerClass} {
		cfg := testConfig(3, "a", "b", "c", "declared")
		cfg.Kernel, cfg.Inducing = kernel, 30
		l := newTestLearner(t, cfg)
		rng := rand.New(rand.NewPCG(1, 1))
		together, alone := model.NewWorkspace(), model.NewWorkspace()
		if l.view.Prepare([]float64{1, 2, 3}, 1, oneCore{}, together) || together.Prepared() != 0 {
			t.Error("prepared without a model")
		}
		feed(l, rng, 200)
		p := l.Posterior()
		for _, n := range []int{1, 2, 5, 16} {
			var x []float64
			for range n {
				x = append(x, blob(rng, 3).X...)
			}
			x[n] = math.NaN()
			for i := range n {
				p.Foresee(i, i%3, together)
			}
			if !p.Prepare(x, n, oneCore{}, together) || together.Prepared() != n {
				t.Fatalf("%d inputs were not prepared", n)
			}
			for i := range n {
				got, one, together := together.Reply(i)
				want, other, err := p.PredictNextTo(nil, x[i*3:(i+1)*3], i%3, alone)
				if err != nil || one != other || !slices.Equal(got, want) {
					t.Fatalf("input %d of %d: %v and %v, alone %v and %v (%v)", i, n, got, one, want, other, err)
				}
				if !slices.Equal(together.Experts(), alone.Experts()) || !slices.Equal(together.PerHorizon(), alone.PerHorizon()) || together.Clipped() != alone.Clipped() {
					t.Fatalf("input %d of %d: the parts differ from those alone", i, n)
				}
			}
		}
		if _, _, err := p.PredictTo(nil, []float64{1, 2, 3}, together); err != nil || together.Prepared() != 0 {
			t.Errorf("%d inputs are prepared after a prediction (%v)", together.Prepared(), err)
		}
	}
}

// mixedRecords are samples with all that ends a run of expected ones: features that are
// missing or refused, new classes, late labels, corrections, boundaries, changes of classes.
func mixedRecords(rng *rand.Rand, n int) (records []Record) {
	for i := range n {
		ev := blob(rng, 3)
		switch {
		case i%50 == 7:
			ev.Label = fmt.Sprint("c", i/200)
		case i%31 == 3:
			ev.X[i%3] = math.NaN()
		case i%83 == 9:
			ev.X[0] = math.Inf(1)
		case i%29 == 4:
			ev.Known = true
		case i%97 == 11:
			ev = Event{Kind: Boundary}
		case i%301 == 300:
			ev = Event{Kind: ClassRename, Label: "b", Name: "renamed"}
		case i%401 == 400:
			ev = Event{Kind: ClassRemove, Label: "c1"}
		case i%43 == 5:
			ev.Weight = 0.5
		}
		records = append(records, Record{Seq: uint64(i + 1), Event: ev})
	}
	return records
}

// A learner that expects its records ends in the state of one that does not, on any
// number of cores, also if others come than it expected.
func TestExpect(t *testing.T) {
	all := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(all)
	n := 1000
	if testing.Short() {
		n = 300
	}
	for _, kernel := range []Kernel{Shared, PerClass} {
		cfg := testConfig(3)
		cfg.Kernel, cfg.Classes.Open, cfg.Batch.MaxSize, cfg.Window = kernel, true, 10, 20
		records := mixedRecords(rand.New(rand.NewPCG(3, 3)), n)
		var plain *Learner
		for _, cores := range []int{1, 4} {
			runtime.GOMAXPROCS(cores)
			plain = newTestLearner(t, cfg)
			expecting := newTestLearner(t, cfg)
			rng, prepared := rand.New(rand.NewPCG(4, 4)), 0
			for i := range records {
				if at := rng.IntN(12); at == 0 { // records that do not come
					expecting.expect(records[rng.IntN(len(records)):])
				} else {
					expecting.expect(records[i:min(i+2*at, len(records))])
				}
				prepared += min(expecting.expected.n, 1)
				one, other := plain.Add(&records[i].Event), expecting.Add(&records[i].Event)
				if fmt.Sprint(one) != fmt.Sprint(other) {
					t.Fatalf("record %d: %v with expectations, %v without", i, other, one)
				}
				if i == n/2 {
					expecting.rest()
				}
				if i%100 == 99 && plain.Digest() != expecting.Digest() {
					t.Fatalf("another state after record %d, with %d cores", i, cores)
				}
			}
			if prepared < n*3/10 {
				t.Errorf("samples were prepared at %d of %d records", prepared, len(records))
			}
		}
	}
}
