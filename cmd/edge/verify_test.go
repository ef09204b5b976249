package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"edge/internal/broker/brokertest"
	"edge/internal/exit"
	"edge/internal/inspect"
	"edge/online"
	"edge/persist"
)

// verified runs the command on a state file.
func verified(t *testing.T, path string) (code int, r inspect.Verification) {
	t.Helper()
	code, out, errOut := edge(t, "verify", path, "--json")
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("verify prints %q, %q: %v", out, errOut, err)
	}
	if (code == exit.OK) != r.Sound || code != exit.OK && (code != exit.Store || !strings.Contains(errOut, "edge run carries over")) {
		t.Errorf("verify exits with %d, says %q and prints %s", code, errOut, out)
	}
	return code, r
}

// TestVerify: a daemon's file is sound while it runs and after it was killed;
// with any page zeroed, overwritten or cut off, verify finds what the next start
// then repairs, and foretells what that loses.
func TestVerify(t *testing.T) {
	data := waveformFile(t, 400)
	b := brokertest.New(t, brokertest.Embedded)
	config, store := waveformConfig(t, b.URL())
	d := startDaemon(t, config)
	d.await("connected to the broker")
	replayed(t, data, "--broker", b.URL())()
	awaitSamples(t, b, 400)
	if code, r := verified(t, store); code != exit.OK || !r.InUse || r.Models[0].JournalLast < 400 {
		t.Errorf("beside the daemon, verify exits with %d: %+v", code, r)
	}
	d.kill()
	if code, r := verified(t, store); code != exit.OK || r.InUse || len(r.Models) != 1 || len(r.Models[0].Checkpoints) != 2 {
		t.Fatalf("after a kill, verify exits with %d: %+v", code, r)
	}
	if code, out, _ := edge(t, "verify", store); code != exit.OK || !strings.Contains(out, "sound") || !strings.Contains(out, "model waveform: checkpoints at") {
		t.Errorf("verify exits with %d and prints %q", code, out)
	}

	sound, err := os.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	damaged, lost, step := 0, uint64(0), brokertest.Brief(1, 8)
	for n := 0; n < len(sound)/page; n += step {
		for name, damage := range map[string]func([]byte) []byte{
			"zeroed":      func(f []byte) []byte { clear(f[n*page : (n+1)*page]); return f },
			"overwritten": func(f []byte) []byte { copy(f[n*page:(n+1)*page], strings.Repeat("edge", page/4)); return f },
			"cut":         func(f []byte) []byte { return f[:n*page+n%2*page/2] },
		} {
			path := filepath.Join(t.TempDir(), "edge.db")
			if err := os.WriteFile(path, damage(slices.Clone(sound)), 0o600); err != nil {
				t.Fatal(err)
			}
			code, r := verified(t, path)
			s, err := persist.Open(path, persist.Options{})
			if err != nil {
				t.Fatal(err)
			}
			recovery := s.Recovery()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if (code == exit.OK) != (recovery == nil) {
				t.Errorf("page %d %s: verify exits with %d and finds %q, the start repairs %+v", n, name, code, r.Problems, recovery)
			}
			if recovery == nil {
				continue
			}
			damaged++
			foretold := map[string]persist.Loss{}
			for _, m := range r.Models {
				lost += m.SamplesLost
				foretold[m.Model] = persist.Loss{Samples: m.SamplesLost, Pending: m.PendingLost, Notes: m.Notes}
			}
			if diff := cmp.Diff(recovery.Models, foretold); diff != "" {
				t.Errorf("page %d %s: −repaired +foretold:\n%s", n, name, diff)
			}
		}
	}
	if damaged == 0 || lost == 0 && step == 1 { // a few pages need not be ones that samples are lost with
		t.Errorf("%d damaged files, %d samples lost: the damage does not bite", damaged, lost)
	}
}

// TestVerifyState: a state whose seal is right, but which no learner can carry on from.
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
			t.Errorf("verify does not say %q:\n%s", want, out)
		}
	}
	if code, _, errOut := edge(t, "verify", fmt.Sprint(path, ".none")); code != exit.Store || !strings.Contains(errOut, "no such file") {
		t.Errorf("verify of no file exits with %d: %s", code, errOut)
	}
}
