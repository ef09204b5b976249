package mixture

import (
	"math"
	"math/rand/v2"
	"testing"

	"edge/model"
	"edge/online/wire"
	"edge/test/golden"
)

// The exponent is the one under which the probabilities of the classes with own labels are
// right, whatever the answer says of the others. It goes on after decoding, and with the next
// merge; the end of the fleet ends it.
func TestUnseenExponent(t *testing.T) {
	rare := []bool{false, true, false, false}
	for _, want := range []float64{0.6, 1, 1.7} {
		rng := rand.New(rand.NewPCG(1, 2))
		m := inFleet()
		var grid [200]float64 // log posterior of the exponents 0.02, 0.04, …
		for i := range grid {
			off := 0.02*float64(i+1) - 1
			grid[i] = -stackPrior / 2 * off * off
		}
		for range 4000 {
			p := make([]float64, 4)
			var sum, known float64
			for k := range p {
				p[k] = math.Exp(2 * rng.NormFloat64())
				sum += p[k]
			}
			for k := range p {
				if p[k] /= sum; !rare[k] {
					known += math.Pow(p[k], want)
				}
			}
			u := known * rng.Float64()
			class := 0
			for ; class < 3; class++ {
				if !rare[class] {
					if u -= math.Pow(p[class], want); u < 0 {
						break
					}
				}
			}
			for i := range grid {
				x := 0.02 * float64(i+1)
				grid[i] += x*math.Log(p[class]) - math.Log(math.Pow(p[0], x)+math.Pow(p[2], x)+math.Pow(p[3], x))
			}
			m.fleet.unseen.follow(class, 1, rare, p)
			m.fleet.unseen.follow(1, 1, rare, p) // a class with few own labels teaches nothing
		}
		best := 0
		for i, v := range grid {
			if v > grid[best] {
				best = i
			}
		}
		if got := m.UnseenExponent(); math.Abs(got-0.02*float64(best+1)) > 0.05 {
			t.Errorf("the exponent is %.3f, by the likelihood %.2f", got, 0.02*float64(best+1))
		}

		var e wire.Encoder
		m.EncodeUnseen(&e)
		again := inFleet()
		d := wire.NewDecoder(e.Buf, "", wire.ErrState)
		again.DecodeUnseen(d)
		again.fleet.unseen.follow(0, 1, rare, []float64{0.4, 0.3, 0.2, 0.1})
		m.Join([]int{0, 1}, Ahead) // other horizons
		m.fleet.unseen.follow(0, 1, rare, []float64{0.4, 0.3, 0.2, 0.1})
		golden.Close(t, "exponent after decoding", []float64{again.UnseenExponent()}, []float64{m.UnseenExponent()}, 0)
		if m.Join(nil, 0); d.Err() != nil || m.UnseenExponent() != 1 {
			t.Errorf("the exponent is %g without a fleet (%v)", m.UnseenExponent(), d.Err())
		}
		e.Buf = e.Buf[:0]
		if m.EncodeUnseen(&e); len(e.Buf) > 0 {
			t.Error("an exponent without a fleet is encoded")
		}
	}
}

// An answer that is sure of wrong classes, or always right, has an exponent within the bounds.
func TestUnseenExponentIsBounded(t *testing.T) {
	for class, want := range []float64{mostUnseen, leastUnseen} {
		m := inFleet()
		for range 20000 {
			m.fleet.unseen.follow(class, 1, []bool{false, false}, []float64{0.7, 0.3})
		}
		if got := m.UnseenExponent(); got != want {
			t.Errorf("the exponent is %g, want %g", got, want)
		}
	}
	m := inFleet()
	if m.ObserveUnseen(0, 1, []bool{false, true}, model.NewWorkspace()); m.UnseenExponent() != 1 {
		t.Error("an answer that was not given has taught the exponent")
	}
}
