package persist

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"edge/online"
)

func someTaken(sequence uint64) *online.Taken {
	return &online.Taken{Sequence: sequence, Messages: []online.TakenMessage{
		{ID: 65535, Key: 1<<64 - 1, Sequence: sequence}, {ID: 1, Key: 7, Named: true, Sequence: sequence - 1}, {ID: 2, Key: 7},
	}}
}

// TestTaken checks that the list of taken messages is that of the newest commit with
// one, and survives a restart, a compaction and a repair.
func TestTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge.db")
	open := func() *Store {
		t.Helper()
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	if _, err := s.Load("m", "shape"); err != nil {
		t.Fatal(err)
	}
	want := func(s *Store, want *online.Taken) {
		t.Helper()
		got, err := s.Taken()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*want, got); diff != "" {
			t.Error(diff)
		}
	}
	commit := func(c *online.Commit) {
		t.Helper()
		if err := s.Commit(c); err != nil {
			t.Fatal(err)
		}
	}
	want(s, &online.Taken{})
	commit(&online.Commit{Taken: someTaken(3)})
	want(s, someTaken(3))
	record := online.Record{Model: "m", Event: online.Event{Kind: online.Observe, X: []float64{1}, Label: "a"}}
	commit(&online.Commit{Records: []online.Record{record}, Taken: someTaken(4)})
	want(s, someTaken(4))
	commit(&online.Commit{Records: []online.Record{record}})
	want(s, someTaken(4))
	if err := s.rewrite(); err != nil {
		t.Fatal(err)
	}
	want(s, someTaken(4))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	want(s, someTaken(4))
	if s.Recovery() != nil {
		t.Errorf("Open repaired a sound file: %v", s.Recovery().Problems)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Damage one meta page: the repair keeps the list.
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	metas, _, err := readMetas(file, 1<<20)
	if err != nil || len(metas) != 2 {
		t.Fatalf("%d meta pages, %v", len(metas), err)
	}
	older := int64(metas[1].txid % 2)
	if _, err := file.WriteAt([]byte("damage"), older*pageSize+pageHeader); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	if s.Recovery() == nil {
		t.Error("Open did not detect the damage")
	}
	want(s, someTaken(4))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func FuzzDecodeTaken(f *testing.F) {
	f.Add(appendTaken(nil, someTaken(9)))
	f.Add(appendTaken(nil, &online.Taken{}))
	f.Add([]byte{1, 255, 255, 3})
	f.Fuzz(func(t *testing.T, payload []byte) {
		taken, err := decodeTaken(payload)
		if err != nil {
			return
		}
		again, err := decodeTaken(appendTaken(nil, &taken))
		if diff := cmp.Diff(taken, again); err != nil || diff != "" {
			t.Errorf("%v, %s", err, diff)
		}
	})
}
