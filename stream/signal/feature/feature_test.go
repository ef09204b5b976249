package feature_test

import (
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"edge/stream/signal/feature"
)

var everything = slices.Concat(exact, spectra)

func extractor(t testing.TB, names ...string) *feature.Extractor {
	t.Helper()
	e, err := feature.New(names, 0.001)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func ExampleExtractor() {
	e, err := feature.New([]string{"default", "last"}, 0.001)
	if err != nil {
		fmt.Println(err)
		return
	}
	values := e.Append(nil, []float64{1, 3, 2, 4})
	for i, name := range e.Names() {
		fmt.Printf("%s %.4g\n", name, values[i])
	}
	// Output:
	// mean 2.5
	// log_sd 0.04884
	// min 1
	// max 4
	// slope 3.2
	// acf1 -0.35
	// acf2 0.3
	// acf4 0
	// acf8 0
	// last 4
}

func ExampleCorrelation() {
	fmt.Printf("%.3f\n", feature.Correlation([]float64{1, 2, 3, 4}, []float64{2, 4, 5, 9}))
	// Output: 0.965
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  string
	}{
		{nil, ""},
		{[]string{"default"}, "mean log_sd min max slope acf1 acf2 acf4 acf8"},
		{[]string{"shape"}, "skew log_kurtosis crest"},
		{[]string{"level"}, "sd rms range last median q10 q25 q75 q90"},
		{[]string{"time"}, "mcr mobility mad1"},
		{[]string{"spectrum", "bands"}, "peak centroid entropy band1 band2 band3 band4 band5"},
		{[]string{"slope", "last", "slope", "default", "last"}, "slope last mean log_sd min max acf1 acf2 acf4 acf8"},
	} {
		if e := extractor(t, c.names...); strings.Join(e.Names(), " ") != c.want || len(e.Append(nil, []float64{1, 2})) != len(e.Names()) {
			t.Errorf("New(%v) has the names %v, want %s", c.names, e.Names(), c.want)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, want := range map[string][]string{
		"kurtosis": {`unknown feature "kurtosis": `, "the groups are default, shape, level, time, spectrum, bands", "the features are mean, log_sd, "},
		"acf3":     {"did you mean acf1?"},
		"defaults": {"did you mean default?"},
		"":         {`unknown feature ""`},
		"Mean":     {"did you mean mean?"},
	} {
		_, err := feature.New([]string{"max", name}, 0.001)
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("New(%q): %v, want %q", name, err, part)
			}
		}
	}
	for _, floor := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := feature.New([]string{"default"}, floor); err == nil {
			t.Errorf("floor %v was not refused", floor)
		}
	}
	for what, f := range map[string]func(){
		"Append without values":          func() { extractor(t, "mean").Append(nil, nil) },
		"Correlation of 1 and 2 values":  func() { feature.Correlation([]float64{1}, []float64{1, 2}) },
		"Correlation without any values": func() { feature.Correlation(nil, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s did not panic", what)
				}
			}()
			f()
		}()
	}
}

// golden is the signal of the golden values.
func golden(n int) []float64 {
	a := make([]float64, n)
	for i := range a {
		a[i] = math.Sin(0.3*float64(i)) + 0.1*float64(i%7)
	}
	return a
}

// TestGolden compares with testdata/golden.csv, by testdata/golden.py.
func TestGolden(t *testing.T) {
	file, err := os.Open("testdata/golden.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	in := csv.NewReader(file)
	in.Comment = '#'
	rows, err := in.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	e := extractor(t, everything...)
	if len(rows) != len(e.Names()) {
		t.Fatalf("%d golden features, want %d", len(rows), len(e.Names()))
	}
	for column, n := range []int{32, 30, 31} {
		for j, got := range e.Append(nil, golden(n)) {
			want, err := strconv.ParseFloat(rows[j][1+column], 64)
			if err != nil || rows[j][0] != e.Names()[j] {
				t.Fatalf("golden row %v: %v", rows[j], err)
			}
			if !(math.Abs(got-want) <= 1e-11*math.Max(1, math.Abs(want))) {
				t.Errorf("%s of %d values: %v, want %v (error %.1e)", rows[j][0], n, got, want, got-want)
			}
		}
	}
}

func TestDefinedValues(t *testing.T) {
	for _, c := range []struct {
		what string
		a    []float64
		want map[string]float64
	}{
		{"one value", []float64{7}, map[string]float64{
			"mean": 7, "log_sd": -3, "min": 7, "max": 7, "slope": 0, "acf1": 0, "acf8": 0, "skew": 0, "log_kurtosis": math.Log(3), "crest": 0,
			"sd": 0, "rms": 7, "range": 0, "last": 7, "median": 7, "q10": 7, "q90": 7, "mcr": 0, "mobility": 0, "mad1": 0,
			"peak": 0, "centroid": 0, "entropy": 0, "band1": -12, "band5": -12,
		}},
		{"equal values", slices.Repeat([]float64{0.1}, 1_000_000), map[string]float64{
			"skew": 0, "log_kurtosis": math.Log(3), "crest": 0, "acf1": 0, "mcr": 0, "mobility": 0, "mad1": 0, "peak": 0, "entropy": 0, "band3": -12,
		}},
		{"shorter than a lag", []float64{1, -1, 1, -1}, map[string]float64{"acf1": -0.75, "acf2": 0.5, "acf4": 0, "acf8": 0}},
		{"a line", []float64{0, 1, 2, 3, 4}, map[string]float64{"slope": 5, "median": 2, "q10": 0.4, "q25": 1, "q75": 3, "q90": 3.6, "mobility": 0, "mad1": 1}},
		{"alternating", slices.Repeat([]float64{1, -1}, 32), map[string]float64{"peak": 0.5, "mcr": 1, "rms": 1, "crest": 1, "log_kurtosis": 0}},
		{"a power without a frequency", append([]float64{1, -1}, make([]float64, 9)...), map[string]float64{"peak": 0, "centroid": 0, "entropy": 0, "band5": -12}},
		{"the extremes", []float64{-math.MaxFloat64, math.MaxFloat64}, map[string]float64{"min": -1e70, "max": 1e70, "range": 2e70, "sd": 1e70, "mean": 0, "last": 1e70}},
	} {
		e := extractor(t, everything...)
		values := e.Append(nil, c.a)
		for name, want := range c.want {
			if got := values[slices.Index(e.Names(), name)]; math.Abs(got-want) > 1e-11*max(1, math.Abs(want)) {
				t.Errorf("%s, %s: %v, want %v", c.what, name, got, want)
			}
		}
	}
}

// TestPowerIsVariance checks the scale of the power: the bands of a wave add up to its
// variance, at any length and amplitude.
func TestPowerIsVariance(t *testing.T) {
	e := extractor(t, "sd", "band1", "band2", "band3", "band4", "band5")
	for _, n := range []int{96, 128, 360, 1000} {
		for _, amplitude := range []float64{0.01, 1, 500} {
			a := make([]float64, n)
			for i := range a {
				a[i] = amplitude * math.Sin(2*math.Pi*0.125*float64(i))
			}
			v, sum := e.Append(nil, a), 0.0
			for _, band := range v[1:] {
				sum += math.Pow(10, band)
			}
			if want := v[0] * v[0]; math.Abs(sum/want-1) > 1e-6 {
				t.Errorf("%d rows: the power is %v, the variance %v", n, sum, want)
			}
		}
	}
}

// TestSubsetsAndOrder checks that a feature has the same bits whatever else is asked for.
func TestSubsetsAndOrder(t *testing.T) {
	all := extractor(t, everything...)
	r := rand.New(rand.NewPCG(7, 8))
	a := fill("wave", r, 250)
	values := all.Append(nil, a)
	for range 200 {
		names := slices.Clone(all.Names())
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		names = names[:1+r.IntN(4)]
		for j, got := range extractor(t, names...).Append([]float64{9}, a)[1:] {
			if want := values[slices.Index(all.Names(), names[j])]; got != want {
				t.Errorf("%s of %v: %v, want %v", names[j], names, got, want)
			}
		}
	}
}

// TestManyLengths checks that features do not depend on the lengths before, with more
// lengths than an extractor has tables for.
func TestManyLengths(t *testing.T) {
	e := extractor(t, spectra...)
	r := rand.New(rand.NewPCG(9, 10))
	for range 300 {
		a := fill("wave", r, 1+r.IntN(700))
		got, want := e.Append(nil, a), extractor(t, spectra...).Append(nil, a)
		if !slices.Equal(got, want) {
			t.Fatalf("%d values: %v after other lengths, %v without", len(a), got, want)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	var of [16][]float64
	for i := range of {
		of[i] = fill("wave", r, 240+i*16)
	}
	e := extractor(t, everything...)
	dst := make([]float64, 0, len(e.Names()))
	n := testing.AllocsPerRun(20, func() {
		for _, a := range of {
			dst = e.Append(dst[:0], a)
		}
		feature.Correlation(of[0], of[0])
	})
	if n > 0 {
		t.Errorf("%v allocations for windows of %d lengths", n, len(of))
	}
}

// TestReferencePage checks that docs/reference/features.md has a row for every feature,
// with its group, in the order of the groups.
func TestReferencePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/features.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !strings.Contains(cells[1], "`") {
			continue
		}
		for _, name := range strings.Fields(strings.ReplaceAll(cells[1], "`", "")) {
			got = append(got, strings.TrimSpace(cells[4])+" "+strings.Trim(name, ","))
		}
	}
	for _, group := range []string{"default", "shape", "level", "time", "spectrum", "bands"} {
		for _, name := range extractor(t, group).Names() {
			want = append(want, group+" "+name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the page has\n%v, want\n%v", got, want)
	}
}

// FuzzAppend checks that the features of finite values are finite, in their range and
// those of the reference.
func FuzzAppend(f *testing.F) {
	r := rand.New(rand.NewPCG(13, 14))
	for kind := range windows {
		for _, n := range []int{1, 2, 9, 40} {
			var bytes []byte
			for _, v := range fill(kind, r, n) {
				bytes = binary.LittleEndian.AppendUint64(bytes, math.Float64bits(v))
			}
			f.Add(bytes)
		}
	}
	e := extractor(f, everything...)
	f.Fuzz(func(t *testing.T, bytes []byte) {
		var a []float64
		for ; len(bytes) >= 8 && len(a) < 5000; bytes = bytes[8:] {
			if v := math.Float64frombits(binary.LittleEndian.Uint64(bytes)); !math.IsNaN(v) && !math.IsInf(v, 0) {
				a = append(a, v)
			}
		}
		if len(a) == 0 {
			return
		}
		v := map[string]float64{}
		for j, x := range e.Append(nil, a) {
			name := e.Names()[j]
			if v[name] = x; math.IsNaN(x) || math.IsInf(x, 0) {
				t.Errorf("%s of %v is %v", name, a, x)
			}
			switch name { // of the transform the range only
			case "peak", "centroid", "entropy", "band1", "band2", "band3", "band4", "band5":
				continue
			}
			if want := reference(name, a, 0.001); x != want {
				t.Errorf("%s of %v is %v, want %v", name, a, x, want)
			}
		}
		const rounding = 1e-9
		within := func(low, high float64, names ...string) {
			for _, name := range names {
				if v[name] < low-rounding || v[name] > high+rounding {
					t.Errorf("%s of %v is %v, want %v to %v", name, a, v[name], low, high)
				}
			}
		}
		within(-1, 1, "acf1", "acf2", "acf4", "acf8")
		within(0, 0.5, "peak", "centroid")
		within(0, 1, "mcr", "entropy")
		within(-12, 150, "band1", "band2", "band3", "band4", "band5")
		order := []float64{v["min"], v["q10"], v["q25"], v["median"], v["q75"], v["q90"], v["max"]}
		if !slices.IsSorted(order) {
			t.Errorf("extremes and quantiles of %v are %v", a, order)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		names string
		sizes []int
	}{
		{"default", []int{64, 128, 256, 1024}},
		{"default spectrum bands", []int{251, 256, 1024, 4096}},
		{"spectrum bands", []int{256}},
		{"q25 median q75", []int{256, 1024}},
		{strings.Join(everything, " "), []int{256}},
	} {
		for _, n := range c.sizes {
			b.Run(fmt.Sprintf("%s/n=%d", strings.ReplaceAll(c.names, " ", "+"), n), func(b *testing.B) {
				e := extractor(b, strings.Fields(c.names)...)
				a := fill("wave", rand.New(rand.NewPCG(15, 16)), n)
				dst := make([]float64, 0, len(e.Names()))
				b.ReportAllocs()
				for b.Loop() {
					dst = e.Append(dst[:0], a)
				}
			})
		}
	}
}

// BenchmarkFurtherLength is a spectrum whose tables were given to other lengths.
func BenchmarkFurtherLength(b *testing.B) {
	e := extractor(b, spectra...)
	var of [17][]float64
	for i := range of {
		of[i] = fill("wave", rand.New(rand.NewPCG(17, 18)), 256+i*16)
	}
	var dst []float64
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		dst = e.Append(dst[:0], of[i%len(of)])
	}
}

func BenchmarkCorrelation(b *testing.B) {
	for _, n := range []int{64, 128, 256, 1024} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			r := rand.New(rand.NewPCG(19, 20))
			x, y := fill("wave", r, n), fill("wave", r, n)
			b.ReportAllocs()
			for b.Loop() {
				feature.Correlation(x, y)
			}
		})
	}
}
