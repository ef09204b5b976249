package tprocess

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/lab"
	"edge/lab/compare"
	"edge/lab/labtest"
	"edge/test/files"
)

// rows are n rows of two overlapping classes.
func rows(n int) *lab.Data {
	d := &lab.Data{D: 2, C: 2}
	for i := range n {
		y := i % 2
		d.X = append(d.X, math.Sin(float64(3*i))+float64(y), math.Cos(float64(7*i)))
		d.Y = append(d.Y, y)
	}
	return d
}

func TestTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures.csv")
	text := "dataset,inducing,method,measure,value\ntwo-clouds,,VTP1,accuracy,0.9\ntwo-clouds,,VTP1,log_loss,0.4\ntwo-clouds,50,sVTP1,log_loss,0.3\n,,VTP1,accuracy_mean,0.5\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	figures, err := LoadFigures(path)
	if err != nil {
		t.Fatal(err)
	}
	c := Conditions{Repeats: 1, Inducing: 50, Updates: 20, Seed: 1}
	table, err := Table(t.Context(), compare.Splits{Dataset: "two_clouds", Data: rows(50), Journal: new(compare.Journal), Done: func(*compare.Run) {}}, c, figures)
	if err != nil {
		t.Fatal(err)
	}
	if len(table) != len(Methods(50)) {
		t.Fatalf("%d rows", len(table))
	}
	for _, r := range table {
		coin := strings.HasPrefix(r.Method, "VTP2")
		if r.Failed > 0 || r.Inducing != 30 || coin && math.Abs(r.NLL-math.Ln2) > 0.05 || !coin && !(r.NLL < 0.66) {
			t.Errorf("%+v", r)
		}
		if (r.Published != nil) != (r.Method == "VTP1") {
			t.Errorf("%s: published %+v", r.Method, r.Published)
		}
		if p := r.Published; p != nil && (math.Abs(p.Error-0.1) > 1e-12 || p.NLL != 0.4) {
			t.Errorf("published %+v", *p)
		}
	}
	var out bytes.Buffer
	if err := Print(&out, table); err != nil || !strings.Contains(out.String(), "TP grid") || !strings.Contains(out.String(), "0.400") {
		t.Errorf("%v\n%s", err, out.String())
	}
	three := rows(9)
	three.C = 3
	if _, err := Table(t.Context(), compare.Splits{Dataset: "three", Data: three}, c, figures); err == nil {
		t.Error("no error for three classes")
	}
}

// Large sets have inducing points, and methods whose names begin with s.
func TestLargeSetsAreSparse(t *testing.T) {
	c := Standard()
	cfg := c.config(1000)
	if m := int(math.Round(cfg.Inducing * 600)); m != 50 {
		t.Errorf("%d inducing points", m)
	}
	for _, m := range Methods(1000) {
		if !strings.HasPrefix(m.Name, "s") {
			t.Errorf("method %s for a large set", m.Name)
		}
	}
	f := Figures{{"a_b", "sVTP2", "50"}: {NLL: 0.3}}
	if got := f.find("a-b", "sVTP2 printed", 50, false); got == nil || got.NLL != 0.3 {
		t.Errorf("published figure %v", got)
	}
}

func TestFiguresOfAnotherFile(t *testing.T) {
	for _, text := range []string{"", "dataset,method\n", "dataset,inducing,method,measure,value\na,,VGP,accuracy,high\n"} {
		path := files.Write(t, "figures.csv", text)
		if _, err := LoadFigures(path); err == nil {
			t.Errorf("no error for %q", text)
		}
	}
	if _, err := LoadFigures("missing.csv"); err == nil {
		t.Error("no error for a missing file")
	}
}

// A set differs from its flipped form in 4 to 7 labels, and its truth is a probability.
func TestSample(t *testing.T) {
	counts := map[int]bool{}
	for seed := range uint64(20) {
		s, err := newSample(seed)
		if err != nil {
			t.Fatal(err)
		}
		flips := 0
		for i, y := range s.clean.Y {
			if s.flipped.Y[i] != y {
				flips++
			}
		}
		counts[flips] = true
		if flips < leastFlip || flips > mostFlip || s.clean.N() != points || len(s.truth) != judged || len(s.judge) != judged {
			t.Errorf("set %d: %d flips, %d points, %d judged", seed, flips, s.clean.N(), len(s.truth))
		}
	}
	if len(counts) != 4 {
		t.Errorf("numbers of flips %v, want 4 to 7", counts)
	}
}

// On one set the sound bounds find the kernel, and VTP2 predicts 1/2.
func TestSimulation(t *testing.T) {
	s := Simulation{Sets: 1, Updates: 12, Seed: 3}
	calls := 0
	all, err := s.Run(t.Context(), func() { calls++ })
	if err != nil {
		t.Fatal(err)
	}
	if calls != s.Methods() || len(all) != 2*calls {
		t.Fatalf("%d calls, %d lines", calls, len(all))
	}
	for _, m := range all {
		switch {
		case strings.HasPrefix(m.Method, "VTP2"):
			if m.Degenerate != 1 {
				t.Errorf("%+v, want a degenerate fit", m)
			}
		case strings.HasPrefix(m.Method, "V") && m.Method != "VGP" || strings.HasPrefix(m.Method, "t-"):
		case !(m.KL < 0.15 && m.Lengthscale > 0.05 && m.Lengthscale < 2) || m.Degenerate != 0:
			t.Errorf("%+v", m)
		}
	}
	var out bytes.Buffer
	if err := PrintSummaries(&out, all); err != nil || strings.Count(out.String(), "\n") != len(all)+1 {
		t.Errorf("%v\n%s", err, out.String())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Run(ended, func() {}); err == nil {
		t.Error("no error after an interruption")
	}
	labtest.Near(t, "median", median([]float64{4, 1, 3, 2}), 2.5, 0)
}
