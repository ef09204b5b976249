package score

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"

	"edge/online/wire"
)

// independent are the scores of testdata/scores.json, computed elsewhere.
type independent struct {
	N          uint64
	Error      float64
	NLL        float64
	Brier      float64
	ECE        float64
	MacroF1    float64 `json:"macro_f1"`
	Balanced   float64 `json:"balanced_accuracy"`
	Kappa      float64
	Precision  []float64
	Recall     []float64
	Prevalence []float64
	Confusion  [][]uint64
	Prior      Baseline `json:"class_prior"`
	Last       Baseline `json:"last_label"`
}

func (want *independent) compare(t *testing.T, f *Figures, tol float64) {
	t.Helper()
	near := func(name string, got, want float64) {
		t.Helper()
		if !(math.Abs(got-want) <= tol) {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if f.N != want.N || f.Prior.N != want.N || f.Last.N != want.N {
		t.Fatalf("%d samples, baselines of %d and %d, want %d", f.N, f.Prior.N, f.Last.N, want.N)
	}
	near("error", f.Error, want.Error)
	near("log loss", f.NLL, want.NLL)
	near("brier", f.Brier, want.Brier)
	near("ece", f.ECE, want.ECE)
	near("macro-f1", f.MacroF1, want.MacroF1)
	near("balanced accuracy", float64(f.Balanced), want.Balanced)
	near("kappa", float64(f.Kappa), want.Kappa)
	near("class prior: error", f.Prior.Error, want.Prior.Error)
	near("class prior: log loss", f.Prior.NLL, want.Prior.NLL)
	near("last label: error", f.Last.Error, want.Last.Error)
	near("last label: log loss", f.Last.NLL, want.Last.NLL)
	for k, c := range f.PerClass {
		near("precision of "+c.Class, float64(c.Precision), want.Precision[k])
		near("recall of "+c.Class, float64(c.Recall), want.Recall[k])
		near("prevalence of "+c.Class, float64(c.Prevalence), want.Prevalence[k])
	}
}

// The scores are those of scikit-learn, over all samples and over the window.
func TestScoresAgainstOthers(t *testing.T) {
	data, err := os.ReadFile("testdata/scores.json")
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Probs       [][]float64
		Labels      []int
		All, Window independent
	}
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	var j Judge
	for i, p := range c.Probs {
		j.Add(p, c.Labels[i])
	}
	s := j.Scores([]string{"a", "b", "c", "d"})
	c.All.compare(t, &s.Figures, 1e-12)
	c.Window.compare(t, &s.Window, 1e-7) // its losses are kept in 32 bits
	if !reflect.DeepEqual(s.Matrix, c.All.Confusion) {
		t.Errorf("confusion %v, want %v", s.Matrix, c.All.Confusion)
	}
	if beats, known := s.Beats(); !beats || !known {
		t.Errorf("beats the baselines: %v, %v", beats, known)
	}
}

// Before anything is judged, and where nothing was predicted, scores are defined or NaN.
func TestScoresAtTheEdge(t *testing.T) {
	var j Judge
	s := j.Scores(nil)
	if text, err := json.Marshal(s); err != nil || s.N != 0 {
		t.Errorf("%s, %v", text, err)
	}
	if _, known := s.Beats(); known {
		t.Error("nothing beats the baselines before the first sample")
	}
	j.Add(nil, 0)                         // no class was known
	j.Add([]float64{1}, 1)                // a class that was not known
	j.Add([]float64{0.2, 0.8}, 1)         // right
	s = j.Scores([]string{"a", "b", "c"}) // c was declared and never seen
	if s.Error != 2.0/3 || s.Balanced != 0.25 || s.MacroF1 != 1.0/3 || s.Window.Error != s.Error {
		t.Errorf("%+v", s.Figures)
	}
	if c := s.PerClass; c[0].N != 1 || c[1].N != 2 || c[1].Recall != 0.5 || c[1].Precision != 1 || !math.IsNaN(float64(c[2].Recall)) || !math.IsNaN(float64(c[2].Precision)) {
		t.Errorf("classes %+v", c)
	}
	for _, b := range []Baseline{s.Prior, s.Last} { // a label that has never been is worth 1e-6
		if b.N != 3 || b.NLL < 2*-math.Log(1e-6)/3 {
			t.Errorf("baseline %+v", b)
		}
	}
	if _, err := json.Marshal(s); err != nil {
		t.Error(err)
	}
}

// randomPrediction draws probabilities, a decision, and a label.
func randomPrediction(rng *rand.Rand, c int) (probs []float64, d Decision, label int) {
	probs = make([]float64, c)
	rule := rng.IntN(3)
	d = Decision{Ruled: rule > 0, Abstained: rule > 1, Sets: rng.IntN(2) == 0, Size: rng.IntN(c + 1)}
	var sum float64
	for k := range probs {
		probs[k] = rng.ExpFloat64()
		sum += probs[k]
	}
	for k := range probs {
		probs[k] /= sum
	}
	d.Holds = d.Size > 0 && rng.IntN(2) == 0
	return probs, d, rng.IntN(c)
}

// The counts of abstentions and sets are those of a list of all outcomes, and the
// window ends where it should.
func TestAbstentionsAndSets(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	var j Judge
	type seen struct {
		d   Decision
		hit bool
	}
	var all []seen
	for range 1300 {
		probs, d, label := randomPrediction(rng, 3)
		j.AddPublished(probs, label, d)
		top := 0
		for k, v := range probs {
			if v > probs[top] {
				top = k
			}
		}
		all = append(all, seen{d, top == label})
	}
	s := j.Scores([]string{"a", "b", "c"})
	for name, c := range map[string]struct {
		list []seen
		got  Figures
	}{"all": {all, s.Figures}, "window": {all[len(all)-scoreWindow:], s.Window}} {
		var ruled, kept, wrong, sets, covered, size, empty float64
		for _, v := range c.list {
			if v.d.Ruled {
				ruled++
			}
			if v.d.Ruled && !v.d.Abstained {
				kept++
				if !v.hit {
					wrong++
				}
			}
			if v.d.Sets {
				sets++
				size += float64(v.d.Size)
				if v.d.Holds {
					covered++
				}
				if v.d.Size == 0 {
					empty++
				}
			}
		}
		a, b := *c.got.Abstained, *c.got.Sets
		if want := (Abstentions{uint64(ruled), Real(kept / ruled), Real(wrong / kept)}); a != want {
			t.Errorf("%s: abstentions %+v, want %+v", name, a, want)
		}
		if want := (Coverage{uint64(sets), Real(covered / sets), Real(size / sets), Real(empty / sets)}); b != want {
			t.Errorf("%s: sets %+v, want %+v", name, b, want)
		}
	}
}

// Correcting a label gives the scores that the right one would have given.
func TestCorrect(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	var wrong, right Judge
	for range 50 {
		probs, d, was := randomPrediction(rng, 3)
		is := rng.IntN(4)
		wrong.AddPublished(probs, was, d)
		wrong.Correct(probs, was, is)
		right.AddPublished(probs, is, d)
	}
	a, b := wrong.Scores([]string{"a", "b", "c", "d"}), right.Scores([]string{"a", "b", "c", "d"})
	if !reflect.DeepEqual(a.Matrix, b.Matrix) || a.Error != b.Error || math.Abs(a.NLL-b.NLL) > 1e-12 || math.Abs(a.ECE-b.ECE) > 1e-12 || a.Balanced != b.Balanced {
		t.Errorf("corrected %+v, want %+v", a.Figures, b.Figures)
	}
}

// A class that is removed leaves no trace in the counts by class, and the others
// keep theirs; the state survives encoding.
func TestDropClass(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	var j Judge
	for range 700 {
		probs, d, label := randomPrediction(rng, 4)
		j.AddPublished(probs, label, d)
	}
	j.lastLabel = 4
	before := j.Scores([]string{"a", "b", "c", "d"})
	j.DropClass(1)
	after := j.Scores([]string{"a", "c", "d"})
	for i, k := range []int{0, 2, 3} {
		row := slices.Delete(slices.Clone(before.Matrix[k]), 1, 2)
		if !slices.Equal(after.Matrix[i], row) || after.PerClass[i].N != before.PerClass[k].N {
			t.Errorf("class %d: %v, want %v", k, after.Matrix[i], row)
		}
	}
	if j.lastLabel != 3 || after.Error != before.Error || after.Window.N >= before.Window.N {
		t.Errorf("last label %d, error %v, window of %d", j.lastLabel, after.Error, after.Window.N)
	}
	for range 600 { // with one class fewer
		probs, d, label := randomPrediction(rng, 3)
		j.AddPublished(probs, label, d)
	}
	var e wire.Encoder
	j.Encode(&e)
	var again Judge
	d := wire.NewDecoder(e.Buf, "", wire.ErrState)
	if again.Decode(d); d.End() != nil || !reflect.DeepEqual(again, j) {
		t.Errorf("the state changed when it was encoded and decoded: %v", d.Err())
	}
}

// The bins of the reliability diagram are those of the calibration error.
func TestReliability(t *testing.T) {
	var j Judge
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		p := rng.Float64()
		class := 0
		if rng.Float64() > p {
			class = 1
		}
		j.Add([]float64{p, 1 - p}, class)
	}
	s := j.Scores([]string{"a", "b"})
	var n uint64
	var ece, right float64
	for i, b := range s.Reliability {
		n += b.N
		right += float64(b.N) * b.Accuracy
		ece += float64(b.N) * math.Abs(b.Confidence-b.Accuracy) / 1000
		lo, hi := float64(i)/15, float64(i+1)/15
		if b.N > 0 && (b.Confidence < lo || b.Confidence > hi) || b.N == 0 && b != (Bin{}) {
			t.Errorf("bin %d from %.3f to %.3f is %+v", i, lo, hi, b)
		}
	}
	if n != 1000 || math.Abs(ece-s.ECE) > 1e-12 || math.Abs(right/1000-(1-s.Error)) > 1e-12 {
		t.Errorf("%d samples, ece %v, accuracy %v; want 1000, %v, %v", n, ece, right/1000, s.ECE, 1-s.Error)
	}
}

// A label that is a state is known before its sample: repeating it is no rule.
func TestKnownLabelsHaveNoLastLabel(t *testing.T) {
	probs := []float64{0.7, 0.3}
	add := func(known bool) (f Figures) {
		var j Judge
		for i := range 40 {
			j.AddPublished(probs, i/10%2, Decision{Known: known}) // the label changes every ten samples
		}
		return j.Scores([]string{"off", "on"}).Figures
	}
	if f := add(false); f.Last.Error > 0.2 {
		t.Errorf("the last label is wrong on %v of the samples", f.Last.Error)
	}
	if f := add(true); f.Last != f.Prior || f.Last.N != 40 {
		t.Errorf("the last of known labels has %+v, the class prior %+v", f.Last, f.Prior)
	}
}

// "Same as last label" knows no more labels than the prediction: of a minibatch whose
// labels come together, those before it.
func TestLastLabelOfLateLabels(t *testing.T) {
	const batch, n = 8, 200
	rng := rand.New(rand.NewPCG(3, 3))
	labels := make([]int, n)
	for i := range labels {
		if labels[i] = rng.IntN(3); i > 0 && rng.IntN(4) > 0 {
			labels[i] = labels[i-1]
		}
	}
	var j Judge
	var wrong, repeats, pairs, loss float64
	counts := [3]float64{1, 1, 1} // and one of each
	for i, k := range labels {
		d, p := Decision{Late: true}, counts[k]/float64(i+3)
		if known := i / batch * batch; known > 0 {
			last := labels[known-1]
			d.Last = last + 1
			again := (repeats + 1) / (pairs + 2)
			if pairs++; last == k {
				repeats++
				p = again
			} else {
				wrong++
				p *= (1 - again) / (1 - counts[last]/float64(i+3))
			}
		} else if slices.Index(counts[:], slices.Max(counts[:])) != k {
			wrong++
		}
		loss -= math.Log(p)
		counts[k]++
		j.AddPublished([]float64{0.2, 0.3, 0.5}, k, d)
	}
	last := j.Scores([]string{"a", "b", "c"}).Last
	if last.Error != wrong/n || math.Abs(last.NLL-loss/n) > 1e-12 {
		t.Errorf("error %v, log loss %v, want %v and %v", last.Error, last.NLL, wrong/n, loss/n)
	}
}

// A state whose window would be read beyond its end, or whose confidences are no
// probabilities, is refused.
func TestDecodeRefuses(t *testing.T) {
	for name, spoil := range map[string]func(*Judge){
		"next beyond the window": func(j *Judge) { j.next = 2 },
		"next in a short window": func(j *Judge) { j.next = 1 },
		"a negative confidence":  func(j *Judge) { j.ring[0].numbers[2] = -1 },
		"a confidence above 1":   func(j *Judge) { j.ring[0].numbers[2] = 1.5 },
	} {
		t.Run(name, func(t *testing.T) {
			var j, again Judge
			for range 2 {
				j.Add([]float64{0.7, 0.3}, 0)
			}
			spoil(&j)
			var e wire.Encoder
			j.Encode(&e)
			d := wire.NewDecoder(e.Buf, "", wire.ErrState)
			again.Decode(d)
			if err := d.End(); !errors.Is(err, wire.ErrState) {
				t.Errorf("got %v", err)
			}
			again.Scores([]string{"a", "b"})
			again.DropClass(0)
		})
	}
}

// A score is null in JSON before the first judged sample.
func TestJudged(t *testing.T) {
	text, err := json.Marshal([]Real{Judged(0, 0.5), Judged(1, 0.5)})
	if err != nil || string(text) != "[null,0.5]" {
		t.Errorf("%s, %v", text, err)
	}
}
