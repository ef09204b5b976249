package harness

import (
	"bufio"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
)

// Daemon is `edge run` in a process of its own, which logs as JSON.
type Daemon struct {
	*os.Process
	Ended chan error // receives the result of Wait when the process has ended

	t   testing.TB
	mu  sync.Mutex
	log []string // its lines, JSON objects
}

// Start starts `edge run` with a configuration file. The process is killed at the
// end of the test. A failed test prints the end of its log, and where its goroutines
// are.
func Start(t testing.TB, config string) *Daemon {
	t.Helper()
	return StartWith(t, config, func(*exec.Cmd) {})
}

// StartWith is Start after prepare has changed the command.
func StartWith(t testing.TB, config string, prepare func(*exec.Cmd)) *Daemon {
	t.Helper()
	cmd := Command(t, "run", "-c", config)
	cmd.Env = append(os.Environ(), "EDGE_LOG_FORMAT=json")
	prepare(cmd)
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := &Daemon{Process: cmd.Process, Ended: make(chan error, 1), t: t}
	go func() {
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			d.mu.Lock()
			d.log = append(d.log, lines.Text())
			d.mu.Unlock()
		}
		d.Ended <- cmd.Wait()
	}()
	t.Cleanup(func() {
		if t.Failed() {
			d.explain()
		}
		cmd.Process.Kill()
	})
	return d
}

// explain prints the end of the log. A process that still runs ends, and logs the stacks
// of its goroutines before.
func (d *Daemon) explain() {
	if d.Signal(syscall.SIGQUIT) == nil {
		select {
		case <-d.Ended:
		case <-time.After(10 * time.Second):
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	logged := len(d.log)
	if i := slices.IndexFunc(d.log, func(line string) bool { return strings.HasPrefix(line, "SIGQUIT") }); i >= 0 {
		logged = i
	}
	shown := d.log[max(logged-200, 0):min(logged+1000, len(d.log))]
	d.t.Logf("the daemon's log:\n%s", strings.Join(shown, "\n"))
}

// Logged returns the first line of the log with a message.
func (d *Daemon) Logged(msg string) (line gjson.Result, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, line := range d.log {
		if gjson.Get(line, "msg").String() == msg {
			return gjson.Parse(line), true
		}
	}
	return gjson.Result{}, false
}

// Log returns the whole log.
func (d *Daemon) Log() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.log, "\n")
}

// Await waits until the daemon has logged a message, and returns the line.
func (d *Daemon) Await(msg string) gjson.Result {
	d.t.Helper()
	if !brokertest.Eventually(func() bool { _, ok := d.Logged(msg); return ok }) {
		d.t.Fatalf("the daemon does not log %q:\n%s", msg, d.Log())
	}
	line, _ := d.Logged(msg)
	return line
}

// Stop ends the daemon as a service manager does, by SIGTERM, and returns the log
// line with the final scores of its only model. A stop during a recovery saves the state
// that is reached; Stop waits for its end.
func (d *Daemon) Stop() gjson.Result {
	d.t.Helper()
	if strings.Contains(d.Log(), "the model recovers") {
		d.Await("the model has recovered")
	}
	begun := time.Now()
	d.Signal(syscall.SIGTERM)
	select {
	case err := <-d.Ended:
		if err != nil {
			d.t.Fatalf("the daemon stops with %v:\n%s", err, d.Log())
		}
	case <-time.After(brokertest.Patience):
		d.t.Fatalf("the daemon does not stop:\n%s", d.Log())
	}
	d.t.Logf("stopped within %v", time.Since(begun).Round(time.Millisecond))
	return d.Await("model stopped")
}

// Kill ends the daemon by SIGKILL and waits for its end: for the process the same
// as a power cut.
func (d *Daemon) Kill() {
	d.t.Helper()
	d.Signal(syscall.SIGKILL)
	<-d.Ended
}
