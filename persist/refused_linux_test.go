package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"edge/online"
)

// asAnother runs f as a user who may write neither the file nor the folder of root.
func asAnother(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() == 0 {
		runtime.LockOSThread() // the thread ends with the test: it must not run another one as that user
		if err := syscall.Setfsuid(4711); err != nil {
			t.Fatal(err)
		}
		defer syscall.Setfsuid(0)
	}
	f()
}

// A state that this user may not write is refused with the remedy: the file of another user, as
// after a run as root by hand, and a new file in a folder of another user.
func TestOpenWithoutPermission(t *testing.T) {
	path := tempPath(t)
	closeStore(t, newStore(t, path, Options{}))
	for _, name := range []string{path, filepath.Join(filepath.Dir(path), "new.db")} {
		if err := errors.Join(os.Chmod(path, 0o400), os.Chmod(filepath.Dir(path), 0o555)); err != nil {
			t.Fatal(err)
		}
		var err error
		asAnother(t, func() { _, err = Open(name, Options{}) })
		want := fmt.Sprintf("permission denied; run this as the owner of the file, or give the file and its folder to the user of this program, %d, by chown", os.Geteuid())
		if !errors.Is(err, fs.ErrPermission) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: error %v, want one that ends with %q", filepath.Base(name), err, want)
		}
	}
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil { // for the test to remove it
		t.Fatal(err)
	}
}

// A state that this user may not look at, as that of a service in its own folder, is refused with who may.
func TestReadWithoutPermission(t *testing.T) {
	path := tempPath(t)
	closeStore(t, newStore(t, path, Options{}))
	folder := filepath.Dir(path)
	if err := os.Chmod(folder, 0); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() error{
		"OpenReadOnly": func() error { _, err := OpenReadOnly(path, Options{}); return err },
		"Verify":       func() error { _, err := Verify(path, nil); return err },
		"Backup":       func() error { _, err := Backup(path, path+".copy"); return err },
	} {
		var err error
		asAnother(t, func() { err = read() })
		if !errors.Is(err, fs.ErrPermission) || !strings.HasSuffix(err.Error(), "permission denied; run this as the owner of the file, or as root") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if err := os.Chmod(folder, 0o755); err != nil { // for the test to remove it
		t.Fatal(err)
	}
}

// A file that this user may write but not change the mode of, as on a share whose files belong to another
// user, is opened with a warning.
func TestOpenWithoutRightToItsMode(t *testing.T) {
	path := tempPath(t)
	closeStore(t, newStore(t, path, Options{}))
	folder := filepath.Dir(path)
	if err := errors.Join(os.Chmod(path, 0o666), os.Chmod(folder, 0o777), os.Chmod(filepath.Dir(folder), 0o755)); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	asAnother(t, func() { newStore(t, path, Options{Log: slog.New(slog.NewTextHandler(&log, nil))}) })
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), path) {
		t.Errorf("no warning contains the path: %q", log.String())
	}
}

// A folder that is missing, or is a file, is named with the remedy.
func TestRemedyOfMissingFolder(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	from := tempPath(t)
	closeStore(t, newStore(t, from, Options{}))
	for name, want := range map[string]error{"none": fs.ErrNotExist, "file": syscall.ENOTDIR} {
		path := filepath.Join(folder, name, "edge.db")
		for what, do := range map[string]func() error{
			"Open":    func() error { _, err := Open(path, Options{}); return err },
			"Backup":  func() error { _, err := Backup(from, path); return err },
			"Restore": func() error { _, err := Restore(from, path); return err },
		} {
			if err := do(); !errors.Is(err, want) || !strings.HasSuffix(err.Error(), "; make the folder, or choose another path") {
				t.Errorf("%s, %s: error %v", what, name, err)
			}
		}
	}
}

// A disk that does not write is named with the remedy: when the file is opened, and when a commit or a
// checkpoint fails.
func TestRemedyOfDisk(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{syscall.EROFS: "mount it writable", syscall.EIO: "see dmesg, and replace it", syscall.EFBIG: "ulimit -f", syscall.EMFILE: "ulimit -n"} {
		if got := Remedy(&fs.PathError{Op: "open", Path: "edge.db", Err: errno}); !strings.Contains(got, want) {
			t.Errorf("remedy %q, want %q", got, want)
		}
		failing := false
		s := newStore(t, tempPath(t), Options{Fault: func(string) error {
			if failing {
				return errno
			}
			return nil
		}})
		newTruths(t, s, "m")
		failing = true
		for _, err := range []error{s.Commit(&online.Commit{Records: []online.Record{sample("m", 1)}}), s.Checkpoint("m", 0, stateOf(1, 100))} {
			if !errors.Is(err, errno) || strings.Count(err.Error(), want) != 1 {
				t.Errorf("error %v, want one with %q", err, want)
			}
		}
		failing = false
	}
}

// An error of a new state file names it as the user knows it, with the remedy: at its creation, and at a
// commit, where the open file still has its temporary name, also if bbolt hides the error in a text.
func TestNewFileIsNamed(t *testing.T) {
	path := tempPath(t)
	temp := path + temporary
	hidden := errors.New("file resize error: truncate " + temp + ": " + syscall.EFBIG.Error())
	for _, failure := range []func() error{
		func() error { return &fs.PathError{Op: "write", Path: temp, Err: syscall.EFBIG} },
		func() error { return hidden },
	} {
		var fault error
		opts := Options{Fault: func(string) error { return fault }}
		check := func(what string, err error) {
			if !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), "ulimit -f") || !strings.Contains(err.Error(), path+": ") || strings.Contains(err.Error(), temp) {
				t.Errorf("%s: error %v, want one of %s", what, err, path)
			}
		}
		fault = failure()
		_, err := Open(path, opts)
		check("Open", err)
		fault = nil
		s := newStore(t, path, opts)
		newTruths(t, s, "m")
		fault = failure()
		check("Commit", s.Commit(&online.Commit{Records: []online.Record{sample("m", 1)}}))
		fault = nil
		closeStore(t, s)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// A restore for which there is no room leaves the files that earlier ones have kept. A process of its
// own has the limit of file sizes: under it go test could not write its list of files.
func TestRestoreWithoutRoom(t *testing.T) {
	const limited = "EDGE_TEST_FILE_LIMIT"
	if os.Getenv(limited) == "" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		line := append(strings.Fields(os.Getenv("EDGE_EMULATOR")), self, "-test.run=^TestRestoreWithoutRoom$", "-test.v")
		cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
		cmd.Env = append(os.Environ(), limited+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestRestoreWithoutRoom") {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	path, copied := tempPath(t), tempPath(t)
	closeStore(t, newStore(t, path, Options{}))
	if _, err := Backup(path, copied); err != nil {
		t.Fatal(err)
	}
	for range keptAside {
		if _, err := Restore(copied, path); err != nil {
			t.Fatal(err)
		}
	}
	files := func() (names []string) {
		entries, err := os.ReadDir(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	before := files()
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var was unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: pageSize, Max: unix.RLIM_INFINITY}, &was); err != nil {
		t.Fatal(err)
	}
	_, err := Restore(copied, path)
	if err := unix.Prlimit(0, unix.RLIMIT_FSIZE, &was, nil); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, syscall.EFBIG) || strings.Contains(err.Error(), temporary) {
		t.Errorf("error %v, want %v of the file as it will be called", err, syscall.EFBIG)
	}
	if after := files(); !slices.Equal(after, before) {
		t.Errorf("the files are %v, were %v", after, before)
	}
}

// The error of a new file has its name as the user knows it, with the folder of a relative path.
func TestOpenNamesTheFileThatCannotBeMade(t *testing.T) {
	folder := filepath.Dir(tempPath(t))
	t.Chdir(folder)
	if err := os.Chmod(folder, 0o555); err != nil {
		t.Fatal(err)
	}
	var err error
	asAnother(t, func() { _, err = Open("edge.db", Options{}) })
	if want := "open " + filepath.Join(folder, "edge.db") + ": permission denied"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
	if err := os.Chmod(folder, 0o755); err != nil { // for the test to remove it
		t.Fatal(err)
	}
}
