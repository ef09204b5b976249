package formula

import (
	"fmt"
	"slices"
	"time"
)

// Program computes derived signals and calendar features. It does not change: goroutines
// may share it, each with its own Memory.
type Program struct {
	names    []string
	used     map[string]bool
	signals  int          // of a row
	remember []expression // the functions with memory, in the order of the formulas
	formulas []step
	calendar []phase
	zone     *time.Location
	values   int // of a Memory
	times    int // of a Memory
	identity uint64
}

// step computes one derived signal.
type step struct {
	value      expression
	remembered int // the number of functions with memory that this and those above have
}

// Row holds the values that a device measured at one moment.
type Row struct {
	// Time is that of the row, in ns since 1970, at least that of the row before.
	Time int64
	// X are the values of the signals, NaN if missing.
	X []float64
	// Came and Changed are the times of each signal's last value and last change, in ns
	// since 1970. Came nil: all came with the row. Changed nil: when a row
	// has another value.
	Came, Changed []int64
}

// Names returns the names of the values that Append computes: the derived signals, then
// two for each calendar feature, such as hour.sin and hour.cos.
func (p *Program) Names() []string { return slices.Clone(p.names) }

// Uses reports whether a formula uses a signal or a derived signal, which is then an
// ingredient.
func (p *Program) Uses(name string) bool { return p.used[name] }

// Append appends the values of Names for the next row of m's device and returns the
// extended slice. A missing value is NaN; the others are finite. It allocates nothing
// where dst has the capacity. m must be of p, and r.X have a value for each signal.
func (p *Program) Append(dst []float64, m *Memory, r *Row) []float64 {
	if m.program != p {
		panic("formula: the memory is of another program")
	}
	if len(r.X) != p.signals {
		panic(fmt.Sprintf("formula: a row of %d signals for a program of %d", len(r.X), p.signals))
	}
	m.row = *r
	next := 0
	for i, f := range p.formulas {
		for ; next < f.remembered; next++ {
			m.remembered[next] = p.remember[next](m)
		}
		v := f.value(m)
		if isMissing(v) {
			v = missing // one pattern of bits on every processor
		}
		m.derived[i] = v
	}
	m.row = Row{}
	m.rows++
	m.last = r.Time
	dst = append(dst, m.derived...)
	if len(p.calendar) > 0 {
		dst = appendCalendar(dst, p.calendar, time.Unix(0, r.Time).In(p.zone))
	}
	return dst
}
