package sep

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/model"
	"edge/test/golden"
)

// singles is a bank that learns one sample at a time and has a few filtered ones.
func singles(t *testing.T, rng *rand.Rand) *Bank {
	t.Helper()
	cfg := testConfig(3)
	cfg.Batch = 1
	b := newTestBank(t, cfg, rng)
	feed(t, b, rng, 200)
	for b.filtered != Replay-1 {
		feed(t, b, rng, 1)
	}
	return b
}

// bank is a copy of all posteriors.
func bank(b *Bank) []model.Gaussian {
	b.Share()
	return b.view.Snapshot().Bank
}

// The rank-one updates of filtered samples give the posterior that a
// factorisation of all sites gives.
func TestFilterIsRefresh(t *testing.T) {
	b := singles(t, rand.New(rand.NewPCG(1, 1)))
	got := bank(b)
	b.Own()
	if err := b.refresh(0, len(b.sites), 0, len(b.winY)); err != nil {
		t.Fatal(err)
	}
	for h, want := range bank(b) {
		golden.Close(t, "mean", got[h].Mean, want.Mean, 1e-10)
		var u, v []float64
		for k := range want.Classes() {
			for i := range want.M {
				at := (k*want.M + i) * want.M
				u, v = append(u, got[h].U[at:at+i+1]...), append(v, want.U[at:at+i+1]...)
			}
		}
		golden.Close(t, "inverse factor", u, v, 1e-10)
	}
}

// A filtered sample's site is the one of assumed-density filtering: with it the
// posterior has the moments of the sample's likelihood times the posterior before.
func TestFilterMatchesMoments(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	b := singles(t, rng)
	for b.filtered != 1 {
		feed(t, b, rng, 1)
	}
	before := bank(b)
	feed(t, b, rng, 1)
	at, m := len(b.winY)-1, b.cfg.Inducing
	w, y := b.work.features.w[0][at*m:(at+1)*m], b.winY[at]
	moments := func(g *model.Gaussian, k int) (mean, v float64) {
		u := g.U[k*m*m : (k+1)*m*m]
		for i := range m {
			var a float64
			for j := range i + 1 {
				a += u[i*m+j] * w[j]
			}
			mean += w[i] * g.Mean[k*m+i]
			v += a * a
		}
		return mean, v
	}
	for h := range before {
		var st Site
		st.Resize(3)
		for k := range 3 {
			st.A[k], st.V[k] = moments(&before[h], k)
			st.T[k] = b.work.features.q[0][at] + st.V[k]
		}
		st.Update(y, 0, 1)
		for k := range 3 {
			mean, v := moments(&b.view.Bank[h], k)
			wantMean, wantV := st.A[k]+st.V[k]*st.G[k], st.V[k]*max(1-st.V[k]*max(st.H[k], 0), minTilted)
			if math.Abs(mean-wantMean) > 1e-10 || math.Abs(v-wantV) > 1e-10 {
				t.Errorf("horizon %d, class %d: mean %v and variance %v, want %v and %v", h, k, mean, v, wantMean, wantV)
			}
		}
	}
}

func TestFilterDoesNotAllocate(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	b := singles(t, rng)
	x, k := blob(rng, 3)
	mb := Minibatch{X: x, Classes: []int{k}, Weights: []float64{1}, Latents: []int{0, 1, 2}, Live: true, Reach: math.Inf(1)}
	if n := testing.AllocsPerRun(20*Replay, func() {
		b.Save()
		if err := b.Learn(mb); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a sample learnt alone allocates %g times", n)
	}
}

// Undo restores the state before a minibatch, whether its samples were filtered or swept.
func TestUndoOfSingleSamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	cfg := testConfig(3)
	cfg.Batch = 1
	b := newTestBank(t, cfg, rng)
	feed(t, b, rng, 50)
	cause := errors.New("cause")
	for i := range 3 * Replay {
		want := everything(b)
		if err := learn(b, rng, 1); err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(everything(b), want) {
			t.Fatalf("sample %d changes nothing", i)
		}
		if err := b.Undo(cause); !errors.Is(err, cause) || !bytes.Equal(everything(b), want) {
			t.Errorf("sample %d, %d filtered before: Undo: %v, or the state is not that before", i, b.filtered, err)
		}
		for h := range b.sites {
			for _, sites := range b.sites[h].window() {
				for row := range slices.Chunk(*sites, b.capacity) {
					if slices.ContainsFunc(row[len(b.winY):], func(v float64) bool { return v != 0 }) {
						t.Fatalf("sample %d: a site is left of a point that is not there", i)
					}
				}
			}
		}
		feed(t, b, rng, 1)
	}
}
