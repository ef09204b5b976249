package doctor

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"edge/internal/config"
	"edge/persist"
)

// A state file of another user says nothing of whether the daemon would start.
func TestStateOfAnotherUser(t *testing.T) {
	cfg := config.Default()
	cfg.Store.Path = filepath.Join(t.TempDir(), "edge.db")
	store, err := persist.Open(cfg.Store.Path, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(cfg.Store.Path, 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		runtime.LockOSThread() // the thread ends with the test: it must not run another one as that user
		if err := syscall.Setfsuid(4711); err != nil {
			t.Fatal(err)
		}
		defer syscall.Setfsuid(0)
	}
	d := &Diagnosis{}
	examineState(d, &cfg)
	d.expect(t, "fail state: this user cannot read it: persist: open "+cfg.Store.Path+" to read:")
}
