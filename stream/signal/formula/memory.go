package formula

import (
	"errors"
	"math"

	"edge/online/wire"
)

// Memory holds the past of one device that a program needs. Only one goroutine may use it.
type Memory struct {
	program *Program
	rows    uint64 // since the beginning or Reset
	last    int64  // time of the row before
	values  []float64
	times   []int64

	row        Row       // the present one, within Append
	remembered []float64 // the present values of functions with memory
	derived    []float64 // the present values of derived signals
}

// ErrState marks bytes that are not a memory's state, are damaged, or are of other
// formulas.
var ErrState = errors.New("not a valid state of these formulas")

const stateVersion = 1

// NewMemory returns the memory of a device that has no rows yet.
func (p *Program) NewMemory() *Memory {
	m := &Memory{
		program:    p,
		values:     make([]float64, p.values),
		times:      make([]int64, p.times),
		remembered: make([]float64, len(p.remember)),
		derived:    make([]float64, len(p.formulas)),
	}
	m.Reset()
	return m
}

// Reset forgets all rows. It is for the row after a gap.
func (m *Memory) Reset() {
	m.rows, m.last = 0, 0
	for i := range m.values {
		m.values[i] = missing
	}
	clear(m.times)
}

// AppendState appends the state, which Restore reads.
func (m *Memory) AppendState(dst []byte) []byte {
	e := wire.Encoder{Buf: dst}
	e.Int(stateVersion)
	e.Uint64(m.program.identity)
	e.Uint(m.rows)
	e.Uint64(uint64(m.last))
	e.Floats(m.values)
	for _, t := range m.times {
		e.Uint64(uint64(t))
	}
	return e.Buf
}

// Restore takes over a state that a memory of the same formulas and signals wrote. After
// an error m is as before.
func (m *Memory) Restore(state []byte) error {
	d := wire.NewDecoder(state, "formula: state: ", ErrState)
	if v := d.Uint(); v != stateVersion {
		d.Fail("version %d, want %d", v, stateVersion)
	}
	if d.Uint64() != m.program.identity {
		d.Fail("other formulas or signals")
	}
	rows, last := d.Uint(), int64(d.Uint64())
	values, times := make([]float64, len(m.values)), make([]int64, len(m.times))
	for i := range values {
		if values[i] = d.Float(); math.IsInf(values[i], 0) {
			d.Fail("an infinite value")
		}
	}
	for i := range times {
		times[i] = int64(d.Uint64())
	}
	if err := d.End(); err != nil {
		return err
	}
	m.rows, m.last = rows, last
	copy(m.values, values)
	copy(m.times, times)
	return nil
}
