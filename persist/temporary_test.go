//go:build unix

package persist

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAppearsAtCreation creates a state file while Open creates its own: Open must open
// the other one and not replace it.
func TestAppearsAtCreation(t *testing.T) {
	path, armed := tempPath(t), true
	other, old := otherStore(t, 3)
	s := newStore(t, path, Options{Fault: func(step string) error {
		if armed && step == "rename" {
			armed = false
			writeFile(t, path, other)
		}
		return nil
	}})
	old.check(t, s)
	one, two := tempPath(t), tempPath(t)
	writeFile(t, one, []byte("one"))
	writeFile(t, two, []byte("two"))
	for name, rename := range map[string]func(from, to string) error{"in one step": renameNew, "in two": renameIfNew} {
		if err := rename(one, two); !errors.Is(err, fs.ErrExist) || string(readFile(t, two)) != "two" {
			t.Errorf("rename to an existing file, %s: %v, want %v", name, err, fs.ErrExist)
		}
	}
}

// TestStaleTemporaries creates the temporary files of killed commands: the next command
// removes those that no process has locked, and no other file.
func TestStaleTemporaries(t *testing.T) {
	from := tempPath(t)
	s := newStore(t, from, Options{})
	commitSome(t, s, newTruths(t, s, "m")[0], 3)
	closeStore(t, s)
	for name, command := range map[string]func(path string) error{
		"backup":  func(path string) error { return backUp(from, path) },
		"restore": func(path string) error { return putOver(path)(from, "") },
		"restore over another": func(path string) error {
			return errors.Join(backUp(from, path), putOver(path)(from, ""))
		},
		"open": func(path string) error {
			s, err := Open(path, Options{})
			return errors.Join(err, s.Close())
		},
		"open an existing file": func(path string) error {
			if err := putOver(path)(from, ""); err != nil {
				return err
			}
			writeFile(t, path+temporary, nil)
			writeFile(t, path+".5.new", nil)
			s, err := Open(path, Options{})
			return errors.Join(err, s.Close())
		},
	} {
		path := tempPath(t)
		stale := []string{".1.new", ".3141592653.new"}
		others := []string{".notes.new", ".1.new.txt", "-1.new", "..new", ".1new"}
		for _, end := range slices.Concat(stale, others) {
			writeFile(t, path+end, []byte("part of a state file"))
		}
		living, err := CreateTemp(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range stale {
			writeFile(t, path+end, []byte("part of a state file"))
		}
		if err := command(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		left, err := filepath.Glob(path + "?*")
		want := []string{living.Name()}
		for _, end := range others {
			want = append(want, path+end)
		}
		left = slices.DeleteFunc(left, func(f string) bool { return strings.Contains(f, ".replaced-") })
		slices.Sort(left)
		slices.Sort(want)
		if err != nil || !slices.Equal(left, want) {
			t.Errorf("%s leaves\n%v, %v, want\n%v", name, left, err, want)
		}
		if err := living.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The error of a folder that is not there names the file that is wanted, not that which would have been renamed to it.
func TestCreateTempNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "absent", "report.html")
	if _, err := CreateTemp(path); err == nil || err.Error() != "open "+path+": no such file or directory" {
		t.Errorf("the error is %v", err)
	}
}

// MakeFolder makes a folder for the owner alone, once.
func TestMakeFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "exports")
	for range 2 {
		if err := MakeFolder(path); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if err := MakeFolder(filepath.Join(path, "a", "b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is not there: %v", err)
	}
}
