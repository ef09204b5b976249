package persist

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"edge/online"
)

// TestBackup: a copy made while a store writes holds all that was committed
// before, and a restore brings that back, also over a damaged file.
func TestBackup(t *testing.T) {
	path, copied := tempPath(t), tempPath(t)
	s := newStore(t, path, Options{})
	tr := newTruths(t, s, "m")[0]
	commitSome(t, s, tr, 20)
	if _, err := Backup(path, copied); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy: %v, %v; want it readable by its owner alone", info.Mode(), err)
	}
	then := *tr
	then.pending = slices.Clone(tr.pending)
	commitSome(t, s, tr, 5)
	if _, err := Restore(copied, path); !errors.Is(err, ErrLocked) {
		t.Errorf("Restore under a running daemon: %v, want %v", err, ErrLocked)
	}
	closeStore(t, s)
	before := readFile(t, path)
	before[len(before)/2] ^= 0xff
	writeFile(t, path, before)
	aside, err := Restore(copied, path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(readFile(t, aside), before) {
		t.Errorf("%s is not what was there", aside)
	}
	s = newStore(t, path, Options{})
	if s.Recovery() != nil {
		t.Errorf("what was restored is damaged: %+v", s.Recovery())
	}
	then.check(t, s)
	closeStore(t, s)
	names, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"+temporary))
	if diff := cmp.Diff([]string(nil), names); err != nil || diff != "" {
		t.Errorf("temporary files are left: %v\n%s", err, diff)
	}
}

func TestBackupRefuses(t *testing.T) {
	path, damaged, foreign := tempPath(t), tempPath(t), tempPath(t)
	s := newStore(t, path, Options{})
	commitSome(t, s, newTruths(t, s, "m")[0], 10)
	closeStore(t, s)
	b := readFile(t, path)
	for i := 3 * pageSize; i < len(b); i += pageSize {
		b[i+40] ^= 0xff
	}
	writeFile(t, damaged, b)
	writeFile(t, foreign, bytes.Repeat([]byte("foreign "), 2*pageSize))
	for name, tc := range map[string]struct {
		do   func(from, to string) error
		from string
		want error
	}{
		"back up what is damaged": {backUp, damaged, ErrDamaged},
		"back up what is foreign": {backUp, foreign, ErrForeign},
		"back up nothing":         {backUp, tempPath(t), fs.ErrNotExist},
		"restore what is damaged": {putOver(path), damaged, ErrDamaged},
		"restore what is foreign": {putOver(path), foreign, ErrForeign},
		"restore nothing":         {putOver(path), tempPath(t), fs.ErrNotExist},
	} {
		to := tempPath(t)
		if err := tc.do(tc.from, to); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		left, _ := os.ReadDir(filepath.Dir(to))
		if len(left) > 0 {
			t.Errorf("%s leaves %v", name, left)
		}
	}
	if _, err := Backup(path, foreign); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Backup over another file: %v, want %v", err, fs.ErrExist)
	}
	if v, err := Verify(path, nil); err != nil || len(v.Problems) > 0 {
		t.Errorf("refused restores have changed the state file: %v, %v", v.Problems, err)
	}
}

func backUp(from, to string) error {
	_, err := Backup(from, to)
	return err
}

func putOver(path string) func(from, to string) error {
	return func(from, _ string) error {
		_, err := Restore(from, path)
		return err
	}
}

func commitSome(t *testing.T, s *Store, tr *truth, n int) {
	t.Helper()
	for range n {
		next := tr.last() + 1
		c := &online.Commit{Records: []online.Record{sample(tr.name, next)}, Wait: []online.Pending{waitingSample(tr.name, next)}}
		if err := s.Commit(c); err != nil {
			t.Fatal(err)
		}
		tr.commit(c)
	}
}
