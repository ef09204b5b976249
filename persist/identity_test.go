//go:build unix

package persist

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"edge/online"
)

// losses are ways to take a state file away from under a store.
var losses = map[string]func(path string) error{
	"removed": os.Remove,
	"moved":   func(path string) error { return os.Rename(path, path+".moved") },
	"moved to another folder": func(path string) error {
		folder := filepath.Join(filepath.Dir(path), "folder")
		return errors.Join(os.MkdirAll(folder, 0o700), os.Rename(path, filepath.Join(folder, "edge.db")))
	},
}

// atStep calls do at the n-th step of a store's work, and counts the steps.
func atStep(t *testing.T, steps *int, n int, do func()) Options {
	return Options{Dedupe: 20, Fault: func(string) error {
		if *steps++; *steps == n {
			do()
		}
		return nil
	}}
}

// TestMissing: the state file is taken away before and at each step of a
// history: before what a transaction writes, after its commit, while the file
// that is to replace the missing one is written. The call that meets it may
// fail; what succeeds is at the path, once.
func TestMissing(t *testing.T) {
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			for n, hit := 1, true; hit; n++ {
				if hit = missingAtStep(t, lose, n, n%2 == 0); t.Failed() {
					t.Fatalf("at step %d", n)
				}
				if !hit && n < 15 {
					t.Errorf("only %d steps", n)
				}
			}
		})
	}
}

// missingAtStep loses the file at step n of a history, if it has as many; twice:
// again while it is written anew.
func missingAtStep(t *testing.T, lose func(string) error, n int, twice bool) (reached bool) {
	path, steps, hit := tempPath(t), -1000, false // until it is opened
	taken := func() {
		if err := lose(path); err == nil {
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
		c := &online.Commit{Records: []online.Record{sample("m", i+1)}, Wait: []online.Pending{waitingSample("m", i)}}
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
	for tries := 0; tries < 3; tries++ { // of nothing: reports what a checkpoint has met
		if s.Commit(&online.Commit{}) != nil {
			reported++
		}
	}
	tr.check(t, s)
	closeStore(t, s)
	s = newStore(t, path, Options{Dedupe: 20})
	tr.check(t, s)
	if hit && reported == 0 {
		t.Error("no Commit has reported that the file was missing")
	}
	return steps >= n
}

// TestMissingIdle: a commit of nothing finds that the file is missing, writes it
// anew and reports that once; the look at the figures only reports it.
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
			t.Errorf("Commit %d of nothing: %v, want %v", i, err, want)
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

// TestMissingAtClose: a file that is taken away just before the end is there
// after it; where it cannot be, Close says so.
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

// TestMissingFolder: without the folder, or with another file system in its
// place, nothing is committed and nothing is written; with it the store goes on.
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
		"not mounted": func(s *Store) (func() error, error) { // as another device number looks
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
					t.Fatalf("%v was written where the file was not before", there)
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

// TestMovedFileIsLocked: as long as the state is not written anew, a second store
// cannot open the file under its new name.
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

// TestLinkedPath: where the path is a symbolic link, a new file is written to
// where it leads; a link that is gone, or leads elsewhere, is not repaired.
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
	relink("real.db") // which is not there yet
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

// TestReplaced: another file takes the place of the state file before and at
// each step of a history. It stays as it is, nothing is committed any more, and
// what was is kept beside it.
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
	path, steps, hit := tempPath(t), -1000, false // until it is opened
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
		t.Fatalf("%v, want %v, the path and what to do", err, ErrReplaced)
	}
	if err := s.Commit(&online.Commit{Records: []online.Record{sample("m", 77)}}); !errors.Is(err, ErrReplaced) {
		t.Errorf("Commit afterwards: %v, want %v", err, ErrReplaced)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	s.db = nil // closed already
	if !bytes.Equal(readFile(t, path), backup) {
		t.Error("the file that is there now was written to")
	}
	kept := newStore(t, path+".replaced-1", Options{Dedupe: 20})
	r, err := kept.Load("m", testShape)
	if err != nil {
		t.Fatal(err)
	}
	// A transaction may have ended before it was seen that nothing may be promised.
	if last := r.Seq + uint64(len(r.Records)); last < tr.last() || last > tr.last()+1 {
		t.Errorf("%d records are kept, %d were committed", last, tr.last())
	}
	for i, rec := range r.Records {
		if want := sample("m", r.Seq+uint64(i)+1); rec.Key != want.Key || rec.Label != want.Label {
			t.Errorf("record %d is kept as %+v", rec.Seq, rec)
		}
	}
	s = newStore(t, path, Options{})
	old.check(t, s)
	return true
}

// TestWrittenOver: another program writes over the file in place, with an older
// copy, with a state file of as many transactions, or cuts it off.
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
			writeFile(t, path, written) // the same inode
			for range 2 {
				err := s.Commit(&online.Commit{Records: []online.Record{sample("m", 11)}})
				if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), "start") {
					t.Fatalf("Commit: %v, want %v and what to do", err, tc.want)
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
				t.Error("what the other program wrote was changed")
			}
		})
	}
}

// TestFileAppears: a file that appears at the path while the missing one is
// written anew is not overwritten.
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
	for range 2 { // the first attempt sees a file that was not there before
		if err := s.Commit(&online.Commit{}); err == nil {
			t.Fatal("Commit succeeds")
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
		t.Errorf("left: %v, %v; want %v", left, err, want)
	}
	s = newStore(t, path+".replaced-1", Options{})
	tr.check(t, s)
}

// BenchmarkCheck is what each transaction pays twice.
func BenchmarkCheck(b *testing.B) {
	s, _ := benchStore(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.check(uint32(s.identity.meta.txid)); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleStore_Commit_missing() {
	dir, _ := os.MkdirTemp("", "edge")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "edge.db")
	store, err := Open(path, Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	_ = os.Remove(path)
	fmt.Println("missing:", errors.Is(store.Commit(&online.Commit{}), ErrMissing))
	fmt.Println("again:", store.Commit(&online.Commit{}))
	_, err = os.Stat(path)
	fmt.Println("there:", err)
	// Output:
	// missing: true
	// again: <nil>
	// there: <nil>
}

// TestWrittenOverWithinATransaction: where another program writes over the file
// while bbolt reads it, the error says so instead of what bbolt stumbled upon.
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
