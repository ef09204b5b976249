package daemon

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"edge/internal/config"
	"edge/online"
	"edge/persist"
)

// The node learns that the store is at its limit, and drops pending samples, only once
// checkpoints make no more room.
func TestFullStoreWaitsForCheckpoints(t *testing.T) {
	store, err := persist.Open(filepath.Join(t.TempDir(), "edge.db"), persist.Options{MaxSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Load("m", "shape"); err != nil {
		t.Fatal(err)
	}
	done, asked := false, 0
	j := journal{Store: store, onCommit: func(time.Duration) {}, onFull: func() bool { asked++; return done }}
	fill := func() (err error) {
		for key := uint64(1); err == nil && key < 10_000; key++ {
			err = j.Commit(&online.Commit{Wait: []online.Pending{{Model: "m", Key: key, X: make([]float64, 1000)}}})
		}
		return err
	}
	for _, done = range []bool{false, true} {
		if err := fill(); err == nil || errors.Is(err, online.ErrLimit) != done {
			t.Errorf("checkpoints done %t: %v", done, err)
		}
	}
	if asked != 2 {
		t.Errorf("checkpoints were asked for %d times, want 2", asked)
	}
}

// The names of models that a configuration may have are those that the state file takes.
func TestLongNameOfModel(t *testing.T) {
	cfg := recoverable(t, "mqtt://127.0.0.1:1")
	store, err := persist.Open(cfg.Store.Path, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for n, valid := range map[int]bool{64: true, 65: false} {
		name := strings.Repeat("m", n)
		cfg.Models = map[string]config.Model{name: cfg.Models["m"]}
		_, refused := store.Load(name, "")
		if err := cfg.Validate(); (err == nil) != valid || (refused == nil) != valid {
			t.Errorf("%d bytes: the configuration has %v, the state file %v", n, err, refused)
		}
		cfg.Models["m"] = cfg.Models[name]
	}
}
