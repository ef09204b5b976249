package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/online"
	"edge/persist"
	"edge/test/files"
)

// A file without models is said to be so.
func TestResetOfNoModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge.db")
	store, err := persist.Open(path, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := edge(t, "reset", "--state", path, "--all"); code != exit.OK || out != path+" holds no model\n" || errOut != "" {
		t.Errorf("exits with %d and prints %q, %q", code, out, errOut)
	}
}

// A model that is not in the file is named, with those that are.
func TestResetOfAnotherModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge.db")
	for _, model := range []string{"bearing", "pump"} {
		if err := writeState(path, model, "", []byte("state")); err != nil {
			t.Fatal(err)
		}
	}
	code, _, errOut := edge(t, "reset", "--state", path, "--model", "mill", "--yes")
	if want := "reset: " + path + " holds no model mill; it has: bearing, pump\n"; code != exit.Store || !strings.Contains(errOut, want) {
		t.Errorf("exits with %d and prints %q", code, errOut)
	}
}

// A damaged file is repaired, also where the question is answered by no: reset says what is lost with that, and
// where the damaged file is.
func TestResetOfDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge.db")
	if err := writeState(path, "bearing", "shape", []byte("state of bearing")); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(file, []byte("state of bearing"), []byte("state of nothing")), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errOut := edgeWith(t, "n\n", "reset", "--state", path, "--all")
	for _, want := range []string{"state file was damaged", path + ".damaged-1", "the learnt state is lost", "nothing is forgotten"} {
		if code != exit.Runtime || !strings.Contains(errOut, want) {
			t.Errorf("exit %d, without %q: %s", code, want, errOut)
		}
	}
}

// A file that reset cannot look for may have learnt something.
func TestResetBelowFile(t *testing.T) {
	path := filepath.Join(files.Write(t, "notes.txt", "x"), "edge.db")
	if code, _, errOut := edge(t, "reset", "--state", path, "--all"); code != exit.Store || !strings.Contains(errOut, "not a directory") || strings.Contains(errOut, "nothing is learnt") {
		t.Errorf("exits with %d and prints %q", code, errOut)
	}
}

// reset asks for each model before it removes the first, and reads all answers of a pipe.
func TestResetAsks(t *testing.T) {
	for name, tc := range map[string]struct {
		answers string
		code    int
		left    int
	}{
		"yes":        {"y\nyes\n", exit.OK, 0},
		"no":         {"y\nn\n", exit.Runtime, 2},
		"one answer": {"y\n", exit.Runtime, 2},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "edge.db")
			for _, model := range []string{"bearing", "pump"} {
				if err := writeState(path, model, "shape", []byte("state")); err != nil {
					t.Fatal(err)
				}
			}
			code, out, errOut := edgeWith(t, tc.answers, "reset", "--state", path, "--all")
			if code != tc.code || strings.Count(errOut, "[y/N]") != 2 || strings.Count(out, "has forgotten") != 2-tc.left {
				t.Errorf("exit %d: %s%s", code, errOut, out)
			}
			store, err := persist.OpenReadOnly(path, persist.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			for _, model := range []string{"bearing", "pump"} {
				info, err := store.Info(model)
				if kept := err == nil && len(info.Checkpoints) > 0; kept != (tc.left > 0) {
					t.Errorf("model %s: state is kept: %v (%v)", model, kept, err)
				}
			}
		})
	}
}

// The samples that a reset in the journal has removed do not count.
func TestResetCountsSamplesAfterTheLast(t *testing.T) {
	path, _ := learntState(t, "wave", 40)
	store, err := persist.Open(path, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float64, len(dataset.NewWaveform(1).Features()))
	sample := online.Event{Kind: online.Observe, X: x, Label: "0"}
	var c online.Commit
	for i, e := range []online.Event{sample, {Kind: online.Reset}, {Kind: online.Boundary}, sample, sample} {
		c.Records = append(c.Records, online.Record{Model: "wave", Seq: uint64(i + 1), Event: e})
	}
	shape, err := store.Shape("wave")
	if err == nil {
		_, err = store.Load("wave", shape)
	}
	if err := errors.Join(err, store.Commit(&c), store.Close()); err != nil {
		t.Fatal(err)
	}
	if code, out, errOut := edge(t, "reset", "--state", path, "--all", "--yes"); code != exit.OK || out != "model wave has forgotten 2 samples\n" {
		t.Errorf("exit %d: %s%s", code, out, errOut)
	}
}

// A request for a reset names its model: there is no way back, also where a node has only one.
func TestRequestResetNamesTheModel(t *testing.T) {
	config := files.Write(t, "edge.yaml", "mqtt: {servers: [mqtt://127.0.0.1:1]}\nstreams: {s: {topics: [x], features: [a]}}\nmodels: {pump: {streams: [s]}}\n")
	code, _, errOut := edge(t, "request", "reset", "-c", config, "--wait", "1s")
	if code != exit.Usage || !strings.Contains(errOut, "name the model, as edge request reset pump") {
		t.Errorf("exits with %d and prints %q", code, errOut)
	}
}
