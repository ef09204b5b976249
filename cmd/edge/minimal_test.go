//go:build minimal

package main

import (
	"strings"
	"testing"
)

// What the minimal build leaves out is refused in words that say so.
func TestLeftOut(t *testing.T) {
	config := func(stream, model, rest string) string {
		return writeFile(t, "edge.yaml", `
mqtt: {servers: [mqtt://broker.lan]}
streams: {waves: {topics: [waves], dimension: 2`+stream+`}}
models: {rooms: {streams: [waves]`+model+`}}
`+rest)
	}
	table := tableFile(t, "room.csv", 20)
	for name, args := range map[string][]string{
		"CBOR in":    {"check", "-c", config(", format: cbor", "", "")},
		"CBOR out":   {"check", "-c", config("", ", output: cbor", "")},
		"zstd":       {"check", "-c", config(", compression: zstd", "", "")},
		"profiles":   {"check", "-c", config("", "", "http: {pprof: true}")},
		"demo":       {"demo", "--for", "1s"},
		"replay":     {"replay", table},
		"predict":    {"predict", table},
		"sample":     {"config", "sample", "--from", table},
		"eval":       {"eval", table, "--json"},
		"train":      {"train", table},
		"paper":      {"paper"},
		"top":        {"top", "--once"},
		"components": {"train", table, "--components", "1"},
		"plot":       {"eval", table, "--plot", "x.svg"},
	} {
		if code, out, errOut := edge(t, args...); code == exitOK || !strings.Contains(errOut, "without -tags minimal") {
			t.Errorf("%s: edge %s exits with %d and says %s%s", name, strings.Join(args, " "), code, out, errOut)
		}
	}
	if code, _, errOut := edge(t, "check", "-c", config(", compression: auto", "", "")); code != exitOK {
		t.Errorf("compression auto, for gzip: %s", errOut)
	}
}
