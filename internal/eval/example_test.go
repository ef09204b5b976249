package eval_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"edge/internal/dataset"
	"edge/internal/eval"
	"edge/internal/report"
	"edge/online/score"
)

// exampleFile writes a data file of simulated sensors and returns its path.
func exampleFile(rows int) (path string, remove func()) {
	folder, err := os.MkdirTemp("", "eval")
	if err != nil {
		panic(err)
	}
	w := dataset.NewWaveform(1)
	var b strings.Builder
	b.WriteString(strings.Join(w.Features(), ",") + ",label\n")
	var row dataset.Row
	for range rows {
		w.Next(&row)
		for _, v := range row.X {
			fmt.Fprintf(&b, "%.3f,", v)
		}
		b.WriteString("wave" + row.Label + "\n")
	}
	path = filepath.Join(folder, "waves.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		panic(err)
	}
	return path, func() { os.RemoveAll(folder) }
}

// Evaluate a file as edge eval does.
func ExampleNew() {
	path, remove := exampleFile(600)
	defer remove()
	e := eval.New()
	e.Inducing = 20
	if err := e.Prepare([]string{path}); err != nil {
		panic(err)
	}
	err := e.Each(context.Background(), path, io.Discard, func(r *report.Report) error {
		fmt.Printf("%s: %d samples of %v\n", r.Dataset, r.Samples, r.Classes)
		fmt.Println("better than the baselines:", *r.Beats)
		return nil
	})
	fmt.Println(err)
	// Output:
	// waves: 600 samples of [wave0 wave1 wave2]
	// better than the baselines: true
	// <nil>
}

// Train on a file as edge train does, and judge by a quarter of its rows.
func ExampleNewTraining() {
	path, remove := exampleFile(400)
	defer remove()
	t := eval.NewTraining()
	t.Inducing, t.Holdout, t.How.Passes, t.Quiet = 20, 0.25, 2, true
	r, err := t.Run(context.Background(), path, io.Discard, io.Discard)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d samples, %g passes, error below 0.3: %v\n", r.Samples, r.Passes, *r.Error < 0.3)
	// Output:
	// 300 samples, 2 passes, error below 0.3: true
}

// majority predicts the most frequent label so far.
type majority struct {
	judge   score.Judge
	classes report.ClassBook
	counts  []float64
	rows    uint64
}

func (m *majority) Row(row *dataset.Row) error {
	k := m.classes.ClassOf(row.Label)
	if k == len(m.counts) {
		m.counts = append(m.counts, 0)
	}
	probs := make([]float64, len(m.counts))
	for i, n := range m.counts {
		probs[i] = (n + 1) / float64(int(m.rows)+len(probs))
	}
	m.judge.Add(probs, k)
	m.counts[k]++
	m.rows++
	return nil
}

func (m *majority) Position() uint64 { return m.rows }

func (m *majority) Scores() score.Scores { return m.judge.Scores(m.classes.Names) }

// A policy evaluates anything that predicts and learns rows.
func ExampleRun() {
	path, remove := exampleFile(200)
	defer remove()
	d, err := dataset.Open(path, dataset.Format{})
	if err != nil {
		panic(err)
	}
	defer d.Close()
	var m majority
	c, err := eval.Run(context.Background(), d, &m, nil)
	if err != nil {
		panic(err)
	}
	s := m.Scores()
	fmt.Printf("%d samples, %d points, error above 0.5: %v\n", s.N, len(c.Curve.Ending(s)), s.Error > 0.5)
	// Output:
	// 200 samples, 20 points, error above 0.5: true
}
