package harness

import (
	"testing"

	"edge/internal/config"
	"edge/internal/dataset"
	"edge/online"
)

// RowsSeed is the seed of the waveform samples that a [Truth] learns.
const RowsSeed = 3

// Truth is a learner to which nothing happens: it learns the samples of
// dataset.NewWaveform(RowsSeed) in order, each once.
type Truth struct {
	Learner *online.Learner

	t    testing.TB
	rows *dataset.Waveform
	n    int
}

// NewTruth returns the learner of the only model of a configuration file.
func NewTruth(t testing.TB, file string) *Truth {
	t.Helper()
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	learnerConfig, err := cfg.Learner("")
	if err != nil {
		t.Fatal(err)
	}
	l, err := online.NewLearner(learnerConfig)
	if err != nil {
		t.Fatal(err)
	}
	return &Truth{Learner: l, t: t, rows: dataset.NewWaveform(RowsSeed)}
}

// Digest returns the digest of the state after the first n samples. n must not be
// less than in the call before.
func (tr *Truth) Digest(n int) string {
	var row dataset.Row
	for ; tr.n < n; tr.n++ {
		tr.rows.Next(&row)
		tr.Add(row.X, row.Label)
	}
	return tr.Learner.Digest()
}

// Add learns one labelled sample.
func (tr *Truth) Add(x []float64, label string) {
	if out := tr.Learner.Add(&online.Event{Kind: online.Observe, X: x, Label: label}); out.Refused != nil {
		tr.t.Fatal(out.Refused)
	}
}
