package persist

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"edge/online"
)

// TestBackup backs up the file of an open store and restores it over a damaged file:
// the restored store has exactly the records committed before the backup.
func TestBackup(t *testing.T) {
	path, copied := tempPath(t), tempPath(t)
	s := newStore(t, path, Options{})
	tr := newTruths(t, s, "m")[0]
	commitSome(t, s, tr, 20)
	if _, err := Backup(path, copied); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy has mode %v, %v; want 0600", info.Mode(), err)
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
		t.Errorf("%s differs from the replaced file", aside)
	}
	s = newStore(t, path, Options{})
	if s.Recovery() != nil {
		t.Errorf("the restored file is damaged: %+v", s.Recovery())
	}
	then.check(t, s)
	closeStore(t, s)
	names, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"+temporary))
	if diff := cmp.Diff([]string(nil), names); err != nil || diff != "" {
		t.Errorf("temporary files remain: %v\n%s", err, diff)
	}
}

func TestBackupRefuses(t *testing.T) {
	path, damaged, foreign := tempPath(t), tempPath(t), tempPath(t)
	s := newStore(t, path, Options{})
	commitSome(t, s, newTruths(t, s, "m")[0], 10)
	closeStore(t, s)
	b := readFile(t, path)
	for i := 2 * pageSize; i < len(b); i += pageSize {
		b[i+40] ^= 0xff
	}
	writeFile(t, damaged, b)
	writeFile(t, foreign, bytes.Repeat([]byte("foreign "), 2*pageSize))
	for name, tc := range map[string]struct {
		do   func(from, to string) error
		from string
		want error
	}{
		"back up a damaged file": {backUp, damaged, ErrDamaged},
		"back up a foreign file": {backUp, foreign, ErrForeign},
		"back up a missing file": {backUp, tempPath(t), fs.ErrNotExist},
		"restore a damaged file": {putOver(path), damaged, ErrDamaged},
		"restore a foreign file": {putOver(path), foreign, ErrForeign},
		"restore a missing file": {putOver(path), tempPath(t), fs.ErrNotExist},
	} {
		to := tempPath(t)
		if err := tc.do(tc.from, to); !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.from) {
			t.Errorf("%s: %v, want %v of %s", name, err, tc.want, tc.from)
		}
		left, _ := os.ReadDir(filepath.Dir(to))
		if len(left) > 0 {
			t.Errorf("%s leaves %v", name, left)
		}
	}
	if _, err := Backup(path, foreign); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Backup over another file: %v, want %v", err, fs.ErrExist)
	}
	if _, err := Restore(path, path); err == nil || errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "this file itself") {
		t.Errorf("Restore of a file over itself: %v", err)
	}
	if v, err := Verify(path, nil); err != nil || len(v.Problems) > 0 {
		t.Errorf("failed restores changed the state file: %v, %v", v.Problems, err)
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
		c := &online.Commit{Records: []online.Record{sample(tr.name, next)}, Wait: []online.Pending{pendingSample(tr.name, next)}}
		if err := s.Commit(c); err != nil {
			t.Fatal(err)
		}
		tr.commit(c)
	}
}
