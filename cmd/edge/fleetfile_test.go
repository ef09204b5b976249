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

// A contribution goes from one broker to another through a pipe. What export says goes
// to standard error.
func TestFleetPipe(t *testing.T) {
	config := func() string {
		b := brokertest.New(t, brokertest.Embedded)
		return harness.WriteFile(t, "edge.yaml", "node: pi1\nmqtt: {servers: [\""+b.URL()+"\"]}\nstreams: {pump: {topics: [pump], features: [rms]}}\nmodels: {bearing: {streams: [pump], fleet: {concept: mill}}}\n")
	}
	data, from, to := string(taught(t, "pi3", "rms")), config(), config()
	if code, out, errOut := edgeWith(t, data, "fleet", "import", "-", "-c", from); code != exit.OK {
		t.Fatalf("it exits with %d and prints %q", code, out+errOut)
	}
	code, out, errOut := edge(t, "fleet", "export", "-", "--member", "pi3", "-c", from)
	if code != exit.OK || out != data || !strings.HasPrefix(errOut, "-: pi3, version 1.2 with 100 labels") {
		t.Fatalf("it exits with %d, writes %d bytes, want %d, and prints %q", code, len(out), len(data), errOut)
	}
	if code, said, errOut := edgeWith(t, out, "fleet", "import", "-", "-c", to); code != exit.OK || said != "the broker keeps version 1.2 of pi3 with 100 labels\n" {
		t.Errorf("it exits with %d and prints %q", code, said+errOut)
	}
	if code, _, errOut := edgeWith(t, "", "fleet", "import", "-", "-c", to); code != exit.Runtime || !strings.Contains(errOut, "standard input is empty") {
		t.Errorf("of nothing it exits with %d and prints %q", code, errOut)
	}
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
