//go:build unix

package persist

import (
	"os"
	"syscall"
	"testing"
)

// A file that root replaces stays with the daemon's user. Other users own what they replace.
func TestReplacementKeepsOwner(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	growAndShrink(t, s, newTruths(t, s, "m")[0])
	closeStore(t, s)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	copied := tempPath(t)
	if _, err := Backup(path, copied); err != nil {
		t.Fatal(err)
	}
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		uid, gid = 4711, 4712
		if err := os.Chown(path, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	for _, replace := range []func() error{
		func() error { closeStore(t, newStore(t, path, Options{})); return nil }, // compacts it
		func() error { _, err := Restore(copied, path); return err },
	} {
		if err := replace(); err != nil {
			t.Fatal(err)
		}
		after, err := os.Stat(path)
		if err != nil || os.SameFile(before, after) {
			t.Fatalf("the file was not replaced: %v", err)
		}
		if is := after.Sys().(*syscall.Stat_t); int(is.Uid) != uid || int(is.Gid) != gid || after.Mode().Perm() != 0o600 {
			t.Errorf("user %d, group %d, mode %v; want %d, %d, 0600", is.Uid, is.Gid, after.Mode(), uid, gid)
		}
		before = after
	}
}
