package main

import (
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/exit"
	"edge/test/files"
)

// A model with a part that only a newer edge knows, and one whose shape only that edge reads, are not taken
// for damage: each command says that this edge is the way out, and none proposes to forget the model.
func TestStateOfNewerEdge(t *testing.T) {
	_, learner := learntState(t, "bearing", 20)
	state, err := learner.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := learner.Config()
	features := strings.Join(cfg.Features, ", ")
	for name, shape := range map[string]string{"part": cfg.Shape(), "shape": cfg.Shape() + " dreams=1"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "edge.db")
			newer := append(state[:len(state)-1:len(state)-1], "\x06dreams\x01\x01\x00"...) // the last byte ends the parts
			if err := writeState(path, "bearing", shape, newer); err != nil {
				t.Fatal(err)
			}
			config := files.Write(t, "edge.yaml", "node: pi1\nmqtt: {servers: [\"mqtt://127.0.0.1:1\"]}\nhttp: {listen: \"\"}\nstore: {path: "+path+"}\n"+
				"streams: {pump: {topics: [pump], features: ["+features+"]}}\nmodels: {bearing: {streams: [pump]}}\n")
			for line, want := range map[string]int{
				"inspect " + path:                    exit.Store,
				"inspect " + path + " -c " + config:  exit.Store,
				"verify " + path:                     exit.Store,
				"check -c " + config:                 exit.Store,
				"run -c " + config:                   exit.Store,
				"doctor --offline -c " + config:      exit.Runtime,
				"reset --model bearing -c " + config: exit.Runtime,
			} {
				code, out, errOut := edge(t, strings.Fields(line)...)
				said := out + errOut
				if code != want || !strings.Contains(said, "but one of a newer edge: install that one again") || strings.Contains(said, "edge reset --model") || strings.Contains(said, "is damaged") {
					t.Errorf("edge %s exits with %d and prints\n%s", line, code, said)
				}
			}
		})
	}
}
