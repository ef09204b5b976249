package main

import (
	"strings"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/internal/exit"
	"edge/model"
	core "edge/online/fleet"
	"edge/test/harness"
)

// taught returns an encoded contribution of a node with one feature.
func taught(t *testing.T, node, feature string) []byte {
	t.Helper()
	const n = 100
	h := core.Header{
		Member: node, Version: core.Version{Epoch: 1, Sequence: 2}, Features: core.Features([]string{feature}, ""), N: n,
		Classes: []string{"ok", "worn"}, Counts: []uint64{n, 0}, Horizons: []float64{500}, Weights: []float64{1},
	}
	basis := core.Basis{Params: model.Params{M: 1, D: 1, Theta: make([]float64, 1+1+3)}, Scale: model.Scale{Mu: []float64{0}, Sd: []float64{1}, Clip: 8}}
	*basis.Params.LogitEps() = model.Logit(0.01)
	c := core.New(h, basis, core.Bfloat16)
	for k := range h.Classes {
		if err := c.Put(0, k, []float64{n}, []float64{0}); err != nil {
			t.Fatal(err)
		}
	}
	data, err := c.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A file goes to a model with the same features alone.
func TestFleetImportOfOtherFeatures(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	config := func(feature string) string {
		return harness.WriteFile(t, "edge.yaml", "node: pi1\nmqtt: {servers: [\""+b.URL()+"\"]}\nstreams: {pump: {topics: [pump], features: ["+feature+"]}}\nmodels: {bearing: {streams: [pump], fleet: {concept: mill}}}\n")
	}
	file := harness.WriteFile(t, "pi3.fleet", string(taught(t, "pi3", "rms")))
	if code, out, errOut := edge(t, "fleet", "import", file, "-c", config("peak")); code != exit.Runtime || !strings.Contains(errOut, "other features") {
		t.Errorf("it exits with %d and prints %q", code, out+errOut)
	}
	if code, out, errOut := edge(t, "fleet", "import", file, "-c", config("rms")); code != exit.OK || out != "the broker keeps version 1.2 of pi3 with 100 labels\n" {
		t.Errorf("it exits with %d and prints %q", code, out+errOut)
	}
}
