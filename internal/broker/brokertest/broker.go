package brokertest

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"edge/internal/broker"
)

// Broker is a broker that tests stop and start.
type Broker struct {
	Addr  string
	Start func(t *testing.T, addr string) (stop func())
	Stop  func()
}

// ForEach runs a test against the embedded broker and, with the build tag
// slow, against mosquitto with its default settings.
func ForEach(t *testing.T, test func(t *testing.T, b *Broker)) {
	t.Run("embedded", func(t *testing.T) { test(t, New(t, Embedded)) })
	if Slow {
		WithMosquitto(t, test)
	}
}

// WithMosquitto runs a test against mosquitto alone: the embedded broker loses
// messages that arrive while a client takes its session over, and repeats
// others out of order.
func WithMosquitto(t *testing.T, test func(t *testing.T, b *Broker)) {
	t.Run("mosquitto", func(t *testing.T) { test(t, New(t, Mosquitto)) })
}

// New starts a broker on a free address, and stops it at the end of the test.
func New(t *testing.T, start func(*testing.T, string) func()) *Broker {
	t.Helper()
	b := &Broker{Addr: FreeAddress(t), Start: start}
	b.Stop = start(t, b.Addr)
	t.Cleanup(func() { b.Stop() })
	return b
}

// FreeAddress returns an address of the loopback interface on a free port.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Embedded starts the embedded broker.
func Embedded(t *testing.T, addr string) (stop func()) {
	t.Helper()
	b, err := broker.StartServer(addr, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() { b.Close() })
}

// Mosquitto starts mosquitto with its default settings.
func Mosquitto(t *testing.T, addr string) (stop func()) { return MosquittoWith(t, addr, "") }

// MosquittoWith starts mosquitto with settings beyond those that a test needs.
func MosquittoWith(t testing.TB, addr, settings string) (stop func()) {
	t.Helper()
	program, err := exec.LookPath("mosquitto")
	if err != nil {
		program = "/usr/sbin/mosquitto" // where PATH does not contain it
		_, err = os.Stat(program)
	}
	if err != nil {
		Missing(t, "mosquitto is not installed: "+err.Error())
	}
	host, port, _ := net.SplitHostPort(addr)
	config := writeFile(t, "mosquitto.conf", fmt.Sprintf("listener %s %s\nallow_anonymous true\nuser root\n%s", port, host, settings))
	cmd := exec.Command(program, "-c", config)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() { terminate(cmd) })
	if !Eventually(func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	}) {
		stop()
		t.Fatalf("mosquitto does not listen on %s: %s", addr, &log)
	}
	return stop
}

// terminate ends a mosquitto. It repeats SIGTERM, which a mosquitto that has just
// begun to listen loses.
func terminate(cmd *exec.Cmd) {
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	for {
		cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
			return
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// Keeping starts a mosquitto that keeps sessions in a folder over restarts and drops
// no message for absent clients.
func Keeping(folder string) func(*testing.T, string) func() {
	return func(t *testing.T, addr string) func() {
		return MosquittoWith(t, addr, fmt.Sprintf("persistence true\npersistence_location %s/\nmax_queued_messages 1000000\nmax_inflight_messages 20\n", folder))
	}
}

// URL returns the address for clients.
func (b *Broker) URL() string { return "mqtt://" + b.Addr }

// Restart stops the broker and starts it on the same address.
func (b *Broker) Restart(t *testing.T) {
	b.Stop()
	b.Stop = b.Start(t, b.Addr)
}
