package e2e

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/test/files"
	"edge/test/harness"
)

// newManager returns the notifications that a service manager receives on a socket.
func newManager(t *testing.T) (received *harness.Log, socket string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "edge") // the address of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(folder, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		os.RemoveAll(folder)
	})
	received = new(harness.Log)
	go func() {
		for b := make([]byte, 4096); ; {
			n, err := conn.Read(b)
			if err != nil {
				return
			}
			fmt.Fprintf(received, "%s\n", b[:n])
		}
	}()
	return received, socket
}

// TestServiceManagerHears expects the notifications of systemd from a daemon: ready,
// status, watchdog, stopping.
func TestServiceManagerHears(t *testing.T) {
	received, socket := newManager(t)
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", "400000")
	b := brokertest.New(t, brokertest.Embedded)
	config, _ := harness.WaveformConfig(t, b.URL())
	d := harness.Start(t, config)
	for state, times := range map[string]int{"READY=1": 1, "WATCHDOG=1": 5, "STATUS=connected; waveform: 0 samples": 1} {
		if !brokertest.Eventually(func() bool { return received.Lines(state) >= times }) {
			t.Errorf("%s was not sent %d times:\n%s", state, times, received)
		}
	}
	if received.Lines("STOPPING=1") > 0 {
		t.Error("it announces a stop before the signal")
	}
	d.Stop()
	if received.Lines("READY=1") != 1 || received.Lines("STOPPING=1") != 1 || !strings.HasPrefix(received.String(), "READY=1\n") {
		t.Errorf("received:\n%s", received)
	}
}

// TestPrioritiesInTheJournal expects a priority before each line that goes to the stream of systemd's
// journal, and none where that stream is not the standard error.
func TestPrioritiesInTheJournal(t *testing.T) {
	config, _ := harness.WaveformConfig(t, "mqtt://127.0.0.1:1") // nothing listens there
	for _, tc := range []struct {
		args []string
		want string // of all lines
	}{
		{[]string{"run", "-c", config}, `^((<6>time=\S+ level=INFO|<4>time=\S+ level=WARN) .*\n)+$`},
		{[]string{"run", "-c", files.Write(t, "edge.yaml", "x: 1\ny: 2\n")}, `^<3>edge: .*unknown key "x".*\n<3>.*unknown key "y".*\n$`},
	} {
		ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := os.NewFile(uintptr(ends[0]), "ours"), os.NewFile(uintptr(ends[1]), "theirs")
		var stat syscall.Stat_t
		if err := syscall.Fstat(ends[1], &stat); err != nil {
			t.Fatal(err)
		}
		cmd := harness.Command(t, tc.args...)
		cmd.Env = append(os.Environ(), fmt.Sprintf("JOURNAL_STREAM=%d:%d", stat.Dev, stat.Ino))
		cmd.Stderr = theirs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		theirs.Close()
		got := ""
		for lines := bufio.NewScanner(ours); lines.Scan(); {
			if got += lines.Text() + "\n"; strings.Contains(lines.Text(), "cannot connect") {
				cmd.Process.Signal(syscall.SIGTERM)
			}
		}
		ours.Close()
		if cmd.Wait(); !regexp.MustCompile(tc.want).MatchString(got) {
			t.Errorf("%v: the log is\n%s", tc.args, got)
		}
	}
}

// proxy is between a daemon and its broker, and can stop forwarding.
type proxy struct {
	net.Listener
	silent sync.RWMutex // locked while no byte may pass
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l}
	t.Cleanup(func() { l.Close() })
	pass := func(dst, src net.Conn) {
		defer dst.Close()
		for b := make([]byte, 4096); ; {
			n, err := src.Read(b)
			if err != nil {
				return
			}
			p.silent.RLock()
			_, err = dst.Write(b[:n])
			p.silent.RUnlock()
			if err != nil {
				return
			}
		}
	}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			go pass(in, out)
			go pass(out, in)
		}
	}()
	return p
}

// TestStopInTime stops a daemon in three states of the broker. The daemon gives itself
// 5 seconds, and what a slow disk takes longer; the unit kills it after 60 (TimeoutStopSec). The printed time is
// meaningful on a machine without other load.
func TestStopInTime(t *testing.T) {
	stop := func(t *testing.T, d *harness.Daemon) {
		t.Helper()
		began := time.Now()
		d.Process.Signal(syscall.SIGTERM)
		select {
		case <-d.Ended:
			t.Logf("stopped within %v", time.Since(began).Round(time.Millisecond))
		case <-time.After(brokertest.Patience):
			t.Errorf("does not stop within %v:\n%s", brokertest.Patience, d.Log())
		}
	}
	t.Run("while messages come", func(t *testing.T) {
		b := brokertest.New(t, brokertest.Embedded)
		config, _ := harness.WaveformConfig(t, b.URL())
		d := harness.Start(t, config)
		d.Await("connected to the broker")
		flood := harness.Command(t, "replay", harness.WaveformFile(t, 200), "--loop", "--broker", b.URL(), "--qos", "0")
		if err := flood.Start(); err != nil {
			t.Fatal(err)
		}
		defer flood.Wait()
		defer flood.Process.Kill()
		if metrics, ok := brokertest.Await(t, b, "edge/test/waveform/metrics", func(m string) bool { return gjson.Get(m, "n").Int() > 100 }); !ok {
			t.Errorf("nothing is learnt: %s", metrics)
		}
		stop(t, d)
	})
	t.Run("the broker has fallen silent", func(t *testing.T) {
		b := brokertest.New(t, brokertest.Embedded)
		p := newProxy(t, b.Addr)
		config, _ := harness.WaveformConfig(t, "mqtt://"+p.Addr().String())
		d := harness.Start(t, config)
		d.Await("connected to the broker")
		harness.Replay(t, harness.WaveformFile(t, 100), "--broker", b.URL())()
		p.silent.Lock()
		defer p.silent.Unlock()
		stop(t, d)
	})
	t.Run("there is no broker", func(t *testing.T) {
		config, _ := harness.WaveformConfig(t, "mqtt://"+brokertest.FreeAddress(t))
		d := harness.Start(t, config)
		d.Await("cannot connect to the broker; will keep trying")
		stop(t, d)
	})
}

// TestUnit checks the unit with systemd-analyze, and the values of its limits.
func TestUnit(t *testing.T) {
	const path = "../../configs/edge.service"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Type=notify", "WatchdogSec=30", "MemoryMax=64M", "Environment=GOMEMLIMIT=45MiB" /* 70 % */, "StateDirectory=edge", "TimeoutStopSec=60"} {
		if !slices.Contains(strings.Split(string(text), "\n"), want) {
			t.Errorf("the unit has no line %s", want)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		brokertest.Missing(t, "systemd-analyze is not installed")
	}
	unit := files.Write(t, "edge.service", strings.ReplaceAll(string(text), "/usr/bin/edge", harness.Program(t)))
	out, err := exec.CommandContext(t.Context(), analyze, "verify", unit).CombinedOutput()
	out = regexp.MustCompile(`.*Unknown key.*'Restart(Steps|MaxDelaySec)'.*\n`).ReplaceAll(out, nil) // before 254
	if err != nil || strings.Contains(string(out), "edge.service") {
		t.Errorf("systemd-analyze verify: %v: %s", err, out)
	}
	out, err = exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold=20", "--no-pager", unit).CombinedOutput()
	score := regexp.MustCompile(`Overall exposure level.*`).Find(out)
	if err != nil && len(score) > 0 { // older ones cannot look at a file
		t.Errorf("systemd-analyze security: %v: %s, want 2.0 at most", err, score)
	}
	t.Logf("%s", score)
}

// TestServiceScripts parses the scripts of other service managers with a shell.
func TestServiceScripts(t *testing.T) {
	for _, script := range []string{"edge.openrc", "edge.procd"} {
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", "../../configs/"+script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", script, err, out)
		}
	}
}
