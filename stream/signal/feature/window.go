package feature

import (
	"math"
	"slices"
)

// limit is the largest magnitude of a value: n fourth powers of twice as much are finite.
const limit = 1e70

// part is a set of the parts of a window that features share.
type part uint

const (
	deviations  part = 1 << iota // b, variance, sd, constant
	lagged                       // product
	raised                       // cubes, fourths
	differences                  // step
	ordered                      // sorted
	transformed                  // spectrum

	products = deviations | lagged
	powers   = deviations | raised
	spectra  = deviations | transformed
)

// window is a window of n values with the results that features share.
type window struct {
	floor float64 // is added to sd before its logarithm is taken

	a               []float64 // n values, within ±limit
	mean, low, high float64

	b            []float64 // n deviations from the mean
	variance, sd float64
	constant     bool

	product        [len(lags)]float64 // Σ b_i b_{i−h}
	cubes, fourths float64            // Σ b³, Σ b⁴
	step           struct{ sum, abs float64 }
	sorted         []float64
	spectrum       spectrum
}

// lags are the distances of the autocorrelations, in rows.
var lags = [...]int{1, 2, 4, 8}

// read takes the values of a window, with mean and extremes.
func (w *window) read(a []float64) {
	if len(a) == 0 {
		panic("feature: a window of no values")
	}
	w.a, w.mean, w.low, w.high = within(a)
}

// within returns the values of a window with mean and extremes. They are a itself, or a
// copy if values beyond ±limit must be replaced.
func within(a []float64) (values []float64, mean, low, high float64) {
	if mean, low, high = summary(a); low < -limit || high > limit {
		a = slices.Clone(a)
		for i, v := range a {
			a[i] = max(-limit, min(limit, v))
		}
		mean, low, high = summary(a)
	}
	return a, mean, low, high
}

// summary returns the mean, the smallest and the largest value.
func summary(a []float64) (mean, low, high float64) {
	sum := 0.0
	low, high = a[0], a[0]
	for _, v := range a {
		sum += v
		if v < low {
			low = v
		} else if v > high {
			high = v
		}
	}
	return sum / float64(len(a)), low, high
}

// flat reports whether n values with these extremes, mean and standard deviation are
// constant. Equal values have an s that is not 0 where their mean is rounded: 1e-12 for a
// million times 0.1.
func flat(low, high, mean, sd float64) bool {
	return low == high || sd <= 1e-12*max(1, math.Abs(mean))
}

// prepare computes parts of the window.
func (w *window) prepare(needs part) {
	if needs&deviations != 0 {
		w.deviate()
	}
	if needs&lagged != 0 {
		w.multiply()
	}
	if needs&raised != 0 {
		w.raise()
	}
	if needs&differences != 0 {
		w.differ()
	}
	if needs&ordered != 0 {
		w.sorted = append(w.sorted[:0], w.a...)
		slices.Sort(w.sorted)
	}
	if needs&transformed != 0 {
		w.spectrum.compute(w.b, w.constant)
	}
}

// deviate computes the deviations from the mean and their variance.
func (w *window) deviate() {
	w.b = slices.Grow(w.b[:0], len(w.a))[:len(w.a)]
	b, sum := w.b, 0.0
	for i, v := range w.a {
		d := v - w.mean
		b[i] = d
		sum += float64(d * d)
	}
	w.variance = sum / float64(len(w.a))
	w.sd = math.Sqrt(w.variance)
	w.constant = flat(w.low, w.high, w.mean, w.sd)
}

// multiply computes Σ b_i b_{i−h} of all lags h at once: four sums that do not wait for
// each other take the time of one.
func (w *window) multiply() {
	b, n := w.b, len(w.b)
	w.product = [len(lags)]float64{}
	for j, h := range lags {
		for i := h; i < min(n, 8); i++ {
			w.product[j] += float64(b[i] * b[i-h])
		}
	}
	if n <= 8 {
		return
	}
	p1, p2, p4, p8 := w.product[0], w.product[1], w.product[2], w.product[3]
	b1, b2, b4, b8 := b[7:n-1], b[6:n-2], b[4:n-4], b[:n-8]
	for i, d := range b[8:] {
		p1 += float64(d * b1[i])
		p2 += float64(d * b2[i])
		p4 += float64(d * b4[i])
		p8 += float64(d * b8[i])
	}
	w.product = [len(lags)]float64{p1, p2, p4, p8}
}

// raise computes the sums of the third and fourth powers.
func (w *window) raise() {
	var cubes, fourths float64
	for _, d := range w.b {
		q := d * d
		cubes += float64(q * d)
		fourths += float64(q * q)
	}
	w.cubes, w.fourths = cubes, fourths
}

// differ computes the sums of the steps from row to row and of their magnitudes.
func (w *window) differ() {
	var sum, magnitudes float64
	for i := 1; i < len(w.a); i++ {
		d := w.a[i] - w.a[i-1]
		sum += d
		magnitudes += math.Abs(d)
	}
	w.step.sum, w.step.abs = sum, magnitudes
}

// perVariance returns x/(n·s²), 0 for a constant window.
func (w *window) perVariance(x float64) float64 {
	if w.constant {
		return 0
	}
	return x / (float64(len(w.b)) * w.variance)
}

// slope returns n·Σ b_i k_i / Σ k_i² with k_i = i − (n−1)/2: the rise of the least-squares
// line over the window. It is 0 for n = 1.
func (w *window) slope() float64 {
	n := float64(len(w.b))
	if n == 1 {
		return 0
	}
	sum, k := 0.0, -(n-1)/2
	for _, d := range w.b {
		sum += float64(d * k)
		k++
	}
	return n * sum / (n * (float64(n*n) - 1) / 12)
}

// skew returns Σb³/n / s³, 0 for a constant window.
func (w *window) skew() float64 {
	if w.constant {
		return 0
	}
	return w.cubes / float64(len(w.b)) / (w.variance * w.sd)
}

// logKurtosis returns ln(Σb⁴/n / s⁴), that of a normal distribution, ln 3, for a constant
// window.
func (w *window) logKurtosis() float64 {
	if w.constant {
		return math.Log(3)
	}
	return math.Log(w.fourths / float64(len(w.b)) / (w.variance * w.variance))
}

// crest returns max|b|/s, 0 for a constant window.
func (w *window) crest() float64 {
	if w.constant {
		return 0
	}
	return max(w.high-w.mean, w.mean-w.low) / w.sd
}

// rms returns √(Σa²/n).
func (w *window) rms() float64 {
	sum := 0.0
	for _, v := range w.a {
		sum += float64(v * v)
	}
	return math.Sqrt(sum / float64(len(w.a)))
}

// quantile returns the quantile of a percentage, between two values by linear
// interpolation: the position is (n−1)·percent/100, in integers to be exact.
func (w *window) quantile(percent int) float64 {
	at := (len(w.sorted) - 1) * percent
	i, rest := at/100, at%100
	v := w.sorted[i]
	if rest == 0 {
		return v
	}
	return v + float64(float64(rest)/100*(w.sorted[i+1]-v))
}

// crossings returns the fraction of the n−1 steps that go from below the mean to the mean
// or above it, or back. It is 0 for a constant window, one of n = 1 included.
func (w *window) crossings() float64 {
	if w.constant {
		return 0
	}
	count := 0
	for i := 1; i < len(w.b); i++ {
		if (w.b[i] < 0) != (w.b[i-1] < 0) {
			count++
		}
	}
	return float64(count) / float64(len(w.b)-1)
}

// mobility returns the standard deviation of the steps over that of the values, 0 for a
// constant window.
func (w *window) mobility() float64 {
	if w.constant {
		return 0
	}
	n := float64(len(w.a) - 1)
	mean, sum := w.step.sum/n, 0.0
	for i := 1; i < len(w.a); i++ {
		d := w.a[i] - w.a[i-1] - mean
		sum += float64(d * d)
	}
	return math.Sqrt(sum/n) / w.sd
}

// meanStep returns the mean magnitude of the n−1 steps, 0 for n = 1.
func (w *window) meanStep() float64 {
	return w.step.abs / float64(max(1, len(w.a)-1))
}
