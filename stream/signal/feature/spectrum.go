package feature

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"
)

const (
	maxPlans  = 16      // lengths whose tables are kept
	maxRows   = 1 << 16 // of all of them, if there is more than one: 2 MB
	maxLength = 1 << 20 // rows of a spectrum; from 3,188,646 on a length may have too many factors for gonum
)

// spectrum is the power of the deviations of a window, and the memory to compute it.
type spectrum struct {
	plans []*plan // the one used last first

	tapered      []float64 // rows times Hann's window
	coefficients []complex128

	n     int       // rows
	power []float64 // P_0 … P_⌊n/2⌋, in the unit of the signal squared; P_0 is 0
	total float64   // their sum; 0 for a constant window
}

// plan has the tables of the transform of one length.
type plan struct {
	fft  *fourier.FFT
	hann []float64 // (1 − cos(2πi/n))/2, the periodic one
}

// compute computes the power of the deviations b,
//
//	P_k = |Σ_i w_i b_i exp(−2πi·ki/n)|² · 16/(3n²),  k = 1 … ⌊n/2⌋
//
// with Hann's window w. The scale is 2/(n·Σw²): P sums up to about s² for every n (Welch
// 1967). A length with a prime factor above 7, which takes the transform longer, is cut
// at the front to the next smaller one that has none.
func (s *spectrum) compute(b []float64, constant bool) {
	s.n, s.total = smooth(min(len(b), maxLength)), 0
	if constant {
		return
	}
	b = b[len(b)-s.n:]
	p := s.plan(s.n)
	s.tapered = slices.Grow(s.tapered[:0], s.n)[:s.n]
	for i, h := range p.hann {
		s.tapered[i] = h * b[i]
	}
	half := s.n / 2
	s.coefficients = p.fft.Coefficients(slices.Grow(s.coefficients[:0], half+1)[:half+1], s.tapered)
	s.power = slices.Grow(s.power[:0], half+1)[:half+1]
	s.power[0] = 0
	n := float64(s.n)
	scale := 16 / (3 * n * n)
	for k, c := range s.coefficients[1:] {
		s.power[k+1] = (float64(real(c)*real(c)) + float64(imag(c)*imag(c))) * scale
		s.total += s.power[k+1]
	}
}

// smooth returns the largest number up to n ≥ 1 without a prime factor above 7.
func smooth(n int) int {
	for ; ; n-- {
		rest := n
		for _, p := range [...]int{2, 3, 5, 7} {
			for rest%p == 0 {
				rest /= p
			}
		}
		if rest == 1 {
			return n
		}
	}
}

// plan returns the tables of a length. It keeps those of maxPlans lengths, as long as they
// have at most maxRows rows together; a further one takes the place of those that were not
// used for longest.
func (s *spectrum) plan(n int) *plan {
	var p *plan
	if i := slices.IndexFunc(s.plans, func(p *plan) bool { return len(p.hann) == n }); i >= 0 {
		p = s.plans[i]
		s.plans = slices.Delete(s.plans, i, i+1)
	} else {
		p = s.makeRoom(n)
		p.reset(n)
	}
	s.plans = slices.Insert(s.plans, 0, p)
	return p
}

// makeRoom drops tables until there is room for those of n rows. It returns the memory of
// the ones that it dropped last, if that is not much larger.
func (s *spectrum) makeRoom(n int) *plan {
	rows := n
	for _, p := range s.plans {
		rows += cap(p.hann)
	}
	p := &plan{}
	for last := len(s.plans) - 1; last >= 0 && (last+1 >= maxPlans || rows > maxRows); last-- {
		p = s.plans[last]
		rows -= cap(p.hann)
		s.plans = slices.Delete(s.plans, last, last+1)
	}
	if n < cap(p.hann)/2 {
		p = &plan{}
	}
	return p
}

// reset computes the tables of a length.
func (p *plan) reset(n int) {
	if p.fft == nil || cap(p.hann) < n {
		*p = plan{fft: new(fourier.FFT), hann: make([]float64, n)}
	}
	p.fft.Reset(n)
	p.hann = p.hann[:n]
	for i := range p.hann {
		p.hann[i] = 0.5 - float64(0.5*math.Cos(2*math.Pi*float64(i)/float64(n)))
	}
}

// peak returns the frequency of the largest power, 0 without power. Of powers that are
// equal to nine digits it is the lowest frequency, however the transform rounds.
func (s *spectrum) peak() float64 {
	if s.total == 0 {
		return 0
	}
	enough := slices.Max(s.power) * (1 - 1e-9)
	at := slices.IndexFunc(s.power, func(p float64) bool { return p >= enough })
	return float64(at) / float64(s.n)
}

// centroid returns the mean frequency, weighted by the power; 0 without power.
func (s *spectrum) centroid() float64 {
	if s.total == 0 {
		return 0
	}
	sum := 0.0
	for k, p := range s.power {
		sum += float64(float64(k) * p)
	}
	return sum / s.total / float64(s.n)
}

// entropy returns −Σ p ln p / ln⌊n/2⌋ of p = P/ΣP: from 0, all power at one frequency, to
// 1, the same at each. It is 0 without power and for n < 4, with one frequency.
func (s *spectrum) entropy() float64 {
	if s.total == 0 || s.n < 4 {
		return 0
	}
	sum := 0.0
	for _, p := range s.power {
		if p /= s.total; p > 0 {
			sum += float64(p * math.Log(p))
		}
	}
	return -sum / math.Log(float64(s.n/2))
}

// band returns log10(power + 1e-12) of the frequencies from 1/low to below 1/high, or, for
// the highest band, to 1/2. It is −12 without power and where n is too small for the band.
func (s *spectrum) band(low, high int) float64 {
	sum := 0.0
	if s.total > 0 {
		from, to := (s.n+low-1)/low, (s.n+high-1)/high
		if high == 2 {
			to = s.n/2 + 1
		}
		for _, p := range s.power[from:to] {
			sum += p
		}
	}
	return math.Log10(sum + 1e-12)
}
