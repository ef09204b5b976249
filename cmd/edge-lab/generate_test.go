package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/test/files"
)

// drawn returns n rows of a problem.
func drawn(t testing.TB, name string, n int, seed uint64) []sample {
	t.Helper()
	i := slices.IndexFunc(problems, func(p problem) bool { return p.name == name })
	if i < 0 {
		t.Fatalf("there is no problem %s", name)
	}
	return problems[i].draw(rand.New(rand.NewPCG(seed, 0)), n)
}

// The Bayes rule of the first four problems, point by point.
func TestProblemRules(t *testing.T) {
	for _, tc := range []struct {
		name  string
		class func([]float64) int
		x     []float64
		want  int
	}{
		{"centre", rings, []float64{0.5, 0.5}, 0},
		{"second ring, r = 1/8", rings, []float64{0.625, 0.5}, 1},
		{"third ring, r = 5/24", rings, []float64{0.5, 0.5 - 5.0/24}, 0},
		{"corner, r = √½, ninth ring", rings, []float64{0, 0}, 0},
		{"first field", checkerboard, []float64{0.1, 0.1}, 0},
		{"its neighbour", checkerboard, []float64{0.3, 0.1}, 1},
		{"last field", checkerboard, []float64{0.99, 0.99}, 0},
		{"below both", thresholds, []float64{0.49, 0.49, 0.9, 0.9}, 0},
		{"above the second", thresholds, []float64{0.49, 0.5, 0.9, 0.9}, 1},
		{"above the first", thresholds, []float64{0.5, 0.49, 0.1, 0.1}, 2},
		{"above both", thresholds, []float64{0.5, 0.5, 0.1, 0.1}, 3},
		{"two of three", parity, []float64{1, 0, 1, 1, 1}, 0},
		{"three of three", parity, []float64{1, 1, 1, 0, 0}, 1},
	} {
		if got := tc.class(tc.x); got != tc.want {
			t.Errorf("%s: class of %v is %d, want %d", tc.name, tc.x, got, tc.want)
		}
	}
}

// A ray from the centre crosses a border of two rings at every multiple of 1/12.
func TestRingsBorders(t *testing.T) {
	for k := 1; k <= 5; k++ {
		r, angle := float64(k)/12, 0.3*float64(k)
		at := func(r float64) int { return rings([]float64{0.5 + r*math.Cos(angle), 0.5 + r*math.Sin(angle)}) }
		if at(r-1e-9) == at(r+1e-9) {
			t.Errorf("no border at r = %d/12", k)
		}
		if at(r-0.08) != at(r-0.01) {
			t.Errorf("a border inside ring %d", k)
		}
	}
}

// Where the features determine the class, the classes have the areas of their regions.
func TestProblemFrequencies(t *testing.T) {
	const n = 40000
	inRings := 0.0 // area of the odd rings, by a midpoint rule
	for i := range 1000 {
		for j := range 1000 {
			inRings += float64(rings([]float64{(float64(i) + 0.5) / 1000, (float64(j) + 0.5) / 1000})) / 1e6
		}
	}
	for name, want := range map[string][]float64{
		"rings":         {1 - inRings, inRings},
		"checkerboard":  {0.5, 0.5},
		"thresholds":    {0.25, 0.25, 0.25, 0.25},
		"parity":        {0.5, 0.5},
		"unequal-noise": {0.64, 0.26, 0.10},
		"sorted":        {0.6, 0.3, 0.1},
		"wild":          {0.25, 0.25, 0.25, 0.25},
	} {
		got := make([]float64, len(want))
		for _, r := range drawn(t, name, n, 5) {
			got[r.class] += 1.0 / n
		}
		for k, p := range want {
			if se := math.Sqrt(p * (1 - p) / n); math.Abs(got[k]-p) > 5*se {
				t.Errorf("%s: class %d has a share of %.4f, want %.4f ± %.4f", name, k, got[k], p, se)
			}
		}
	}
}

// Half of the parity's features are 1, and no two of the three tell the class.
func TestParityOfThree(t *testing.T) {
	const n = 40000
	var odd, pair [4]float64 // of each value of the first two features
	for _, r := range drawn(t, "parity", n, 2) {
		if len(r.x) != 11 || slices.ContainsFunc(r.x, func(v float64) bool { return v != 0 && v != 1 }) {
			t.Fatalf("features %v, want eleven of 0 or 1", r.x)
		}
		k := int(2*r.x[0] + r.x[1])
		pair[k]++
		odd[k] += float64(r.class)
	}
	for k := range odd {
		if p := odd[k] / pair[k]; math.Abs(p-0.5) > 5*0.5/math.Sqrt(pair[k]) {
			t.Errorf("with the first two features %02b class 1 has probability %.3f, want 0.5", k, p)
		}
	}
}

// The labels of the noise have the entropy that the text states, and a linear rule
// on the features does not predict them.
func TestUnequalNoise(t *testing.T) {
	const n, d = 40000, 4
	entropy := 0.0
	for _, p := range unequalFrequencies {
		entropy -= p * math.Log(p)
	}
	if math.Abs(entropy-0.866) > 0.0005 {
		t.Errorf("entropy %.4f nats, want 0.866", entropy)
	}
	var mean [3][d]float64
	var count [3]float64
	rows := drawn(t, "unequal-noise", n, 3)
	for _, r := range rows {
		count[r.class]++
		for j, v := range r.x {
			mean[r.class][j] += v
		}
	}
	for k := range mean {
		for j, s := range mean[k] {
			if m := s / count[k]; math.Abs(m) > 5/math.Sqrt(count[k]) {
				t.Errorf("mean of f%d in class %d is %.3f, want 0", j, k, m)
			}
		}
	}
	repeated := 0.0 // labels equal to the one before: Σ p² if they are independent
	for i := 1; i < n; i++ {
		if rows[i].class == rows[i-1].class {
			repeated += 1.0 / (n - 1)
		}
	}
	if want := 0.64*0.64 + 0.26*0.26 + 0.1*0.1; math.Abs(repeated-want) > 5*0.5/math.Sqrt(n) {
		t.Errorf("a label is that of the row before with probability %.4f, want %.4f", repeated, want)
	}
}

func TestOrderOfLabels(t *testing.T) {
	if rows := drawn(t, "sorted", 2000, 4); !slices.IsSortedFunc(rows, func(a, b sample) int { return a.class - b.class }) {
		t.Error("sorted is not sorted")
	}
	rows, repeats, blocksOf := drawn(t, "blocks", 40050, 4), 0.0, [4]float64{}
	for i, r := range rows {
		switch {
		case i%100 != 0 && r.class != rows[i-1].class:
			t.Fatalf("blocks: the label changes at row %d", i+1)
		case i%100 == 0:
			blocksOf[r.class]++
			if i > 0 && r.class == rows[i-1].class {
				repeats++
			}
		}
	}
	if math.Abs(repeats-100) > 5*math.Sqrt(400*0.25*0.75) {
		t.Errorf("blocks: %.0f of 400 blocks repeat the label before, want about 100", repeats)
	}
	for k, n := range blocksOf {
		if math.Abs(n-100) > 5*math.Sqrt(400*0.25*0.75) {
			t.Errorf("blocks: class %d has %.0f of 401 blocks, want about 100", k, n)
		}
	}
	rows = drawn(t, "rare", 40000, 4)
	later := 0.0
	for i, r := range rows {
		if i < 100 && r.class != i/80 {
			t.Fatalf("rare: row %d has class %d", i+1, r.class)
		}
		if i >= 100 {
			later += float64(r.class)
		}
	}
	if p := later / (40000 - 100); math.Abs(p-0.16) > 0.01 {
		t.Errorf("rare: class 1 has a share of %.4f, want 0.16", p)
	}
}

// The classes of sorted and wild have the centres of the text; one value in a hundred
// is wild.
func TestClusters(t *testing.T) {
	for _, tc := range []struct {
		name           string
		d              int
		distance, wild float64
	}{{"sorted", 6, 1.5, 0}, {"wild", 8, 2.25, 0.01}} {
		const n, bound = 40000, 8 // a value beyond the bound is wild
		sum, count := make([][]float64, 4), [4]float64{}
		wild := 0.0
		for _, r := range drawn(t, tc.name, n, 6) {
			if sum[r.class] == nil {
				sum[r.class] = make([]float64, tc.d)
			}
			count[r.class]++
			for j, v := range r.x {
				if math.Abs(v) > bound {
					wild++
				} else {
					sum[r.class][j] += v
				}
			}
		}
		// A factor of 1000 leaves fewer than one value in a hundred below the bound.
		if share := wild / float64(n*tc.d); math.Abs(share-tc.wild) > 0.1*tc.wild {
			t.Errorf("%s: a share of %.4f is wild, want %g", tc.name, share, tc.wild)
		}
		for k, s := range sum {
			for j, v := range s {
				want := 0.0
				if j/2 == k {
					want = tc.distance
				}
				if got := v / (count[k] * (1 - tc.wild)); math.Abs(got-want) > 5*1.1/math.Sqrt(count[k])+0.01 {
					t.Errorf("%s: mean of f%d in class %d is %.3f, want %g", tc.name, j, k, got, want)
				}
			}
		}
	}
}

// The command writes a file that eval reads: every problem with its rows and classes,
// the same for one seed and another for the next.
func TestGenerate(t *testing.T) {
	for _, p := range problems {
		code, out, errOut := edge(t, "generate", p.name, "--rows", "1000", "--seed", "7")
		if code != exit.OK || errOut != "" {
			t.Fatalf("generate %s exits with %d: %s", p.name, code, errOut)
		}
		s, err := dataset.Summarize(t.Context(), files.Write(t, p.name+".csv", out), dataset.Format{})
		if err != nil || s.Rows != 1000 || s.Gaps != 0 || len(s.Classes) < 2 {
			t.Errorf("generate %s: %+v, %v", p.name, s, err)
		}
		if _, again, _ := edge(t, "generate", p.name, "--rows", "1000", "--seed", "7"); again != out {
			t.Errorf("generate %s: one seed, two files", p.name)
		}
		if _, other, _ := edge(t, "generate", p.name, "--rows", "1000", "--seed", "8"); other == out {
			t.Errorf("generate %s: seeds 7 and 8 give the same file", p.name)
		}
		if _, help, _ := edge(t, "generate", "--help"); !strings.Contains(help, p.name) {
			t.Errorf("the help does not list %s", p.name)
		}
	}
	for _, args := range [][]string{{"generate", "circles"}, {"generate", "rings", "--rows", "0"}, {"generate", "rings", "--rows", "2000000"}} {
		if code, out, _ := edge(t, args...); code != exit.Usage || out != "" {
			t.Errorf("edge-lab %s exits with %d and prints %q", strings.Join(args, " "), code, out)
		}
	}
}
