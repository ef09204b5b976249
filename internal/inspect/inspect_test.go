package inspect

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"edge/online"
	"edge/persist"
)

// Of the samples in a state file, those count that wait for their label, and not those
// that are kept for a correction.
func TestPendingSamples(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge.db")
	store, err := persist.Open(path, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := online.DefaultConfig()
	cfg.Features = []string{"a"}
	if _, err := store.Load("m", cfg.Shape()); err != nil {
		t.Fatal(err)
	}
	c := &online.Commit{Wait: []online.Pending{
		{Model: "m", Key: 1, X: []float64{1}}, {Model: "m", Key: 2, X: []float64{2}, Label: "ok"}, {Model: "m", Key: 3, X: []float64{3}},
	}}
	if err := store.Commit(c); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := File(path, nil)
	if err != nil || len(r.Models) != 1 || r.Models[0].Pending != 2 {
		t.Fatalf("%+v, %v, want 2 pending samples", r, err)
	}
	var text strings.Builder
	r.Print(&text)
	if want := "journal    empty; 0 messages remembered, 2 samples waiting for a label\n"; !strings.Contains(text.String(), want) {
		t.Errorf("it prints\n%s\nwant %q", &text, want)
	}
}

// The keys of the JSON object are in lower case, as everywhere.
func TestKeys(t *testing.T) {
	text, err := json.Marshal(&Report{Models: []ModelReport{{}}})
	if err != nil {
		t.Fatal(err)
	}
	if wrong := regexp.MustCompile(`"[a-z_]*[^a-z_"][^"]*":`).FindAllString(string(text), -1); len(wrong) > 0 {
		t.Errorf("keys %q", wrong)
	}
}
