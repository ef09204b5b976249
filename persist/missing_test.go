//go:build unix

package persist

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/online"
)

// removals are ways to remove a state file that a store has open.
var removals = map[string]func(path string) error{
	"removed": os.Remove,
	"moved":   func(path string) error { return os.Rename(path, path+".moved") },
	"moved to another folder": func(path string) error {
		folder := filepath.Join(filepath.Dir(path), "folder")
		return errors.Join(os.MkdirAll(folder, 0o700), os.Rename(path, filepath.Join(folder, "edge.db")))
	},
}

// atStep returns options that count a store's steps and call do at the n-th.
func atStep(t *testing.T, steps *int, n int, do func()) Options {
	return Options{Dedupe: 20, Fault: func(string) error {
		if *steps++; *steps == n {
			do()
		}
		return nil
	}}
}

// TestMissing removes the state file at each step of a history: before a transaction
// writes, after its commit, while the store writes the missing file anew. The call at
// that step may fail; every successful commit must be in the file at the path, once.
func TestMissing(t *testing.T) {
	for name, remove := range removals {
		t.Run(name, func(t *testing.T) {
			for n, hit := 1, true; hit; n++ {
				if hit = missingAtStep(t, remove, n, n%2 == 0); t.Failed() {
					t.Fatalf("at step %d", n)
				}
				if !hit && n < 15 {
					t.Errorf("only %d steps", n)
				}
			}
		})
	}
}

// missingAtStep removes the file at step n of a history, and if twice is true again
// while the store writes it anew. It reports whether the history has n steps.
func missingAtStep(t *testing.T, remove func(string) error, n int, twice bool) (reached bool) {
	path, steps, hit := tempPath(t), -1000, false // counts below 0 until the file is open
	taken := func() {
		if err := remove(path); err == nil {
			hit = true
		} else if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	opts := atStep(t, &steps, n, taken)
	if inner := opts.Fault; twice {
		opts.Fault = func(step string) error {
			if hit && step == "rename" {
				twice = false
				taken()
			}
			return inner(step)
		}
	}
	s := newStore(t, path, opts)
	tr := newTruths(t, s, "m")[0]
	steps = 0
	reported := 0
	for i := range uint64(6) {
		c := &online.Commit{Records: []online.Record{sample("m", i+1)}, Wait: []online.Pending{pendingSample("m", i)}}
		err := s.Commit(c)
		for tries := 0; err != nil && tries < 4; tries++ {
			if reported++; !errors.Is(err, ErrMissing) || c.Records[0].Seq != 0 {
				t.Fatalf("Commit: %v, seq %d; want %v", err, c.Records[0].Seq, ErrMissing)
			}
			err = s.Commit(c)
		}
		if err != nil {
			t.Fatal(err)
		}
		tr.commit(c)
		if i%3 == 2 {
			state := stateOf(i, 3000)
			err := s.Checkpoint("m", tr.last(), state)
			if errors.Is(err, ErrMissing) {
				err = s.Checkpoint("m", tr.last(), state)
			}
			if err != nil {
				t.Fatal(err)
			}
			tr.seq, tr.state = tr.last(), state
		}
	}
	for tries := 0; tries < 3; tries++ { // an empty commit reports a loss that a checkpoint has found
		if s.Commit(&online.Commit{}) != nil {
			reported++
		}
	}
	tr.check(t, s)
	closeStore(t, s)
	s = newStore(t, path, Options{Dedupe: 20})
	tr.check(t, s)
	if hit && reported == 0 {
		t.Error("no Commit reported the missing file")
	}
	return steps >= n
}

// TestMissingIdle removes the file of an idle store: an empty commit writes it anew and
// reports the loss once; Stats only reports it.
func TestMissingIdle(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	tr := newTruths(t, s, "m")[0]
	commitSome(t, s, tr, 20)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stats(); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), path) {
		t.Errorf("Stats: %v, want %v and the path", err, ErrMissing)
	}
	for i, want := range []error{ErrMissing, nil, nil} {
		if err := s.Commit(&online.Commit{}); !errors.Is(err, want) {
			t.Errorf("empty commit %d: %v, want %v", i, err, want)
		}
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Stats(); err != nil {
		t.Errorf("Stats: %v", err)
	}
	tr.check(t, s)
}

// TestMissingAtClose removes the file just before Close, which writes it anew, or
// returns ErrMissing where it cannot.
func TestMissingAtClose(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	tr := newTruths(t, s, "m")[0]
	commitSome(t, s, tr, 20)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = newStore(t, path, Options{})
	tr.check(t, s)
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); !errors.Is(err, ErrMissing) {
		t.Errorf("Close without the folder: %v, want %v", err, ErrMissing)
	}
	s.db = nil // closed already
}

// TestMissingFolder removes the folder, or simulates another file system at its path:
// Commit fails and writes nothing until the folder is back, and succeeds then.
func TestMissingFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "folder")
	path := filepath.Join(folder, "edge.db")
	moved := func(back func() error) func(*Store) (func() error, error) {
		return func(*Store) (func() error, error) { return back, os.Rename(folder, folder+".moved") }
	}
	putBack := func() error { return errors.Join(os.RemoveAll(folder), os.Rename(folder+".moved", folder)) }
	for name, begin := range map[string]func(s *Store) (end func() error, err error){
		"moved":      moved(putBack),
		"made again": moved(func() error { return os.Mkdir(folder, 0o700) }),
		"behind a file": func(*Store) (func() error, error) {
			return putBack, errors.Join(os.Rename(folder, folder+".moved"), os.WriteFile(folder, nil, 0o600))
		},
		"not mounted": func(s *Store) (func() error, error) { // the path then has another device number
			s.identity.folder++
			return func() error { s.identity.folder--; return nil }, os.Remove(path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := errors.Join(os.RemoveAll(folder), os.RemoveAll(folder+".moved"), os.Mkdir(folder, 0o700)); err != nil {
				t.Fatal(err)
			}
			s := newStore(t, path, Options{})
			tr := newTruths(t, s, "m")[0]
			commitSome(t, s, tr, 10)
			end, err := begin(s)
			if err != nil {
				t.Fatal(err)
			}
			c := &online.Commit{Records: []online.Record{sample("m", 11)}}
			for range 3 {
				if err := s.Commit(c); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), path) {
					t.Fatalf("Commit: %v, want %v and the path", err, ErrMissing)
				}
				if there, err := os.Lstat(path); err == nil {
					t.Fatalf("the store wrote %v although the folder was missing", there)
				}
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			if err := s.Commit(c); err != nil {
				t.Fatal(err)
			}
			tr.commit(c)
			tr.check(t, s)
			closeStore(t, s)
			s = newStore(t, path, Options{})
			tr.check(t, s)
			closeStore(t, s)
		})
	}
}

// TestMovedFileIsLocked opens a moved file under its new name, which must fail until
// the first store has written its state anew.
func TestMovedFileIsLocked(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	commitSome(t, s, newTruths(t, s, "m")[0], 5)
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	if second, err := Open(path+".moved", Options{}); !errors.Is(err, ErrLocked) {
		t.Errorf("Open of the moved file: %v, %v; want %v", second, err, ErrLocked)
	}
}

// TestLinkedPath opens a store through a symbolic link: the store creates the file
// that the link names, and does not repair a link that is gone or names another file.
func TestLinkedPath(t *testing.T) {
	folder := t.TempDir()
	link, file := filepath.Join(folder, "link.db"), filepath.Join(folder, "real.db")
	relink := func(to string) {
		t.Helper()
		_ = os.Remove(link)
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	relink("real.db") // does not exist yet
	s := newStore(t, link, Options{})
	tr := newTruths(t, s, "m")[0]
	commitSome(t, s, tr, 5)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{ErrMissing, nil} {
		if err := s.Commit(&online.Commit{}); !errors.Is(err, want) {
			t.Fatalf("Commit %d: %v, want %v", i, err, want)
		}
	}
	for _, path := range []string{file, link} {
		if info, err := os.Lstat(path); err != nil || info.Mode().Type() != map[string]fs.FileMode{file: 0, link: fs.ModeSymlink}[path] {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Commit(&online.Commit{}); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "put the link back") {
			t.Fatalf("Commit without the link: %v, want %v", err, ErrMissing)
		}
	}
	relink(file)
	commitSome(t, s, tr, 5)
	other := newStore(t, filepath.Join(folder, "other.db"), Options{})
	closeStore(t, other)
	relink("other.db")
	if err := s.Commit(&online.Commit{}); !errors.Is(err, ErrReplaced) {
		t.Fatalf("Commit with a link to another file: %v, want %v", err, ErrReplaced)
	}
	closeStore(t, s)
	relink("real.db")
	s = newStore(t, link, Options{})
	tr.check(t, s)
}
