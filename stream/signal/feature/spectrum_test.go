package feature

import (
	"slices"
	"testing"
)

// TestPlans checks that the tables of the 16 lengths used last are kept, and no others.
func TestPlans(t *testing.T) {
	var s spectrum
	var used []int // the last one first
	for _, n := range []int{8, 9, 10, 12, 14, 15, 16, 18, 20, 21, 24, 25, 27, 28, 30, 32, 8, 35, 10, 36, 8, 8, 1000, 9, 35} {
		used = slices.DeleteFunc(used, func(m int) bool { return m == n })
		used = slices.Insert(used, 0, n)
		used = used[:min(len(used), maxPlans)]
		if p := s.plan(n); p.fft.Len() != n || len(p.hann) != n {
			t.Errorf("the tables of %d have the lengths %d and %d", n, p.fft.Len(), len(p.hann))
		}
		var kept []int
		for _, p := range s.plans {
			kept = append(kept, len(p.hann))
		}
		if !slices.Equal(kept, used) {
			t.Errorf("after %d the tables are of %v, want %v", n, kept, used)
		}
	}
}

// TestPlansOfLongWindows checks that the tables of all lengths have a bound together.
func TestPlansOfLongWindows(t *testing.T) {
	var s spectrum
	for i, n := range []int{4000, 30000, 32768, 30000, 32000, 5000, 1 << 17, 100, 200, 65000, 32768, 32000} {
		s.plan(n)
		rows, kept := 0, len(s.plans)
		for _, p := range s.plans {
			rows += cap(p.hann)
		}
		if rows > maxRows && kept > 1 || len(s.plans[0].hann) != n || s.plans[0].fft.Len() != n || i == 3 && kept != 2 {
			t.Errorf("after %d rows there are %d tables of %d rows", n, kept, rows)
		}
	}
}

func TestSmooth(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 7: 7, 11: 10, 13: 12, 33: 32, 97: 96, 251: 250, 256: 256, 1021: 1008, 4095: 4050} {
		if got := smooth(n); got != want {
			t.Errorf("smooth(%d) = %d, want %d", n, got, want)
		}
	}
}

// TestLongWindow checks that gonum's transform takes each length that smooth returns: it
// has room for 13 factors of 4, 2, 3, 5 and 7.
func TestLongWindow(t *testing.T) {
	if maxLength >= 2*1_594_323 { // 2·3^13, the smallest number of 14 factors
		t.Errorf("a spectrum of %d rows may have too many factors", maxLength)
	}
	var s spectrum
	b := make([]float64, maxLength+100)
	b[len(b)-3] = 1
	if s.compute(b, false); s.n != maxLength || s.total == 0 {
		t.Errorf("a spectrum of %d rows, power %v", s.n, s.total)
	}
}
