package daemon

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

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
