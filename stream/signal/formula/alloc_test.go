package formula

import (
	"testing"
	"time"
)

// rowsOf returns a function that computes the next row of a program.
func rowsOf(t testing.TB, defs []Definition, calendar []string) func() {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(defs, []string{"x", "y", "power", "voltage"}, calendar, zone)
	if err != nil {
		t.Fatal(err)
	}
	m, dst, x, n := p.NewMemory(), make([]float64, 0, len(p.Names())), make([]float64, 4), int64(0)
	times := make([]int64, 4)
	return func() {
		n++
		x[0], x[1], x[2], x[3] = float64(n%3), float64(n), 100, 230
		dst = p.Append(dst[:0], m, &Row{Time: 1.7e18 + n*1e8, X: x, Came: times, Changed: times})
	}
}

func TestNoAllocation(t *testing.T) {
	next := rowsOf(t, []Definition{{"d", everything}, {"e", "if(d > 0, age(x), max(d, hypot(x, y, 2) ^ 2)) && !clamp(x, 0, d)"}}, []string{"hour", "weekday", "yearday"})
	if n := testing.AllocsPerRun(1000, next); n != 0 {
		t.Errorf("a row allocates %v times, want 0", n)
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name     string
		defs     []Definition
		calendar []string
	}{
		{"arithmetic", []Definition{{"d", "power/voltage*2+1"}}, nil},
		{"log", []Definition{{"d", "log10(1 + power)"}}, nil},
		{"magnitude", []Definition{{"d", "hypot(x, y, power)"}}, nil},
		{"memory", []Definition{{"d", everything}}, nil},
		{"calendar", nil, []string{"hour", "weekday", "yearday"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			next := rowsOf(b, c.defs, c.calendar)
			b.ReportAllocs()
			for b.Loop() {
				next()
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile([]Definition{{"p", "log10(1 + power)"}, {"q", "power / (voltage * current + 1)"}}, []string{"power", "voltage", "current"}, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
