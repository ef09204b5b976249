package model

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"edge/model/dense"
)

// Errors a caller may branch on.
var (
	// ErrDimension: an input has another number of features than the model.
	ErrDimension = errors.New("wrong number of features")
	// ErrNotFinite: a feature is infinite, no feature is known, or a result is not finite.
	ErrNotFinite = errors.New("a feature is not a finite number")
	// ErrFactor: a matrix that should be positive definite is not, with any
	// jitter.
	ErrFactor = errors.New("matrix is not positive definite")
	// ErrConfig: a setting is outside its range.
	ErrConfig = errors.New("configuration out of range")
)

// CheckSetting returns nil if a setting is ok, or else an ErrConfig with its key, its value and the
// range that it should have. It is not inlined: a configuration has some forty settings.
//
//go:noinline
func CheckSetting(ok bool, key string, value any, want string) error {
	if ok {
		return nil
	}
	if number, ok := value.(float64); ok {
		value = fmt.Sprintf("%.15g", number) // 1000000 in place of 1e+06
	}
	return settingError(fmt.Sprintf("%s: %v: want %s", key, value, want))
}

// settingError is an ErrConfig whose text names the setting that is out of range.
type settingError string

func (e settingError) Error() string { return string(e) }

func (settingError) Unwrap() error { return ErrConfig }

// MaxClasses bounds the number of classes of a posterior.
const MaxClasses = 250

// Jitter is added to the diagonal of c(Z,Z), in units of the amplitude. If the
// factorisation fails it is multiplied by ten, up to maxJitter.
const (
	Jitter    = 1e-6
	maxJitter = 1e-3
)

// Basis is the whitened basis that a set of parameters spans.
type Basis struct {
	M, D   int
	InvEll []float64 // D     1/ℓ
	Zs     []float64 // M×D   inducing inputs divided by ℓ
	zz     []float64 // M     their squared norms
	L      []float64 // M×M   lower Cholesky factor of c(Z,Z) + jitter·s·I; above the diagonal c(Z,Z), whose diagonal is s
	Amp    float64   // s
	Noise  float64   // v0
	Eps    float64   // ε
	Jitter float64   // the jitter that was needed, in units of s
}

// NewBasis returns a basis with room for M inducing points in D dimensions.
func NewBasis(m, d int) *Basis {
	return &Basis{
		M: m, D: d,
		InvEll: make([]float64, d), Zs: make([]float64, m*d), zz: make([]float64, m),
		L: make([]float64, m*m),
	}
}

// Set computes the basis of p, in place, in O(M²D + M³). It returns the number
// of times that the jitter had to be raised, and ErrFactor, with the basis
// overwritten, if no jitter up to 1e-3·s is enough.
func (b *Basis) Set(p *Params) (retries int, err error) {
	b.Begin(p)
	for i := range RowTasks(b.M) {
		b.SetRows(i)
	}
	return b.Factor()
}

// Begin is the first part of Set, SetRows for each task the second, and Factor the third.
func (b *Basis) Begin(p *Params) {
	for j, v := range p.LogEll() {
		b.InvEll[j] = math.Exp(-v)
	}
	b.Amp, b.Noise, b.Eps = math.Exp(*p.LogAmp()), math.Exp(*p.LogNoise()), p.Eps()
	scaleRows(b.Zs, b.zz, p.Z(), b.InvEll, b.M)
}

// taskRows is the number of rows of a task, but for the last one. Panels of columns are
// cut where tasks are.
const taskRows = 24

// RowTasks is the number of tasks into which m rows are cut.
func RowTasks(m int) int { return max(m/taskRows, 1) }

// TaskRows are the rows of task i of m; the last task also has those that are left over.
func TaskRows(i, m int) (from, to int) {
	if from, to = i*taskRows, (i+1)*taskRows; i == RowTasks(m)-1 {
		to = m
	}
	return from, to
}

// SetRows computes c(Z,Z) in the rows of task i up to the diagonal, and in these columns
// above it. Tasks may run at once.
func (b *Basis) SetRows(i int) {
	m, d := b.M, b.D
	from, to := TaskRows(i, m)
	dense.Gemm(false, true, to-from, to, d, 1, b.Zs[from*d:], d, b.Zs, d, 0, b.L[from*m:], m)
	for i := from; i < to; i++ {
		row := b.L[i*m : i*m+to]
		dense.ExpSqDist(row, b.Amp, b.zz[i], b.zz[:to])
		for j, v := range row[:i] {
			b.L[j*m+i] = v
		}
	}
}

// Factor factors c(Z,Z); results as of Set.
func (b *Basis) Factor() (retries int, err error) {
	m := b.M
	for b.Jitter = Jitter; b.Jitter <= maxJitter*1.5; b.Jitter *= 10 {
		for i := range m {
			for j := range i {
				b.L[i*m+j] = b.L[j*m+i]
			}
			b.L[i*m+i] = b.Amp
			b.L[i*m+i] += b.Jitter * b.Amp
		}
		if dense.Cholesky(m, b.L, m) {
			return retries, nil
		}
		retries++
	}
	return retries, fmt.Errorf("model: factor c(Z,Z) with jitter up to %g: %w", maxJitter, ErrFactor)
}

// Clone returns a deep copy.
func (b *Basis) Clone() *Basis {
	c := *b
	c.InvEll, c.Zs, c.zz = slices.Clone(b.InvEll), slices.Clone(b.Zs), slices.Clone(b.zz)
	c.L = slices.Clone(b.L)
	return &c
}

// Covariance stores c(Z,Z), without jitter, in dst, M×M, and returns it.
func (b *Basis) Covariance(dst []float64) []float64 {
	m := b.M
	for i := range m {
		dst[i*m+i] = b.Amp
		for j := i + 1; j < m; j++ {
			dst[i*m+j], dst[j*m+i] = b.L[i*m+j], b.L[i*m+j]
		}
	}
	return dst
}

// FeaturesTo computes the whitened features of n standardised inputs.
//
// A feature that is Missing is averaged over: c(x, Z) is then its expectation
// with that feature drawn from N(0, 1), the distribution of a standardised feature.
// The latent mean is then exact; q keeps the prior's variance, of which less is
// explained by the known features.
//
//	kx   n×M  c(x, Z)
//	w    n×M  L⁻¹c(Z, x), a row per input
//	q    n    max(s − |w|², 0) + v0
//	x    n×D  standardised inputs
//	xs, xx    scratch, n×D and n
func (b *Basis) FeaturesTo(kx, w, q []float64, n int, x, xs, xx []float64) {
	m := b.M
	scaleRows(xs, xx, x, b.InvEll, n)
	covariance(kx, n, m, b.D, b.Amp, xs, xx, b.Zs, b.zz)
	for i := range n {
		if math.IsInf(xx[i], 1) {
			b.expectedTo(kx[i*m:(i+1)*m], x[i*b.D:(i+1)*b.D])
		}
	}
	copy(w[:n*m], kx[:n*m])
	dense.SolveTriTrans(n, m, b.L, m, w, m)
	for i := range n {
		row := w[i*m : (i+1)*m]
		q[i] = max(b.Amp-dense.Dot(row, row), 0) + b.Noise
	}
}

// expectedTo stores E[c(x, Z)] over the features of x that are Missing, each
// independently N(0, 1), in dst, M:
//
//	∫ exp(−(x−z)²/2ℓ²) N(x; 0, 1) dx = √(ℓ²/(1+ℓ²)) · exp(−z²/2(1+ℓ²))
//
// The product of two Gaussians in x, integrated: N(z; 0, 1+ℓ²)·√(2πℓ²).
// O(M·D).
func (b *Basis) expectedTo(dst, x []float64) {
	factor := b.Amp
	clear(dst)
	for j, v := range x {
		inv := b.InvEll[j]
		if math.IsInf(v, 1) {
			r := 1 / (1 + inv*inv) // ℓ²/(1+ℓ²)
			factor *= math.Sqrt(r)
			for i := range dst {
				z := b.Zs[i*b.D+j] // z/ℓ
				dst[i] += z * z * r
			}
			continue
		}
		for i := range dst {
			diff := v*inv - b.Zs[i*b.D+j]
			dst[i] += diff * diff
		}
	}
	for i, d2 := range dst {
		dst[i] = factor * math.Exp(-0.5*d2)
	}
}

// ScaleTo stores inducing inputs of another basis under b's lengthscales in zs, M×D, and
// their norms in zz, M, for CrossRows.
func (b *Basis) ScaleTo(zs, zz, z []float64) { scaleRows(zs, zz, z, b.InvEll, b.M) }

// CrossRows stores the rows of task i, of RowTasks, of c(Z_b, Z_o) under b's kernel in dst, M×M:
// a row for each inducing input of b. Tasks may run at once.
func (b *Basis) CrossRows(i int, dst, zs, zz []float64) {
	from, to := TaskRows(i, b.M)
	covariance(dst[from*b.M:], to-from, b.M, b.D, b.Amp, b.Zs[from*b.D:], b.zz[from:], zs, zz)
}
