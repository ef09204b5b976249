package formula

import (
	"math"
	"testing"
)

// A formula that compiles has finite or missing values at every row, and the same ones
// after a restart in the middle.
func FuzzCompile(f *testing.F) {
	for _, text := range []string{
		"log10(1 + power)", "power / (`front-door` * x.y + 1)", "-2 ^ 2 ^ -x.y", "if(power > 0 && x.y <= 3, lag(x.y, 5), rate(power))",
		"ewma(clamp(power, 0, 1e3), 30s) != hypot(x.y, 2)", "since(power > 1) + age(power) || !since(x.y)", "1e300 * 1e300", "((1", "1 +", "30sec", "é$", "lag(power, 1001)",
		"min(1, 2, max(3, abs(diff(power))))", "exp(log(sqrt(sin(cos(x.y)))))", everything,
	} {
		f.Add(text, 1.5, -2.0, int64(1e9))
	}
	signals := []string{"power", "x.y", "front-door"}
	f.Fuzz(func(t *testing.T, text string, a, b float64, dt int64) {
		p, err := Compile([]Definition{{"first", text}, {"second", "first + " + text}}, signals, []string{"hour"}, nil)
		if err != nil {
			return
		}
		if n := size(p.NewMemory()); n > 8*(maxLags+8*maxNodes) {
			t.Errorf("%q: a memory of %d bytes", text, n)
		}
		m, again := p.NewMemory(), p.NewMemory()
		x := [][]float64{{a, b, 0}, {b, a, 1}, {math.NaN(), b, a}, {a, math.NaN(), b}, {a, a, math.NaN()}, {-a, -b, 3}}
		for i, x := range x {
			row := &Row{Time: int64(i) * dt, X: x}
			if i%2 == 1 {
				row.Came, row.Changed = []int64{0, dt, 2 * dt}, []int64{0, 0, dt}
			}
			if err := again.Restore(m.AppendState(nil)); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			got, restored := p.Append(nil, m, row), p.Append(nil, again, row)
			for k, v := range got {
				if math.IsInf(v, 0) || math.Float64bits(v) != math.Float64bits(restored[k]) {
					t.Errorf("%q, row %d: %v, after a restart %v", text, i, got, restored)
				}
			}
		}
	})
}

// No state makes Restore or the rows after it panic.
func FuzzRestore(f *testing.F) {
	p, err := Compile([]Definition{{"d", everything}}, []string{"x", "y"}, nil, nil)
	if err != nil {
		f.Fatal(err)
	}
	m := p.NewMemory()
	f.Add(m.AppendState(nil))
	for i := range 4 {
		p.Append(nil, m, &Row{Time: int64(i) * 1e9, X: []float64{float64(i), 1}})
		f.Add(m.AppendState(nil))
	}
	f.Fuzz(func(t *testing.T, state []byte) {
		m := p.NewMemory()
		if m.Restore(state) != nil {
			return
		}
		for i := range 8 {
			if v := p.Append(nil, m, &Row{Time: int64(i) * 1e9, X: []float64{1, float64(i)}})[0]; math.IsInf(v, 0) {
				t.Errorf("row %d: %v", i, v)
			}
		}
	})
}
