//go:build linux && (amd64 || arm64)

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"edge/stream"
)

// operationRows are taught in each of these tests' lives: enough for two
// checkpoints, and short enough for a life at each operation.
const operationRows = 60

// scenario teaches a daemon some samples, whatever befalls its operations.
type scenario struct {
	t      *testing.T
	broker *testBroker
	truth  string // digest of an undisturbed learner at the end
	lives  int    // so far
}

func newScenario(t *testing.T) *scenario {
	t.Helper()
	s := &scenario{t: t, broker: newTestBroker(t, startMosquitto)}
	config, _ := s.configure(t, "mqtt://broker.lan", 0)
	s.truth = newTruth(t, config).digest(operationRows)
	return s
}

func (s *scenario) configure(t *testing.T, broker string, life int) (config, store string) {
	t.Helper()
	store = filepath.Join(t.TempDir(), "edge.db")
	return writeFile(t, "edge.yaml", fmt.Sprintf(`
node: test
mqtt: {servers: ["%s"], client_id: life-%d, max_reconnect_interval: 200ms}
streams: {waveform: {topics: [sensors/%d], features: [%s]}}
models:
  waveform:
    streams: [waveform]
    inducing: 5
    window: 10
    horizons: [inf, 100]
    classes: {names: ["0", "1", "2"]}
    batch: {max_size: 16, max_wait: 0s}
store: {path: "%s", journal_flush: 5ms, checkpoint: {every: 0s, samples: 25}}
http: {listen: ""}
`, broker, life, life, strings.Join(new(Waveform).Features(), ", "), store)), store
}

// play runs one life. decide is told the number of each operation, from 1 on,
// and judges it; a daemon that ends by that is started again.
func (s *scenario) play(decide func(n int, op operation) verdict) (operations int, log string) {
	t := s.t
	t.Helper()
	s.lives++
	tap := newTap(t, s.broker.addr)
	config, store := s.configure(t, "mqtt://"+tap.listener.Addr().String(), s.lives)
	var mu sync.Mutex // a killed daemon's supervisor may still be deciding when the next one starts
	start := func() *daemonProcess {
		return supervised(t, config, func(op operation) verdict {
			if op.name == "write" && !isAck(op) || op.name != "write" && !strings.HasPrefix(op.path, filepath.Dir(store)) {
				return verdict{}
			}
			mu.Lock()
			defer mu.Unlock()
			operations++
			return decide(operations, op)
		})
	}
	d := start()
	ended := func() bool {
		select {
		case <-d.end:
			log += d.wholeLog() + "\n"
			return true
		default:
			return false
		}
	}
	published := make(chan error, 1)
	begun := false
	if !eventually(func() bool {
		if ended() {
			tap.settle()
			d = start()
		}
		if !begun && tap.subscribed() {
			begun = true
			go func() { published <- s.publish(s.lives) }()
		}
		return tap.acknowledged() == operationRows
	}) {
		t.Fatalf("%d of %d samples are acknowledged:\n%s%s", tap.acknowledged(), operationRows, log, d.wholeLog())
	}
	if err := <-published; err != nil {
		t.Fatal(err)
	}
	d.cmd.Process.Signal(syscall.SIGTERM) // it may fail, or be killed, while it stops
	<-d.end
	log += d.wholeLog()
	if _, r := verified(t, store); !r.Sound {
		t.Errorf("the file is damaged: %q\n%s", r.Problems, log)
	}
	last := startDaemon(t, config)
	ready := last.await("model ready")
	if n := ready.Get("samples").Int(); n != operationRows || ready.Get("digest").String() != s.truth {
		t.Errorf("%d of %d samples are known, digest %s, that of an undisturbed learner %s:\n%s%s", n, operationRows, ready.Get("digest"), s.truth, log, last.wholeLog())
	}
	last.kill()
	if err := tap.fault(); err != nil {
		t.Error(err)
	}
	if strings.Contains(log, "is lost") {
		t.Errorf("something is lost:\n%s", log)
	}
	return operations, log
}

// isAck reports whether the operation acknowledges a message.
func isAck(op operation) bool {
	return strings.HasPrefix(op.path, "socket:") && len(op.data) == 4 && op.data[0] == 0x40
}

func (s *scenario) publish(life int) error {
	cfg := stream.DefaultMQTT()
	cfg.Servers = []string{s.broker.url()}
	pub, err := NewPublisher(s.t.Context(), cfg, 1, nil, nil, func() {})
	if err != nil {
		return err
	}
	defer pub.Close()
	var (
		p    Player
		row  Row
		rows = NewWaveform(tortureRows)
	)
	for range operationRows {
		rows.Next(&row)
		if err := pub.Publish(s.t.Context(), fmt.Sprintf("sensors/%d", life), p.appendSample(nil, fmt.Sprint(row.Number), row.X, row.Label)); err != nil {
			return err
		}
	}
	return pub.Drain(s.t.Context())
}

// forOperations calls judge for every operation of a life that EDGE_OPERATIONS
// (default 9: every ninth) divides, and ends when a life has no such operation.
func forOperations(t *testing.T, judge func(n int) (operations int)) {
	step := int(tortureNumber(t, "EDGE_OPERATIONS", 9))
	if testing.Short() {
		step *= 5
	}
	lives := 0
	for n := 1; ; n += step {
		operations := judge(n)
		if t.Failed() {
			t.Fatalf("at operation %d", n)
		}
		if n > operations {
			break
		}
		lives++
	}
	t.Logf("%d lives", lives)
	if lives*step < 100 {
		t.Errorf("a life has only %d operations", lives*step)
	}
}

// TestEachOperationFails: the n-th operation of a daemon's life on its state
// file and folder fails, for every n: a write, a sync, a rename, a link. Once;
// and from then on for a third of a second, as where the disk is full or has
// become read-only. What was taught is known at the end all the same, once and
// in order, and no hand was needed but that of a service manager, if it
// happened before the daemon had begun.
func TestEachOperationFails(t *testing.T) {
	s := newScenario(t)
	reasons := []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EROFS, syscall.EDQUOT}
	degraded := 0
	forOperations(t, func(at int) int {
		reason, lasting := reasons[at/2%len(reasons)], at%2 == 1
		var until time.Time
		operations, log := s.play(func(n int, op operation) verdict {
			if op.name == "write" || n < at || n > at && !(lasting && time.Now().Before(until)) {
				return verdict{}
			}
			if n == at {
				until = time.Now().Add(300 * time.Millisecond)
			}
			return verdict{errno: reason}
		})
		if strings.Contains(log, "the journal cannot be written") {
			degraded++
			if !strings.Contains(log, "the journal works again") {
				t.Errorf("nothing says that the journal works again:\n%s", log)
			}
		}
		return operations
	})
	if degraded == 0 {
		t.Error("no commit failed: the test does not bite")
	}
}

// TestKilledAtEachOperation: a daemon is killed before its n-th operation, for
// every n: between the writes of a transaction, before and after its syncs,
// before each acknowledgement.
func TestKilledAtEachOperation(t *testing.T) {
	s := newScenario(t)
	forOperations(t, func(at int) int {
		operations, _ := s.play(func(n int, _ operation) verdict { return verdict{kill: n == at} })
		return operations
	})
}

// TestEachOperationIsSlow: every operation on the disk takes its time, some a lot.
func TestEachOperationIsSlow(t *testing.T) {
	s := newScenario(t)
	s.play(func(n int, op operation) verdict {
		switch {
		case op.name == "write":
		case n%29 == 0:
			time.Sleep(200 * time.Millisecond)
		default:
			time.Sleep(2 * time.Millisecond)
		}
		return verdict{}
	})
}
