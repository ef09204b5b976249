package feature_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"edge/stream/signal/feature"
)

var (
	exact   = []string{"default", "shape", "level", "time"} // bit-equal to the reference
	spectra = []string{"spectrum", "bands"}                 // to 1e-9
)

// reference returns a feature of a window straight from its definition, with no regard to
// cost. Products are rounded before they are added, as in the package.
func reference(name string, a []float64, floor float64) float64 {
	a = bounded(a)
	n := float64(len(a))
	m := mean(a)
	b := make([]float64, len(a))
	for i := range a {
		b[i] = a[i] - m
	}
	variance := moment(b, 2)
	s := math.Sqrt(variance)
	constant := slices.Min(a) == slices.Max(a) || s <= 1e-12*math.Max(1, math.Abs(m))
	perS := func(x float64) float64 {
		if constant {
			return 0
		}
		return x
	}
	switch name {
	case "mean":
		return m
	case "log_sd":
		return math.Log10(s + floor)
	case "min":
		return slices.Min(a)
	case "max":
		return slices.Max(a)
	case "slope":
		top, bottom := 0.0, 0.0
		for i := range b {
			k := float64(i) - (n-1)/2
			top += float64(b[i] * k)
			bottom += float64(k * k)
		}
		if len(a) == 1 {
			return 0
		}
		return n * top / bottom
	case "acf1", "acf2", "acf4", "acf8":
		sum, h := 0.0, int(name[3]-'0')
		for i := h; i < len(b); i++ {
			sum += float64(b[i] * b[i-h])
		}
		return perS(sum / (n * variance))
	case "skew":
		return perS(moment(b, 3) / (variance * s))
	case "log_kurtosis":
		if constant {
			return math.Log(3)
		}
		return math.Log(moment(b, 4) / (variance * variance))
	case "crest":
		return perS(math.Max(slices.Max(b), -slices.Min(b)) / s)
	case "sd":
		return s
	case "mcr":
		count := 0.0
		for i := 1; i < len(b); i++ {
			if b[i-1] < 0 && b[i] >= 0 || b[i-1] >= 0 && b[i] < 0 {
				count++
			}
		}
		return perS(count / (n - 1))
	case "mobility":
		return perS(stepsDeviation(a) / s)
	case "peak", "centroid", "entropy", "band1", "band2", "band3", "band4", "band5":
		if constant {
			b = make([]float64, len(b))
		}
		return spectral(name, b)
	}
	return level(name, a)
}

// level returns a feature that does not depend on the mean.
func level(name string, a []float64) float64 {
	n := float64(len(a))
	switch name {
	case "rms":
		return math.Sqrt(moment(a, 2))
	case "range":
		return slices.Max(a) - slices.Min(a)
	case "last":
		return a[len(a)-1]
	case "median", "q10", "q25", "q75", "q90":
		percent := map[string]float64{"median": 50, "q10": 10, "q25": 25, "q75": 75, "q90": 90}[name]
		c := slices.Clone(a)
		sort.Float64s(c)
		i, part := math.Modf((n - 1) * percent / 100)
		if part == 0 {
			return c[int(i)]
		}
		part = math.Mod((n-1)*percent, 100) / 100 // the fraction without the error of the division
		return c[int(i)] + float64(part*(c[int(i)+1]-c[int(i)]))
	case "mad1":
		if len(a) == 1 {
			return 0
		}
		sum := 0.0
		for i := 1; i < len(a); i++ {
			sum += math.Abs(a[i] - a[i-1])
		}
		return sum / (n - 1)
	}
	panic("no definition of " + name)
}

// stepsDeviation returns the standard deviation of the steps from row to row.
func stepsDeviation(a []float64) float64 {
	var steps []float64
	for i := 1; i < len(a); i++ {
		steps = append(steps, a[i]-a[i-1])
	}
	m := mean(steps)
	for i := range steps {
		steps[i] -= m
	}
	return math.Sqrt(moment(steps, 2))
}

// spectral returns a feature of the spectrum by the sum of the discrete Fourier transform.
func spectral(name string, b []float64) float64 {
	for len(b) > 1 && largestFactor(len(b)) > 7 {
		b = b[1:]
	}
	n := float64(len(b))
	tapered, roots := make([]float64, len(b)), make([]complex128, len(b))
	for i := range b {
		tapered[i] = b[i] * math.Pow(math.Sin(math.Pi*float64(i)/n), 2)
		roots[i] = cmplx.Exp(complex(0, -2*math.Pi*float64(i)/n))
	}
	var f, power []float64
	total := 0.0
	for k := 1; k <= len(b)/2; k++ {
		x := complex(0, 0)
		for i := range b {
			x += complex(tapered[i], 0) * roots[i*k%len(b)]
		}
		f = append(f, float64(k)/n)
		power = append(power, math.Pow(cmplx.Abs(x), 2)*16/(3*n*n))
		total += power[k-1]
	}
	sum := 0.0
	for j := range f {
		switch name {
		case "peak":
			if sum == 0 && power[j] >= slices.Max(power)*(1-1e-9) {
				sum = f[j]
			}
		case "centroid":
			sum += f[j] * power[j] / total
		case "entropy":
			if len(f) > 1 && power[j] > 0 {
				sum -= power[j] / total * math.Log(power[j]/total) / math.Log(float64(len(f)))
			}
		default:
			band := int(name[4] - '0')
			if low := math.Exp2(float64(band - 7)); f[j] >= low && (f[j] < 2*low || f[j] == 0.5 && band == 5) {
				sum += power[j]
			}
		}
	}
	switch name {
	case "peak", "centroid", "entropy":
		if total == 0 {
			return 0
		}
		return sum
	}
	return math.Log10(sum + 1e-12)
}

func correlation(a, b []float64) float64 {
	a, b = bounded(a), bounded(b)
	if slices.Min(a) == slices.Max(a) || slices.Min(b) == slices.Max(b) {
		return 0
	}
	ma, mb := mean(a), mean(b)
	var da, db []float64
	sum := 0.0
	for i := range a {
		da, db = append(da, a[i]-ma), append(db, b[i]-mb)
		sum += float64(da[i] * db[i])
	}
	sa, sb := math.Sqrt(moment(da, 2)), math.Sqrt(moment(db, 2))
	if sa <= 1e-12*math.Max(1, math.Abs(ma)) || sb <= 1e-12*math.Max(1, math.Abs(mb)) {
		return 0
	}
	return sum / (float64(len(a)) * sa * sb)
}

// bounded returns the values, those beyond ±1e70 as ±1e70.
func bounded(a []float64) []float64 {
	a = slices.Clone(a)
	for i := range a {
		a[i] = math.Copysign(math.Min(math.Abs(a[i]), 1e70), a[i])
	}
	return a
}

func mean(a []float64) float64 { return moment(a, 1) }

// moment returns the mean of the p-th powers: x·x, (x·x)·x, (x·x)·(x·x).
func moment(a []float64, p int) float64 {
	sum := 0.0
	for _, x := range a {
		sum += []float64{1, x, float64(x * x), float64(float64(x*x) * x), float64(float64(x*x) * float64(x*x))}[p]
	}
	return sum / float64(len(a))
}

func largestFactor(n int) int {
	largest := 1
	for p := 2; p <= n; p++ {
		for ; n%p == 0; n /= p {
			largest = p
		}
	}
	return largest
}

// windows are kinds of windows of n values.
var windows = map[string]func(r *rand.Rand, i int) float64{
	"noise":      func(r *rand.Rand, _ int) float64 { return r.NormFloat64() },
	"wave":       func(r *rand.Rand, i int) float64 { return math.Sin(0.4*float64(i)) + 0.3*r.NormFloat64() },
	"codes":      func(r *rand.Rand, _ int) float64 { return float64(r.IntN(4)) },
	"switch":     func(r *rand.Rand, i int) float64 { return float64(i / 40 % 2) },
	"offset":     func(r *rand.Rand, _ int) float64 { return 1e9 + r.NormFloat64() },
	"below s":    func(r *rand.Rand, _ int) float64 { return 1e9 + 1e-6*r.NormFloat64() },
	"constant":   func(*rand.Rand, int) float64 { return 0.1 },
	"zero":       func(*rand.Rand, int) float64 { return 0 },
	"tiny":       func(r *rand.Rand, _ int) float64 { return 1e-300 * r.NormFloat64() },
	"small":      func(r *rand.Rand, _ int) float64 { return 1e-9 * r.NormFloat64() },
	"large":      func(r *rand.Rand, _ int) float64 { return 1e60 * r.NormFloat64() },
	"huge":       func(r *rand.Rand, _ int) float64 { return math.MaxFloat64 * (2*r.Float64() - 1) },
	"magnitudes": func(r *rand.Rand, _ int) float64 { return math.Pow(10, 30*r.NormFloat64()) },
}

func fill(kind string, r *rand.Rand, n int) []float64 {
	a := make([]float64, n)
	for i := range a {
		a[i] = windows[kind](r, i)
	}
	return a
}

// TestReference compares every feature of many windows with the reference, bit for bit,
// by one extractor: the longer, the more often its memory is that of another window.
func TestReference(t *testing.T) {
	e := extractor(t, exact...)
	r := rand.New(rand.NewPCG(1, 2))
	for kind := range windows {
		for n := 1; n <= 1024; n++ {
			if n > 40 && n < 1024 && r.IntN(12) > 0 {
				continue
			}
			a := fill(kind, r, n)
			given := slices.Clone(a)
			for j, got := range e.Append(nil, a) {
				want := reference(e.Names()[j], a, 0.001)
				if math.Float64bits(got) != math.Float64bits(want) || math.IsNaN(got) || math.IsInf(got, 0) {
					t.Errorf("%s of %d values, %s: %v, want %v", e.Names()[j], n, kind, got, want)
				}
			}
			if !slices.Equal(a, given) {
				t.Fatalf("%s: Append changed the window", kind)
			}
		}
	}
}

// TestSpectrumReference compares with the direct transform. Between values of very
// different magnitude the transform rounds by the largest, so these are left out.
func TestSpectrumReference(t *testing.T) {
	e := extractor(t, spectra...)
	r := rand.New(rand.NewPCG(3, 4))
	for _, kind := range []string{"noise", "wave", "codes", "offset", "below s", "constant", "zero", "tiny", "large", "huge"} {
		for n := 1; n <= 256; n++ {
			if n > 20 && r.IntN(8) > 0 {
				continue
			}
			a := fill(kind, r, n)
			for j, got := range e.Append(nil, a) {
				want := reference(e.Names()[j], a, 0.001)
				if !(math.Abs(got-want) <= 1e-9*math.Max(1, math.Abs(want))) {
					t.Errorf("%s of %d values, %s: %v, want %v (error %.1e)", e.Names()[j], n, kind, got, want, got-want)
				}
			}
		}
	}
}

func TestCorrelation(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for one := range windows {
		for two := range windows {
			for _, n := range []int{1, 2, 3, 17, 256} {
				a, b := fill(one, r, n), fill(two, r, n)
				got, want := feature.Correlation(a, b), correlation(a, b)
				if math.Float64bits(got) != math.Float64bits(want) || !(math.Abs(got) <= 1+1e-9) {
					t.Errorf("%s and %s, %d values: %v, want %v", one, two, n, got, want)
				}
				if again := feature.Correlation(b, a); math.Abs(got-again) > 1e-12 {
					t.Errorf("%s and %s, %d values: %v, exchanged %v", one, two, n, got, again)
				}
			}
		}
	}
	a := fill("noise", r, 64)
	b := slices.Clone(a)
	for i := range b {
		b[i] = 3 - 2*b[i]
	}
	if got := feature.Correlation(a, b); math.Abs(got+1) > 1e-11 {
		t.Errorf("correlation of a and 3 − 2a: %v, want −1", got)
	}
}
