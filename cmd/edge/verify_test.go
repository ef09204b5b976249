package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/exit"
	"edge/online"
	"edge/persist"
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
	if code != exit.Store || !strings.Contains(errOut, "is damaged") {
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
	if code, _, errOut := edge(t, "verify", fmt.Sprint(path, ".none")); code != exit.Store || !strings.Contains(errOut, "no such file") {
		t.Errorf("verify of no file exits with %d: %s", code, errOut)
	}
}
