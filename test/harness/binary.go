package harness

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"edge/internal/broker/brokertest"
)

// Emulator is the command, from EDGE_EMULATOR, under which programs of this
// architecture run on a machine of another one, such as "qemu-aarch64-static". It
// is empty where the kernel runs them itself.
var Emulator = strings.Fields(os.Getenv("EDGE_EMULATOR"))

// Main runs the tests of a package and fails if a goroutine is left. It scales
// brokertest.Patience with the flag -timeout.
func Main(m *testing.M) {
	flag.Parse()
	brokertest.Patience = max(brokertest.Patience, timeout()/5)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(folder()); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	}))
}

// timeout returns the value of the flag -timeout.
func timeout() time.Duration {
	limit, err := time.ParseDuration(flag.Lookup("test.timeout").Value.String())
	if err != nil {
		return 0
	}
	return limit
}

var started = time.Now()

// deadline returns the time by which a command must have exited: just before -timeout
// ends the tests, so that no machine is too slow.
func deadline() time.Time {
	if timeout() == 0 {
		return started.AddDate(1, 0, 0)
	}
	return started.Add(timeout() * 19 / 20)
}

// folder holds the program that was built for this package of tests.
var folder = sync.OnceValue(func() string {
	path, err := os.MkdirTemp("", "edge-test")
	if err != nil {
		panic(err)
	}
	return path
})

// program is the path of edge. `go run` keeps linked programs in Go's cache, which
// `go build` does not: several packages of tests share one link.
var program = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("EDGE_BINARY"); path != "" {
		return filepath.Abs(path)
	}
	path := filepath.Join(folder(), "edge")
	args := []string{"run", "-buildvcs=false", "-exec", `sh -c 'cp "$0" "$EDGE_BUILT"'`}
	if RaceDetector {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "edge/cmd/edge")...)
	cmd.Env = append(os.Environ(), "EDGE_BUILT="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build edge: %w: %s", err, out)
	}
	return path, nil
})

// Program returns the path of the edge under test. It skips the test where there
// is no Go toolchain to build one.
func Program(t testing.TB) string {
	t.Helper()
	path, err := program()
	if errors.Is(err, exec.ErrNotFound) {
		brokertest.Missing(t, "go is not installed, and EDGE_BINARY names no program: "+err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Command returns a command that runs edge with args.
func Command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	line := slices.Concat(Emulator, []string{Program(t)}, args)
	return exec.Command(line[0], line[1:]...)
}

// Run runs edge with args until it exits. The test fails where it does not exit
// before the deadline of the tests.
func Run(t testing.TB, args ...string) (code int, out, errOut string) {
	t.Helper()
	return RunWith(t, "", args...)
}

// RunWith is Run with a standard input.
func RunWith(t testing.TB, in string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	cmd := Command(t, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &o, &e
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Until(deadline()), func() { cmd.Process.Kill() })
	err := cmd.Wait()
	if !late.Stop() {
		t.Fatalf("edge %s does not exit: %s%s", strings.Join(args, " "), &o, &e)
	}
	if status := (*exec.ExitError)(nil); err != nil && !errors.As(err, &status) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// Number returns the integer in an environment variable, or otherwise if that is
// not set.
func Number(t testing.TB, variable string, otherwise uint64) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(cmp.Or(os.Getenv(variable), strconv.FormatUint(otherwise, 10)), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}
