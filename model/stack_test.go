package model

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"edge/test/golden"
)

// stacked is a prediction of three classes by two horizons, of which the second
// class has no latent function yet.
func stacked() (*Posterior, *Workspace) {
	p := chained([]float64{6, 2, 0, 1, 6, 1, 0, 2, 6}, 2, 8, 9, 8)
	p.Bank, p.Latent = make([]Gaussian, 2), []int{2, 0}
	p.Pool.Weights[0], p.Pool.Weights[2], p.Pool.Weights[9] = 0.5, 0.2, 0.3
	p.Pool.Order.Recent = []float64{5, 0, 1, 9, 1, 2, 20, 0, 3}
	p.Pool.Stack = Stack{
		Ordered: Blend{Exponents: []float64{0.5, 0.7, 0.6, 0.9, 0.2, -0.1, 0.3}, Weight: 0.25},
		Plain:   Blend{Exponents: []float64{0.8, -0.2, 0.4}, Weight: 0.75},
		Linear:  Regression{D: 2, W: []float64{1, -1, 0.5, 0, 2, -0.5, -30, 0, 0}, V: []float64{0.1, 0, 0.2, 0, 0, 0.1}},
	}
	return p, &Workspace{perHorizon: []float64{0.3, 0.7, 0.6, 0.4}, inputs: inputs{known: []float64{9, 9, 0.8, 0.4}}, answer: answer{row: 1}}
}

// Both blends' answers against their formulas, and their parts in the whole.
func TestStack(t *testing.T) {
	p, ws := stacked()
	for _, ahead := range []int{1, 0, 3} {
		bank := []float64{0.5, 0.3, 0.2}
		alone := slices.Clone(bank)
		poolAlone(p, alone, 0)
		dst := slices.Clone(bank)
		p.foresee(ahead, &ws.forecast)
		p.pool(dst, &ws.forecast)
		members := slices.Clone(dst)
		p.stack(dst, ws)

		pi := []float64{9. / 28, 10. / 28, 9. / 28}
		experts := [][]float64{{0.7, floorExpert, 0.3}, {0.4, floorExpert, 0.6}}
		divisor := math.Sqrt(1 + math.Pi/8*(0.1*0.8*0.8+0.2*0.4*0.4+0.1))
		linear := []float64{math.Exp((0.8 - 0.4 + 0.5) / divisor), math.Exp((0.8 - 0.5) / divisor), math.Exp(-24 / divisor)}
		sum := linear[0] + linear[1] + linear[2]
		for k, e := range linear {
			linear[k] = max(e/sum, floorExpert)
		}
		experts = append(experts, linear)
		plain := blended(experts, p.Pool.Stack.Plain.Exponents)
		out := ws.Plain(p)
		golden.Close(t, "plain answer", out.Answer, plain, 1e-12)
		golden.Close(t, "members without an order", out.Members, alone, 1e-14)
		if len(out.Experts) != 3*3 {
			t.Errorf("%d logarithms, want 9", len(out.Experts))
		}
		if ahead == 0 { // the place of the sample in the order of the labels is unknown
			for k := range plain {
				plain[k] = 0.25*members[k] + 0.75*plain[k]
			}
			golden.Close(t, "mixture without an order", dst, plain, 1e-12)
			if ws.Ordered().Answer != nil {
				t.Errorf("without an order: %v, want no answer", ws.Ordered())
			}
			continue
		}

		var chain []float64
		f := &forecast{pi: pi}
		f.expect(&p.Pool.Order, ahead)
		for k := range pi {
			chain = append(chain, (0.75*f.paths[k]+0.25*f.paths[3+k])/pi[k])
		}
		experts = append(experts, chain)
		for j := range RecentMemories {
			row, n := p.Pool.Order.Recent[3*j:3*j+3], 0.0
			for _, v := range row {
				n += v
			}
			var recent []float64
			for k, v := range row {
				recent = append(recent, (v+recentPrior*pi[k])/(n+recentPrior)/pi[k])
			}
			experts = append(experts, recent)
		}
		want := blended(experts, p.Pool.Stack.Ordered.Exponents)
		out = ws.Ordered()
		golden.Close(t, "answer", out.Answer, want, 1e-12)
		golden.Close(t, "members", out.Members, members, 0)
		if len(out.Experts) != 7*3 {
			t.Errorf("%d logarithms, want 21", len(out.Experts))
		}
		for k := range want {
			want[k] = 0.75*members[k] + 0.25*want[k]
		}
		golden.Close(t, "mixture", dst, want, 1e-12)
	}
}

// blended is the normalised product of the experts' powers.
func blended(experts [][]float64, exponents []float64) []float64 {
	product, sum := []float64{1, 1, 1}, 0.0
	for k := range product {
		for j, e := range experts {
			product[k] *= math.Pow(e[k], exponents[j])
		}
		sum += product[k]
	}
	for k := range product {
		product[k] /= sum
	}
	return product
}

// A clone shares no memory with its original.
func TestStackClone(t *testing.T) {
	p, _ := stacked()
	s := p.Pool.Stack.clone()
	s.Ordered.Exponents[0], s.Plain.Exponents[0], s.Linear.W[0], s.Linear.V[0] = 3, 3, 3, 3
	if of := p.Pool.Stack; of.Ordered.Exponents[0] == 3 || of.Plain.Exponents[0] == 3 || of.Linear.W[0] == 3 || of.Linear.V[0] == 3 {
		t.Error("the clone's numbers are those of the original")
	}
}

// Before the regression has weights its exponent has no effect.
func TestStackWithoutRegression(t *testing.T) {
	p, ws := stacked()
	p.Pool.Stack.Linear.W = nil
	answers := make([][]float64, 2)
	for i := range answers {
		dst := []float64{0.5, 0.3, 0.2}
		p.foresee(1, &ws.forecast)
		p.pool(dst, &ws.forecast)
		p.stack(dst, ws)
		answers[i] = dst
		p.Pool.Stack.Ordered.Exponents[2] = 5
	}
	golden.Close(t, "answer", answers[1], answers[0], 0)
}

// Logarithms of probabilities against their formula, for logits that overflow, with a feature
// that is missing, and with a covariance and a diagonal one.
func TestRegression(t *testing.T) {
	got := make([]float64, 3)
	for _, d := range []int{2, MaxCorrelated + 1} {
		r := NewRegression(d, 3)
		for k, w := range [][3]float64{{1, 2, 0.5}, {-1, 0, 0}, {0.5, 0.5, -2}} {
			r.W[k*(d+1)], r.W[k*(d+1)+1], r.W[k*(d+1)+d] = w[0], w[1], w[2]
		}
		v := [3][3]float64{{0.9, 0.2, -0.3}, {0.2, 1.1, 0.1}, {-0.3, 0.1, 0.6}} // of both features and the constant
		if r.Diagonal() {
			for i := range v {
				for j := range i {
					v[i][j], v[j][i] = 0, 0
				}
			}
			r.V[0], r.V[1], r.V[d] = v[0][0], v[1][1], v[2][2]
		} else {
			r.V = []float64{v[0][0], v[1][0], v[1][1], v[2][0], v[2][1], v[2][2]}
		}
		for name, tc := range map[string]struct {
			x      [2]float64
			logits []float64
		}{
			"plain":   {[2]float64{0.3, -1}, []float64{0.3 - 2 + 0.5, -0.3, 0.15 - 0.5 - 2}},
			"large":   {[2]float64{90000, 0}, []float64{90000.5, -90000, 44998}},
			"missing": {[2]float64{Missing, 1}, []float64{2.5, 0, -1.5}},
		} {
			x := make([]float64, d)
			x[0], x[1] = tc.x[0], tc.x[1]
			KnownTo(x, x)
			r.LogsTo(got, x)
			var variance float64
			known := [3]float64{x[0], x[1], 1}
			for i := range v {
				for j := range v {
					variance += known[i] * v[i][j] * known[j]
				}
			}
			var sum float64
			for k := range tc.logits {
				tc.logits[k] /= math.Sqrt(1 + math.Pi*variance/8)
			}
			top := slices.Max(tc.logits)
			for _, a := range tc.logits {
				sum += math.Exp(a - top)
			}
			for k, a := range tc.logits {
				tc.logits[k] = a - top - math.Log(sum)
			}
			golden.Close(t, fmt.Sprintf("%d features, %s", d, name), got, tc.logits, 1e-12)
		}
	}
}
