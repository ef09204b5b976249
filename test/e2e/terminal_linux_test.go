package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"edge/internal/broker/brokertest"
	"edge/test/files"
	"edge/test/harness"
)

// tty is a pseudo-terminal with a program in it.
type tty struct {
	master *os.File
	cmd    *exec.Cmd

	mu  sync.Mutex
	out bytes.Buffer
}

// inTerminal runs edge in a terminal of 80 columns.
func inTerminal(t *testing.T, environ []string, args ...string) *tty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		brokertest.Missing(t, "no pseudo-terminals here: "+err.Error())
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	term := &tty{master: master, cmd: harness.Command(t, args...)}
	term.resize(t, 80)
	term.cmd.Env = append(append(os.Environ(), "TERM=xterm-256color", "COLORTERM="), environ...)
	term.cmd.Stdin, term.cmd.Stdout, term.cmd.Stderr = slave, slave, slave
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := term.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { term.cmd.Process.Kill() })
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			term.mu.Lock()
			term.out.Write(buf[:n])
			term.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return term
}

// resize makes the terminal that wide, and 24 lines high.
func (term *tty) resize(t *testing.T, columns uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(term.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: 24}); err != nil {
		t.Fatal(err)
	}
}

func (term *tty) output() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.out.String()
}

// await waits until the terminal shows a text. A program writes only the cells that
// change, "125" where "0.000" becomes "0.125"; a regular resize makes it write all of
// them.
func (term *tty) await(t *testing.T, text string) {
	t.Helper()
	polls := 0
	if !brokertest.Eventually(func() bool {
		if polls++; polls%30 == 0 {
			term.resize(t, 80+uint16(polls/30%2))
		}
		return strings.Contains(term.output(), text)
	}) {
		t.Fatalf("the terminal does not show %q: %q", text, term.output())
	}
}

// TestTopInATerminal runs top in a pseudo-terminal: it draws on the alternate screen,
// handles keys and restores the terminal, in colour or with NO_COLOR without.
func TestTopInATerminal(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	for name, environ := range map[string][]string{"coloured": nil, "plain": {"NO_COLOR=1"}} {
		t.Run(name, func(t *testing.T) {
			term := inTerminal(t, environ, "top", "--broker", b.URL(), "--node", name)
			for _, want := range []string{"\x1b[?1049h", "no message of its models yet"} {
				term.await(t, want)
			}
			for _, m := range [][3]string{ // and the text that top shows then
				{"state", "online", "online"},
				{"info", `{"version":"v1","arch":"linux/arm","started":"2026-11-20T20:00:00Z","models":[{"name":"bearing","classes":["ok"]},{"name":"pump"}]}`, "bearing"},
				{"bearing/metrics", `{"n":4711,"error":0.125,"log_loss":0.5,"window":{"n":100,"error":0.2,"log_loss":0.4},"classes":["ok"],"confusion":[[4711]]}`, "0.125"},
			} {
				b.Retain(t, "edge/"+name+"/"+m[0], m[1])
				term.await(t, m[2])
			}
			term.await(t, "4711")
			term.master.Write([]byte("p"))
			term.await(t, "paused")
			term.master.Write([]byte("q"))
			if err := term.cmd.Wait(); err != nil {
				t.Errorf("top ends with %v: %q", err, term.output())
			}
			term.await(t, "\x1b[?1049l") // the usual screen is back
			// Green for online: colour 2 of the terminal's own.
			if coloured := strings.Contains(term.output(), "\x1b[32m"); coloured != (environ == nil) {
				t.Errorf("colours: %v: %q", coloured, term.output())
			}
		})
	}
}

// The lengths of windows are tried with a line of progress, which a narrow terminal cuts off.
func TestProgressInATerminal(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("t,x,label\n")
	for i := range 4000 {
		fmt.Fprintf(&rows, "%d,%d,%s\n", 1_795_717_000+i, i%7, []string{"idle", "run"}[i/100%2])
	}
	term := inTerminal(t, nil, "windows", files.Write(t, "rows.csv", rows.String()), "--signals", "x", "--length", "64", "--lengths", "16,32")
	if err := term.cmd.Wait(); err != nil {
		t.Fatalf("windows ends with %v: %q", err, term.output())
	}
	term.await(t, "macro-f1")
	for _, want := range []string{"\r\x1b[K\x1b[?7lwindows of 16 (1 of 2)   0% 1/", "\x1b[?7lwindows of 32 (2 of 2)   0% 1/", "s left)\x1b[?7h"} {
		if !strings.Contains(term.output(), want) {
			t.Errorf("no %q in %q", want, term.output())
		}
	}
}

// The daemon's log at a terminal is coloured, unless NO_COLOR is set or the terminal has no colours.
func TestLogInATerminal(t *testing.T) {
	for environ, coloured := range map[string]bool{"COLORTERM=": true, "NO_COLOR=1": false, "TERM=dumb": false} {
		t.Run(environ, func(t *testing.T) {
			config := "mqtt: {servers: [mqtt://127.0.0.1:1]}\nhttp: {listen: \"\"}\nstreams: {s: {topics: [t], features: [x]}}\nmodels: {m: {streams: [s]}}\n"
			config += "store: {path: " + filepath.Join(t.TempDir(), "edge.db") + "}\n"
			term := inTerminal(t, []string{environ}, "run", "-c", files.Write(t, "edge.yaml", config))
			term.await(t, "edge starts")
			if got := strings.Contains(term.output(), "\x1b["); got != coloured {
				t.Errorf("colours: %t: %q", got, term.output())
			}
			term.cmd.Process.Kill()
			term.cmd.Wait()
		})
	}
}

// The scores are a column in a terminal that is narrower than their line.
func TestScoresInATerminal(t *testing.T) {
	table := harness.TableFile(t, "table.csv", 60)
	dumb := inTerminal(t, []string{"TERM=dumb"}, "eval", table, "--inducing", "10")
	if err := dumb.cmd.Wait(); err != nil || strings.Contains(dumb.output(), "\x1b") {
		t.Errorf("with TERM=dumb eval ends with %v: %q", err, dumb.output())
	}
	term := inTerminal(t, nil, "eval", table, "--inducing", "10")
	if err := term.cmd.Wait(); err != nil {
		t.Fatalf("eval ends with %v: %q", err, term.output())
	}
	term.await(t, "\r\nsamples    60 ")
	term.await(t, "\r\nmacro-f1   0.")
}
