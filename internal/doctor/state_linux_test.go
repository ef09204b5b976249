package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"edge/internal/config"
	"edge/internal/doctor/diagnosis"
	"edge/persist"
)

// asAnother runs f as a user to whom root's files are those of another user.
func asAnother(t *testing.T, f func()) {
	t.Helper()
	const another, same = 4711, ^uintptr(0)
	if os.Geteuid() == 0 {
		runtime.LockOSThread() // the thread ends with the test: it must not run another one as that user
		if _, _, err := syscall.RawSyscall(syscall.SYS_SETRESUID, another, another, same); err != 0 {
			t.Fatal(err)
		}
		defer syscall.RawSyscall(syscall.SYS_SETRESUID, 0, 0, same)
	}
	f()
}

// A state file that this user may not read, or not write, says nothing of whether the daemon would
// start; nor does a folder that this user may not write.
func TestStateOfAnotherUser(t *testing.T) {
	for name, tc := range map[string]struct {
		file, folder  os.FileMode
		warning, fail string
	}{
		"not read":          {0, 0o755, "open PATH to read: open PATH: permission denied", "fail state: this user cannot use it: persist: open PATH to read:"},
		"not written":       {0o444, 0o755, "write to PATH: permission denied", "fail state: this user cannot use it: write to PATH: permission denied"},
		"not written there": {0o666, 0o555, "write to FOLDER: permission denied", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config.Default()
			cfg.HTTP.Listen = ""
			folder := t.TempDir()
			cfg.Store.Path = filepath.Join(folder, "edge.db")
			store, err := persist.Open(cfg.Store.Path, persist.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(store.Close(), os.Chmod(cfg.Store.Path, tc.file), os.Chmod(folder, tc.folder), os.Chmod(filepath.Dir(folder), 0o755)); err != nil {
				t.Fatal(err)
			}
			d := diagnosis.New()
			var warnings []string
			asAnother(t, func() {
				warnings, err = CheckFiles(&cfg)
				examineState(d, &cfg)
			})
			of := strings.NewReplacer("PATH", cfg.Store.Path, "FOLDER", folder)
			if want := of.Replace(tc.warning); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], want) {
				t.Errorf("warnings %q, error %v, want one with %q", warnings, err, want)
			}
			if tc.fail != "" {
				expect(t, d, of.Replace(tc.fail))
			} else if d.Grade == diagnosis.Fail {
				t.Errorf("findings\n%s", d)
			}
			if err := os.Chmod(folder, 0o755); err != nil { // for the test to remove it
				t.Fatal(err)
			}
		})
	}
}
