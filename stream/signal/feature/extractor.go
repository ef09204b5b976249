package feature

import (
	"math"
	"slices"

	"edge/stream/field"
)

// Extractor computes a list of features of windows. It is not for several goroutines at
// once: it owns the memory between the steps, of at most 5 floats a row of the longest
// window, and for spectra the tables of 16 lengths, of 4 floats a row each: with windows of
// up to 4096 rows at most 2.3 MB. Extractors that Share it need it once.
type Extractor struct {
	names    []string
	features []feature
	needs    part
	window   *window
}

// AllLengths is the number of lengths whose tables an Extractor keeps for spectra.
const AllLengths = maxPlans

// New returns an Extractor of the named features and groups: default, shape, level, time,
// spectrum and bands. Of repetitions the first one decides the order. floor is added to the
// standard deviation before log_sd takes its logarithm, in the unit of the signal. An
// unknown name or a floor that is not a positive number is an error; that of a name has the
// nearest known one, and all of them.
func New(names []string, floor float64) (*Extractor, error) {
	if err := field.Check(floor > 0 && floor <= math.MaxFloat64, "floor", floor, "a number above 0"); err != nil {
		return nil, err
	}
	e := &Extractor{window: &window{floor: floor}}
	for _, name := range names {
		found := false
		for _, f := range table {
			if f.group != name && f.name != name {
				continue
			}
			found = true
			if !slices.Contains(e.names, f.name) {
				e.names, e.features, e.needs = append(e.names, f.name), append(e.features, f), e.needs|f.needs
			}
		}
		if !found {
			return nil, unknown(name)
		}
	}
	return e, nil
}

// Memory returns the bytes that e takes for windows of at most n rows of so many lengths;
// AllLengths: of any.
func (e *Extractor) Memory(n, lengths int) int {
	const steps, tables, float = 5, 4, 8
	rows := steps * n
	if e.needs&transformed != 0 {
		n = min(n, maxLength)
		rows += tables * max(n, min(min(lengths, maxPlans)*n, maxRows))
	}
	return rows * float
}

// Share makes e use the memory of another Extractor with the same floor. Only one of the
// two computes at a time.
func (e *Extractor) Share(other *Extractor) { e.window = other.window }

// Names returns the names of the features, in the order of the values of Append. The
// caller does not change them.
func (e *Extractor) Names() []string { return e.names }

// Append appends the features of a window to dst and returns it.
//
//	dst     grows by len(Names()) finite values
//	window  n ≥ 1 finite values in the order of time; not changed, not kept
//
// Cost O(n); O(n log n) with a quantile or the spectrum. It computes the listed features
// and nothing else. It does not allocate when dst has room and no window was longer
// before; with spectra, as long as they have at most 16 lengths, of 65,536 rows together. The tables
// of a further length take the place of those that were unused for longest: the features
// are the same, at the cost of as many sines and cosines as rows, and of memory if the
// place is too small. Values beyond ±1e70 allocate a copy. It panics if window is empty.
func (e *Extractor) Append(dst, window []float64) []float64 {
	w := e.window
	w.read(window)
	w.prepare(e.needs)
	for i := range e.features {
		dst = append(dst, e.features[i].value(w))
	}
	w.a = nil
	return dst
}
