//go:build unix

package persist

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"edge/online"
)

// TestReplaced renames another file to the path at each step of a history: the store
// does not change it, commits no more, and keeps its own file beside it.
func TestReplaced(t *testing.T) {
	backup, old := otherStore(t, 3)
	for n, hit := 1, true; hit; n++ {
		if hit = replacedAtStep(t, backup, old, n); t.Failed() {
			t.Fatalf("at step %d", n)
		}
		if !hit && n < 15 {
			t.Errorf("only %d steps", n)
		}
	}
}

// A disk that was away is back as another device: the file at the path has all commits, and the open one
// cannot be read, so that it cannot be kept.
func TestReplacedByItself(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	tr := newTruths(t, s, "m")[0]
	commitSome(t, s, tr, 5)
	writeFile(t, path+".again", readFile(t, path))
	if err := errors.Join(os.Rename(path+".again", path), s.file.Close()); err != nil {
		t.Fatal(err)
	}
	if err := s.checkUnchanged(); !errors.Is(err, ErrReplaced) || !strings.Contains(err.Error(), "only what it lacks is lost") {
		t.Error(err)
	}
	_ = s.Close()
	s.db = nil
	tr.check(t, newStore(t, path, Options{}))
}

// otherStore returns a state file with n records of another history.
func otherStore(t *testing.T, n int) ([]byte, *truth) {
	t.Helper()
	path := tempPath(t)
	s := newStore(t, path, Options{})
	tr := newTruths(t, s, "m")[0]
	for i := range n {
		c := &online.Commit{Records: []online.Record{sample("m", uint64(1000+7*i))}}
		if err := s.Commit(c); err != nil {
			t.Fatal(err)
		}
		tr.commit(c)
	}
	closeStore(t, s)
	return readFile(t, path), tr
}

func replacedAtStep(t *testing.T, backup []byte, old *truth, n int) (reached bool) {
	path, steps, hit := tempPath(t), -1000, false // counts below 0 until the file is open
	s := newStore(t, path, atStep(t, &steps, n, func() {
		writeFile(t, path+".copy", backup)
		if err := os.Rename(path+".copy", path); err != nil {
			t.Fatal(err)
		}
		hit = true
	}))
	tr := newTruths(t, s, "m")[0]
	steps = 0
	var err error
	for i := uint64(0); i < 8 && err == nil; i++ {
		c := &online.Commit{Records: []online.Record{sample("m", i+1)}}
		if err = s.Commit(c); err == nil {
			tr.commit(c)
		}
		if i%4 == 3 && err == nil {
			if err = s.Checkpoint("m", tr.last(), []byte("state")); err == nil {
				tr.seq, tr.state = tr.last(), []byte("state")
			}
		}
	}
	if !hit {
		closeStore(t, s)
		return steps >= n
	}
	if !errors.Is(err, ErrReplaced) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "edge restore") {
		t.Fatalf("%v, want %v, the path and the way out", err, ErrReplaced)
	}
	if err := s.Commit(&online.Commit{Records: []online.Record{sample("m", 77)}}); !errors.Is(err, ErrReplaced) {
		t.Errorf("Commit afterwards: %v, want %v", err, ErrReplaced)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	s.db = nil // closed already
	if !bytes.Equal(readFile(t, path), backup) {
		t.Error("the store wrote to the file that replaced its own")
	}
	kept := newStore(t, path+".replaced-1", Options{Dedupe: 20})
	r, err := kept.Load("m", testShape)
	if err != nil {
		t.Fatal(err)
	}
	// One more transaction may have ended before the store detected the replacement.
	if last := r.Seq + uint64(len(r.Records)); last < tr.last() || last > tr.last()+1 {
		t.Errorf("the kept file has %d records, %d were committed", last, tr.last())
	}
	for i, rec := range r.Records {
		if want := sample("m", r.Seq+uint64(i)+1); rec.Key != want.Key || rec.Label != want.Label {
			t.Errorf("the kept file has record %d = %+v", rec.Seq, rec)
		}
	}
	s = newStore(t, path, Options{})
	old.check(t, s)
	return true
}

// TestWrittenOver writes over the file in place: with an older copy, with a state file
// of as many transactions, with other bytes, or with fewer.
func TestWrittenOver(t *testing.T) {
	for name, tc := range map[string]struct {
		with func(t *testing.T, path string) []byte
		want error
	}{
		"an older copy":    {func(_ *testing.T, path string) []byte { return readFile(t, path+".older") }, ErrReplaced},
		"as many commits":  {func(t *testing.T, _ string) []byte { other, _ := otherStore(t, 10); return other }, ErrReplaced},
		"zeros":            {func(_ *testing.T, path string) []byte { return make([]byte, len(readFile(t, path))) }, ErrDamaged},
		"nothing":          {func(*testing.T, string) []byte { return nil }, ErrDamaged},
		"its first half":   {func(_ *testing.T, path string) []byte { b := readFile(t, path); return b[:len(b)/2] }, ErrDamaged},
		"one byte further": {func(_ *testing.T, path string) []byte { return append([]byte{0}, readFile(t, path)...) }, ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			path := tempPath(t)
			s := newStore(t, path, Options{})
			tr := newTruths(t, s, "m")[0]
			for i := range uint64(10) {
				c := &online.Commit{Records: []online.Record{sample("m", i+1)}}
				if err := s.Commit(c); err != nil {
					t.Fatal(err)
				}
				tr.commit(c)
				if i == 5 {
					writeFile(t, path+".older", readFile(t, path))
				}
			}
			written := tc.with(t, path)
			writeFile(t, path, written) // keeps the inode
			for range 2 {
				err := s.Commit(&online.Commit{Records: []online.Record{sample("m", 11)}})
				if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), "start") {
					t.Fatalf("Commit: %v, want %v and the way out", err, tc.want)
				}
			}
			if _, err := s.Stats(); !errors.Is(err, tc.want) {
				t.Errorf("Stats: %v, want %v", err, tc.want)
			}
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			s.db = nil // closed already
			if !bytes.Equal(readFile(t, path), written) {
				t.Error("the store changed the other program's file")
			}
		})
	}
}

// TestFileAppears creates a file at the path while the store writes a missing file
// anew: the store must not overwrite it.
func TestFileAppears(t *testing.T) {
	path, foreign := tempPath(t), []byte("not yours")
	armed := false
	s := newStore(t, path, Options{Fault: func(step string) error {
		if armed && step == "rename" {
			writeFile(t, path, foreign)
		}
		return nil
	}})
	tr := newTruths(t, s, "m")[0]
	commitSome(t, s, tr, 5)
	armed = true
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first attempt detects the new file at its rename
		if err := s.Commit(&online.Commit{}); err == nil {
			t.Fatal("Commit succeeded, want an error")
		}
	}
	if err := s.Commit(&online.Commit{}); !errors.Is(err, ErrReplaced) {
		t.Errorf("Commit: %v, want %v", err, ErrReplaced)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	s.db = nil // closed already
	if got := readFile(t, path); !bytes.Equal(got, foreign) {
		t.Errorf("the file that appeared was replaced by %d bytes", len(got))
	}
	left, err := filepath.Glob(path + "*")
	if want := []string{path, path + ".replaced-1"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("files: %v, %v; want %v", left, err, want)
	}
	s = newStore(t, path+".replaced-1", Options{})
	tr.check(t, s)
}

// TestWrittenOverWithinATransaction writes over the file while bbolt reads it: the
// error must name the other program's write, not bbolt's panic.
func TestWrittenOverWithinATransaction(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	tr := newTruths(t, s, "m")[0]
	older, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	commitSome(t, s, tr, 20)
	over := s.update(func(*bbolt.Tx) error {
		if err := os.WriteFile(path, older, 0o600); err != nil {
			t.Error(err)
		}
		panic("misplaced bucket header")
	})
	for _, err := range []error{over, s.Commit(&online.Commit{Records: []online.Record{sample("m", 21)}})} {
		if !errors.Is(err, ErrReplaced) || !strings.Contains(err.Error(), "another program wrote over "+path) {
			t.Errorf("%v, want %v", err, ErrReplaced)
		}
	}
	s.db = nil // bbolt is not called again
}
