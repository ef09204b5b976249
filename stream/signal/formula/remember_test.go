package formula

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// history are rows at irregular times: repeated values, missing ones, some rows with the
// time of the row before.
type history struct {
	x, y          []float64
	time          []int64
	came, changed []int64 // of x, as values are held
}

func randomHistory(r *rand.Rand, n int) *history {
	h := &history{}
	now := int64(1.7e18)
	for i := range n {
		if r.IntN(10) > 0 {
			now += r.Int64N(30e9)
		}
		h.time = append(h.time, now)
		h.y = append(h.y, 5*r.NormFloat64())
		if i > 0 && r.IntN(3) > 0 { // held
			h.x, h.came, h.changed = append(h.x, h.x[i-1]), append(h.came, h.came[i-1]), append(h.changed, h.changed[i-1])
			continue
		}
		v := float64(r.IntN(4))
		if r.IntN(5) == 0 {
			v = math.NaN()
		}
		h.x, h.came, h.changed = append(h.x, v), append(h.came, now), append(h.changed, now)
		if i > 0 && v == h.x[i-1] {
			h.changed[i] = h.changed[i-1]
		}
	}
	return h
}

// at returns a[i], missing before the first row.
func at(a []float64, i int) float64 {
	if i < 0 {
		return math.NaN()
	}
	return a[i]
}

// dt returns the seconds from row i to row j.
func (h *history) dt(i, j int) float64 {
	if i < 0 {
		return math.NaN()
	}
	return float64(h.time[j]-h.time[i]) / 1e9
}

// ewma is the weighted sum over all rows up to i, from the newest to the oldest:
// y_i = Σ_k w_k·Π_{l>k}(1 − w_l)·x_k over the rows that have a value.
func (h *history) ewma(x []float64, i int, tau float64) float64 {
	if math.IsNaN(x[i]) {
		return math.NaN()
	}
	total, rest := 0.0, 1.0
	for {
		before := i - 1
		for before >= 0 && math.IsNaN(x[before]) {
			before--
		}
		if before < 0 {
			return total + rest*x[i]
		}
		decay := math.Exp(-h.dt(before, i) / tau)
		total += rest * (1 - decay) * x[i]
		rest *= decay
		i = before
	}
}

// since is the time since the first row of the run of equal values, missing ones aside.
func (h *history) since(x []float64, i int) float64 {
	if math.IsNaN(x[i]) {
		return math.NaN()
	}
	first := i
	for j := i - 1; j >= 0 && (x[j] == x[i] || math.IsNaN(x[j])); j-- {
		if !math.IsNaN(x[j]) {
			first = j
		}
	}
	return h.dt(first, i)
}

// each returns f of every row.
func (h *history) each(f func(i int) float64) []float64 {
	out := make([]float64, len(h.x))
	for i := range out {
		if out[i] = f(i); math.IsInf(out[i], 0) {
			out[i] = math.NaN()
		}
	}
	return out
}

// row returns row i; held: with the times at which x came and changed.
func (h *history) row(i int, held bool) *Row {
	r := &Row{Time: h.time[i], X: []float64{h.x[i], h.y[i]}}
	if held {
		r.Came, r.Changed = []int64{h.came[i], h.time[i]}, []int64{h.changed[i], h.time[i]}
	}
	return r
}

// Each function with memory equals a function of the whole history.
func TestMemory(t *testing.T) {
	type reference struct {
		text string
		held bool
		tol  float64
		want func(h *history) func(i int) float64
	}
	products := func(h *history) []float64 { return h.each(func(i int) float64 { return h.x[i] * h.y[i] }) }
	cases := []reference{
		{"lag(x, 1)", false, 0, func(h *history) func(int) float64 { return func(i int) float64 { return at(h.x, i-1) } }},
		{"lag(x, 7)", false, 0, func(h *history) func(int) float64 { return func(i int) float64 { return at(h.x, i-7) } }},
		{"lag(y, 300)", false, 0, func(h *history) func(int) float64 { return func(i int) float64 { return at(h.y, i-300) } }},
		{"lag(lag(x*y, 2), 3)", false, 0, func(h *history) func(int) float64 {
			p := products(h)
			return func(i int) float64 { return at(p, i-5) }
		}},
		{"diff(y)", false, 0, func(h *history) func(int) float64 { return func(i int) float64 { return h.y[i] - at(h.y, i-1) } }},
		{"diff(x)", false, 0, func(h *history) func(int) float64 { return func(i int) float64 { return h.x[i] - at(h.x, i-1) } }},
		{"rate(y)", false, 0, func(h *history) func(int) float64 {
			return func(i int) float64 { return (h.y[i] - at(h.y, i-1)) / h.dt(i-1, i) }
		}},
		{"if(y > 0, lag(y, 2), 0 - lag(x, 2))", false, 0, func(h *history) func(int) float64 {
			return func(i int) float64 {
				if h.y[i] > 0 {
					return at(h.y, i-2)
				}
				return -at(h.x, i-2)
			}
		}},
		{"ewma(y, 30s)", false, 1e-11, func(h *history) func(int) float64 { return func(i int) float64 { return h.ewma(h.y, i, 30) } }},
		{"ewma(x, 2m)", false, 1e-11, func(h *history) func(int) float64 { return func(i int) float64 { return h.ewma(h.x, i, 120) } }},
		{"diff(ewma(x*y, 90))", false, 1e-11, func(h *history) func(int) float64 {
			p := products(h)
			e := h.each(func(i int) float64 { return h.ewma(p, i, 90) })
			return func(i int) float64 { return e[i] - at(e, i-1) }
		}},
		{"since(x)", false, 0, func(h *history) func(int) float64 { return func(i int) float64 { return h.since(h.x, i) } }},
		{"since(x)", true, 0, func(h *history) func(int) float64 {
			return func(i int) float64 { return h.x[i]*0 + float64(h.time[i]-h.changed[i])/1e9 }
		}},
		{"since(y > 3)", true, 0, func(h *history) func(int) float64 {
			over := h.each(func(i int) float64 { return truth(h.y[i] > 3) })
			return func(i int) float64 { return h.since(over, i) }
		}},
		{"age(x)", false, 0, func(h *history) func(int) float64 { return func(i int) float64 { return h.x[i] * 0 } }},
		{"age(x)", true, 0, func(h *history) func(int) float64 {
			return func(i int) float64 { return h.x[i]*0 + float64(h.time[i]-h.came[i])/1e9 }
		}},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s held=%v", c.text, c.held), func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 4))
			p, err := Compile([]Definition{{"d", c.text}, {"same", "d"}}, []string{"x", "y"}, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			m, defined := p.NewMemory(), 0
			for run := range 3 {
				h := randomHistory(r, 400)
				want := h.each(c.want(h))
				for i := range h.x {
					got := p.Append(nil, m, h.row(i, c.held))
					if bothMissing := math.IsNaN(got[0]) && math.IsNaN(want[i]); !bothMissing && !(math.Abs(got[0]-want[i]) <= c.tol*max(1, math.Abs(want[i]))) {
						t.Fatalf("run %d, row %d: %v, want %v", run, i, got[0], want[i])
					}
					if math.Float64bits(got[0]) != math.Float64bits(got[1]) {
						t.Fatalf("row %d: d is %v, and as an ingredient %v", i, got[0], got[1])
					}
					if !math.IsNaN(got[0]) {
						defined++
					}
				}
				m.Reset() // the next history is after a gap
			}
			if defined < 100 {
				t.Errorf("%d values: too few to test anything", defined)
			}
		})
	}
}

// since of a derived signal is that of its expression.
func TestSinceOfDerived(t *testing.T) {
	p, err := Compile([]Definition{{"on", "power > 15"}, {"quiet", "since(on)"}}, []string{"power"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := p.NewMemory()
	for _, c := range []struct {
		second      int64
		power, want float64
	}{
		{0, 1, 0}, {10, 2, 10}, {20, 20, 0}, {25, 30, 5}, {30, missing, missing}, {40, 40, 20}, {50, 0, 0}, {50, 0, 0}, {51, 0, 1},
	} {
		if got := p.Append(nil, m, &Row{Time: c.second * 1e9, X: []float64{c.power}})[1]; !near(got, c.want) {
			t.Errorf("second %d: since(on) = %v, want %v", c.second, got, c.want)
		}
	}
}

// A time that runs backwards counts as no time.
func TestClockBack(t *testing.T) {
	p, err := Compile([]Definition{{"a", "age(x)"}, {"s", "since(x)"}, {"r", "rate(x)"}, {"e", "ewma(x, 1s)"}}, []string{"x"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, at := p.NewMemory(), []int64{5e9}
	p.Append(nil, m, &Row{Time: 4e9, X: []float64{1}})
	got := p.Append(nil, m, &Row{Time: 3e9, X: []float64{2}, Came: at, Changed: at})
	for i, want := range []float64{0, 0, missing, 1} {
		if !near(got[i], want) {
			t.Errorf("%s = %v, want %v", p.Names()[i], got[i], want)
		}
	}
}

const everything = "lag(x, 5) + diff(y) + rate(y) + ewma(y, 30s) + since(x) + since(y > 3) + lag(since(x), 3)"

// A memory that was saved and restored goes on like the one that was not.
func TestState(t *testing.T) {
	defs := []Definition{{"d", everything}, {"e", "lag(d, 2)"}}
	p, _ := Compile(defs, []string{"x", "y"}, []string{"hour"}, nil)
	again, _ := Compile(defs, []string{"x", "y"}, nil, nil) // of another run of the program
	h := randomHistory(rand.New(rand.NewPCG(5, 6)), 60)
	for stop := range len(h.x) {
		m := p.NewMemory()
		for i := range stop {
			p.Append(nil, m, h.row(i, false))
		}
		state := m.AppendState([]byte("before"))[len("before"):]
		restored := again.NewMemory()
		if err := restored.Restore(state); err != nil {
			t.Fatal(err)
		}
		if got := restored.AppendState(nil); !bytes.Equal(got, state) {
			t.Fatalf("row %d: the state of the restored memory differs", stop)
		}
		for i := stop; i < len(h.x); i++ {
			want, got := p.Append(nil, m, h.row(i, false)), again.Append(nil, restored, h.row(i, false))
			for k := range got {
				if math.Float64bits(got[k]) != math.Float64bits(want[k]) {
					t.Fatalf("stopped at row %d: row %d has %v, want %v", stop, i, got, want)
				}
			}
		}
	}
}

// A state that is damaged or of other formulas is refused, and the memory stays as it is.
func TestStateRefused(t *testing.T) {
	p, _ := Compile([]Definition{{"d", everything}}, []string{"x", "y"}, nil, nil)
	m := p.NewMemory()
	p.Append(nil, m, &Row{Time: 1e18, X: []float64{1, 2}})
	state := m.AppendState(nil)
	refuse := func(name string, m *Memory, state []byte) {
		before := m.AppendState(nil)
		if err := m.Restore(state); !errors.Is(err, ErrState) {
			t.Errorf("%s: %v, want ErrState", name, err)
		}
		if !bytes.Equal(m.AppendState(nil), before) {
			t.Errorf("%s: the memory changed", name)
		}
	}
	for n := range state {
		refuse(fmt.Sprint("cut after ", n), m, state[:n])
	}
	refuse("a byte more", m, append(bytes.Clone(state), 0))
	refuse("another version", m, append([]byte{9}, state[1:]...))
	infinite := p.NewMemory()
	infinite.values[3] = math.Inf(1)
	refuse("infinite", m, infinite.AppendState(nil))
	for name, other := range map[string]func() (*Program, error){
		"other text": func() (*Program, error) {
			return Compile([]Definition{{"d", everything + "+1"}}, []string{"x", "y"}, nil, nil)
		},
		"other name": func() (*Program, error) {
			return Compile([]Definition{{"e", everything}}, []string{"x", "y"}, nil, nil)
		},
		"other signals": func() (*Program, error) {
			return Compile([]Definition{{"d", everything}}, []string{"y", "x"}, nil, nil)
		},
	} {
		q, err := other()
		if err != nil {
			t.Fatal(err)
		}
		refuse(name, q.NewMemory(), state)
	}
}
