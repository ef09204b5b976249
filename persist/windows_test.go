package persist

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"edge/online"
)

// TestWindows stores, replaces and removes windows, and reads them after a restart.
func TestWindows(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	newTruths(t, s, "m")
	check := func(want ...online.Windows) {
		t.Helper()
		got, err := s.Windows()
		if diff := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); diff != "" || err != nil {
			t.Errorf("%v, −want +got:\n%s", err, diff)
		}
	}
	commit := func(all ...online.Windows) {
		t.Helper()
		if err := s.Commit(&online.Commit{Windows: all}); err != nil {
			t.Fatal(err)
		}
	}
	check()
	large := []byte(strings.Repeat("rows", 1<<20))
	commit(online.Windows{Stream: "b", State: []byte("old")}, online.Windows{Stream: "a", State: []byte("1")})
	commit(online.Windows{Stream: "b", State: large}, online.Windows{Stream: "none"})
	closeStore(t, s)
	s = newStore(t, path, Options{})
	if s.Recovery() != nil {
		t.Errorf("Open repaired a sound store with windows: %+v", s.Recovery())
	}
	check(online.Windows{Stream: "a", State: []byte("1")}, online.Windows{Stream: "b", State: large})
	if err := s.Commit(&online.Commit{Windows: []online.Windows{{Stream: "a/b", State: []byte("1")}}}); err == nil {
		t.Error("the store accepts a name that is none of a stream")
	}
	commit(online.Windows{Stream: "b"})
	closeStore(t, s)
	s = newStore(t, path, Options{})
	check(online.Windows{Stream: "a", State: []byte("1")})
}

// TestWindowsOutliveAFailedSync rolls back a transaction whose last sync failed: the
// windows of before it remain.
func TestWindowsOutliveAFailedSync(t *testing.T) {
	failing := false
	s := newStore(t, tempPath(t), Options{Fault: func(step string) error {
		if failing && step == "commit" {
			failing = false
			return syscall.EIO
		}
		return nil
	}})
	newTruths(t, s, "m")
	want := []online.Windows{{Stream: "a", State: []byte("rows")}}
	if err := s.Commit(&online.Commit{Windows: want}); err != nil {
		t.Fatal(err)
	}
	failing = true
	if err := s.Commit(&online.Commit{Windows: []online.Windows{{Stream: "a"}}}); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Commit: %v", err)
	}
	got, err := s.Windows()
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, −want +got:\n%s", err, diff)
	}
}
