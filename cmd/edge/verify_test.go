package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"edge/internal/exit"
	"edge/online"
	"edge/persist"
	"edge/test/files"
	"edge/test/harness"
)

// verify finds a state whose checksum is right, but which no learner can restore.
func TestVerifyState(t *testing.T) {
	cfg := online.DefaultConfig()
	cfg.Features = []string{"x", "y"}
	path := filepath.Join(t.TempDir(), "edge.db")
	s, err := persist.Open(path, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for model, state := range map[string]string{"bad": "nonsense", "empty": ""} {
		if _, err := s.Load(model, cfg.Shape()); err != nil {
			t.Fatal(err)
		}
		if state == "" {
			continue
		}
		if err := s.Checkpoint(model, 0, []byte(state)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := edge(t, "verify", path)
	const remedy = "is damaged; edge run does not start from it: with the daemon stopped, edge restore puts a backup in its place; edge reset with --model bad gives up what cannot be read"
	if code != exit.Store || !strings.Contains(errOut, remedy) {
		t.Errorf("verify exits with %d: %s", code, errOut)
	}
	for _, want := range []string{
		"B, damaged\n", "bad: the state of generation 1 cannot be used", "others may read it",
		"model empty: no checkpoint, an empty journal, 0 samples wait", "lost: 0 samples",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("verify does not print %q:\n%s", want, out)
		}
	}
	if code, _, errOut := edge(t, "verify", fmt.Sprint(path, ".none")); code != exit.Store || !strings.Contains(errOut, "no such file") || !strings.Contains(errOut, "give the path of") {
		t.Errorf("verify of no file exits with %d: %s", code, errOut)
	}
}

// Of a file that a power cut has left empty, or all zeros, nothing can be used: only a backup helps.
func TestVerifyNothing(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "zeros": strings.Repeat("\x00", 1<<20)} {
		code, out, errOut := edge(t, "verify", files.Write(t, "edge.db", content))
		if code != exit.Store || !strings.Contains(errOut, "nothing in it can be used: with the daemon stopped, edge restore puts a backup in its place") {
			t.Errorf("%s: verify exits with %d: %s%s", name, code, out, errOut)
		}
	}
}

// What `edge train` has taught is in no record of a journal: reset counts it, and verify
// says that it is lost where the checkpoint is damaged.
func TestTrainedStateIsCounted(t *testing.T) {
	table := harness.TableFile(t, "table.csv", 120)
	db := filepath.Join(t.TempDir(), "edge.db")
	trainJSON(t, table, "-c", harness.TableConfig(t, table, ""), "-o", db, "--passes", "1")
	store, err := persist.OpenReadOnly(db, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	state, _, err := store.State("m", false)
	if err = errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(db)
	at := bytes.Index(file, state)
	if err != nil || at < 0 {
		t.Fatalf("the state is not found in the file: %v", err)
	}
	file[at] ^= 1
	damaged := files.Write(t, "damaged.db", string(file))
	if code, out, errOut := edge(t, "verify", damaged); code != exit.Store || !strings.Contains(out, "lost: the learnt state, 0 samples") || !strings.Contains(errOut, "edge restore") {
		t.Errorf("verify exits with %d:\n%s%s", code, out, errOut)
	}
	if code, out, _ := edge(t, "verify", damaged, "--json"); code != exit.Store || !gjson.Get(out, "models.0.state_lost").Bool() {
		t.Errorf("verify exits with %d: %s", code, out)
	}
	if code, out, errOut := edge(t, "reset", "--state", db, "--all", "--yes"); code != exit.OK || out != "model m has forgotten 120 samples\n" {
		t.Errorf("reset exits with %d: %s%s", code, errOut, out)
	}
}
