//go:build ignore

// Command make_states wrote states_v1.json, learners' states of format version
// 1 and their results, with:
//
//	go run online/testdata/make_states.go > online/testdata/states_v1.json
//
// The file never changes: later versions must read it. Its figures were computed on
// amd64, by a program of version 1.
package main

import (
	"encoding/json"
	"log"
	"math/rand/v2"
	"os"

	"edge/model"
	"edge/online"
	"edge/online/score"
)

// Golden is a state and its results.
type Golden struct {
	Name     string          `json:"name"`
	Kernel   online.Kernel   `json:"kernel"`
	Temporal online.Temporal `json:"temporal"`
	State    []byte          `json:"state"`
	Then     []Example       `json:"then"`   // examples after the state was written
	Scores   score.Scores    `json:"scores"` // after that
	X        [][]float64     `json:"x"`
	Probs    [][]float64     `json:"probs"` // predictions for X after that
}

// Example is one labelled sample.
type Example struct {
	X     []float64 `json:"x"`
	Label string    `json:"label"`
}

func main() {
	var all []Golden
	for _, c := range []struct {
		name     string
		events   int
		kernel   online.Kernel
		temporal online.Temporal
	}{
		{"empty", 0, online.Shared, online.TemporalAuto},
		{"warming up", 13, online.Shared, online.TemporalAuto},
		{"learnt", 103, online.Shared, online.TemporalAuto},
		{"kernels", 61, online.PerClass, online.TemporalOff},
	} {
		cfg := online.DefaultConfig()
		cfg.Features, cfg.Inducing, cfg.Window, cfg.Batch.MaxSize = []string{"f", "g"}, 4, 6, 5
		cfg.Classes.Names = []string{"a"}
		cfg.Kernel, cfg.Temporal = c.kernel, c.temporal
		l, err := online.NewLearner(cfg)
		check(err)
		rng := rand.New(rand.NewPCG(7, 7))
		sample := func() Example {
			k := rng.IntN(3)
			x := []float64{3 * rng.NormFloat64(), 3 * rng.NormFloat64()}
			x[k%2] += float64(4 - 8*(k/2))
			return Example{x, string(rune('a' + k))}
		}
		teach := func(s Example) { l.Add(&online.Event{Kind: online.Observe, X: s.X, Label: s.Label}) }
		for range c.events {
			teach(sample())
		}
		g := Golden{Name: c.name, Kernel: c.kernel, Temporal: c.temporal}
		g.State, err = l.AppendBinary(nil)
		check(err)
		for range 20 {
			g.Then = append(g.Then, sample())
			teach(g.Then[len(g.Then)-1])
		}
		g.Scores = l.Scores()
		for range 3 {
			x := sample().X
			probs, _, err := l.Posterior().PredictTo(nil, x, model.NewWorkspace())
			check(err)
			g.X, g.Probs = append(g.X, x), append(g.Probs, probs)
		}
		all = append(all, g)
	}
	e := json.NewEncoder(os.Stdout)

	check(e.Encode(all))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
