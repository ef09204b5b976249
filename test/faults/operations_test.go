//go:build linux && (amd64 || arm64 || arm)

package faults

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/tidwall/gjson"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/replay"
	"edge/test/files"
	"edge/test/harness"
)

// operationRows is the number of samples in each run: enough for two checkpoints, few
// enough for a run per operation.
const operationRows = 120

// scenario publishes samples to daemons whose operations are disturbed.
type scenario struct {
	t      *testing.T
	broker *brokertest.Broker
	truth  string // digest of an undisturbed learner at the end
	runs   int    // so far
}

func newScenario(t *testing.T) *scenario {
	t.Helper()
	s := &scenario{t: t, broker: brokertest.New(t, brokertest.Mosquitto)}
	config, _ := s.configure(t, "mqtt://broker.lan", 0)
	s.truth = harness.NewTruth(t, config).Digest(operationRows)
	return s
}

func (s *scenario) configure(t *testing.T, broker string, number int) (config, store string) {
	t.Helper()
	store = filepath.Join(t.TempDir(), "edge.db")
	return files.Write(t, "edge.yaml", fmt.Sprintf(`
node: test
mqtt: {servers: ["%s"], client_id: run-%d, max_reconnect_interval: 200ms}
streams: {waveform: {topics: [sensors/%d], features: [%s]}}
models:
  waveform:
    streams: [waveform]
    inducing: 5
    window: 10
    horizons: [inf, 100]
    experts: {forest: off}
    classes: {names: ["0", "1", "2"]}
    batch: {max_size: 16, max_wait: 0s}
store: {path: "%s", journal_flush: 5ms, checkpoint: {every: 0s, samples: 25}}
http: {listen: ""}
`, broker, number, number, strings.Join(new(dataset.Waveform).Features(), ", "), store)), store
}

// play does one run with a supervised daemon. decide gets the number of each
// operation, from 1 on, and returns its decision; a daemon that ends is started again.
func (s *scenario) play(decide func(n int, op operation) decision) (operations int, log string) {
	s.t.Helper()
	var mu sync.Mutex // a killed daemon's supervisor may still be deciding when the next one starts
	log = s.run(func(config, store string) *harness.Daemon {
		return supervised(s.t, config, func(op operation) decision {
			if op.name == "write" && acks(op) == 0 || op.name != "write" && !strings.HasPrefix(op.path, filepath.Dir(store)) {
				return decision{}
			}
			mu.Lock()
			defer mu.Unlock()
			operations++
			return decide(operations, op)
		})
	})
	mu.Lock()
	defer mu.Unlock()
	return operations, log
}

// run publishes samples to a daemon, and to its successors if it ends, and compares
// the final state with the truth.
func (s *scenario) run(start func(config, store string) *harness.Daemon) (log string) {
	t := s.t
	t.Helper()
	s.runs++
	tap := harness.NewTap(t, s.broker.Addr)
	config, store := s.configure(t, tap.URL(), s.runs)
	d := start(config, store)
	ended := func() bool {
		select {
		case <-d.Ended:
			log += d.Log() + "\n"
			return true
		default:
			return false
		}
	}
	published := make(chan error, 1)
	begun := false
	if !brokertest.Eventually(func() bool {
		if ended() {
			tap.Settle()
			d = start(config, store)
		}
		if !begun && tap.Subscribed() {
			begun = true
			go func() { published <- s.publish(s.runs, 1, operationRows) }()
		}
		return tap.Acknowledged() == operationRows
	}) {
		var err error
		select {
		case err = <-published:
		default:
		}
		t.Fatalf("%d of %d samples are acknowledged, published: %v, %v:\n%s%s", tap.Acknowledged(), operationRows, begun, err, log, d.Log())
	}
	if err := <-published; err != nil {
		t.Fatal(err)
	}
	d.Process.Signal(syscall.SIGTERM) // it may fail, or be killed, while it stops
	<-d.Ended
	log += d.Log()
	if _, r := harness.Verify(t, store); !r.Sound {
		t.Errorf("the file is damaged: %q\n%s", r.Problems, log)
	}
	last := harness.Start(t, config)
	ready := last.Await("model ready")
	if n := ready.Get("samples").Int(); n != operationRows || ready.Get("digest").String() != s.truth {
		t.Errorf("%d of %d samples are known, digest %s, that of an undisturbed learner %s:\n%s%s", n, operationRows, ready.Get("digest"), s.truth, log, last.Log())
	}
	last.Kill()
	if err := tap.Err(); err != nil {
		t.Error(err)
	}
	if strings.Contains(log, "is lost") {
		t.Errorf("something is lost:\n%s", log)
	}
	return log
}

// acks counts the messages that an operation acknowledges: one write may contain
// several packets.
func acks(op operation) (n int) {
	if !strings.HasPrefix(op.path, "socket:") {
		return 0
	}
	for r := bytes.NewReader(op.data); ; {
		p, err := packets.ReadPacket(r)
		if err != nil {
			return n
		}
		if _, ok := p.(*packets.PubackPacket); ok {
			n++
		}
	}
}

// publish publishes the labelled samples from one number to another, and then
// unlabelled samples with the ids of asking.
func (s *scenario) publish(number, from, to int, asking ...string) error {
	pub, err := broker.NewPublisher(s.t.Context(), brokertest.Config(s.broker.URL()), 1, broker.Listener{})
	if err != nil {
		return err
	}
	defer pub.Close()
	var (
		p    replay.Player
		row  dataset.Row
		rows = dataset.NewWaveform(harness.RowsSeed)
	)
	send := func(id, label string) error {
		return pub.Publish(s.t.Context(), fmt.Sprintf("sensors/%d", number), p.Sample(id, row.X, label))
	}
	for rows.Number < to {
		if rows.Next(&row); row.Number < from {
			continue
		}
		if err := send(strconv.Itoa(row.Number), row.Label); err != nil {
			return err
		}
	}
	for _, id := range asking {
		rows.Next(&row)
		if err := send(id, ""); err != nil {
			return err
		}
	}
	return pub.Drain(s.t.Context())
}

// forOperations calls try with every number of an operation that is one more than a
// multiple of EDGE_OPERATIONS (default 9), until a run has fewer operations. Without
// the build tag slow it uses half of them.
func forOperations(t *testing.T, judge func(n int) (operations int)) {
	step := int(harness.Number(t, "EDGE_OPERATIONS", 9)) * brokertest.Brief(1, 2)
	runs := 0
	for n := 1; ; n += step {
		operations := judge(n)
		if t.Failed() {
			t.Fatalf("at operation %d", n)
		}
		if n > operations {
			break
		}
		runs++
	}
	t.Logf("%d runs", runs)
	if runs*step < 80 {
		t.Errorf("a number has only %d operations", runs*step)
	}
}

// TestEachOperationFails lets the n-th operation of a run on the state file and its
// folder fail, for every n: a write, a sync, a rename, a link. It fails once, or for a
// third of a second, as on a full or read-only disk. At the end every sample is
// learnt, once and in order, with no intervention but a restart by a service manager
// if the daemon had not begun.
func TestEachOperationFails(t *testing.T) {
	s := newScenario(t)
	reasons := []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EROFS, syscall.EDQUOT}
	degraded := 0
	forOperations(t, func(at int) int {
		reason, lasting := reasons[at/2%len(reasons)], at%2 == 1
		var until time.Time
		operations, log := s.play(func(n int, op operation) decision {
			if op.name == "write" || n < at || n > at && !(lasting && time.Now().Before(until)) {
				return decision{}
			}
			if n == at {
				until = time.Now().Add(300 * time.Millisecond)
			}
			return decision{errno: reason}
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
		t.Error("no commit failed: the test proves nothing")
	}
}

// TestKilledAtEachOperation: a daemon is killed before its n-th operation, for
// every n: between the writes of a transaction, before and after its syncs,
// before each acknowledgement.
func TestKilledAtEachOperation(t *testing.T) {
	s := newScenario(t)
	forOperations(t, func(at int) int {
		operations, _ := s.play(func(n int, _ operation) decision { return decision{kill: n == at} })
		return operations
	})
}

// outage publishes a third of the samples to a daemon and calls begin, which makes the
// disk unusable. It publishes more samples than the window of the broker holds, and
// unlabelled ones, which must be answered. When end has restored the disk, all samples
// are learnt in order. late is the number of samples that were acknowledged after
// begin.
//
// Long: a sequence of steps that share the observations.
func (s *scenario) outage(start func(config, store string) *harness.Daemon, begin, end func(d *harness.Daemon, store string)) (late int) {
	t := s.t
	t.Helper()
	s.runs++
	tap := harness.NewTap(t, s.broker.Addr)
	config, store := s.configure(t, tap.URL(), s.runs)
	var mu sync.Mutex
	answered, events := map[string]int{}, []string{}
	listener := brokertest.Subscribe(t, s.broker.URL(), []string{"edge/test/waveform/prediction", "edge/test/event"}, func(topic string, payload []byte) {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasSuffix(topic, "event") {
			events = append(events, gjson.GetBytes(payload, "event").String())
			return
		}
		answered[gjson.GetBytes(payload, "id").String()]++
	})
	defer listener.Close()
	happened := func(what ...string) bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.Equal(slices.DeleteFunc(slices.Clone(events), func(e string) bool { return !strings.HasPrefix(e, "store_") }), what)
	}

	const third, rest = operationRows / 3, operationRows / 12
	d := start(config, store)
	d.Await("connected to the broker")
	must := func(what string, ok func() bool) {
		t.Helper()
		if !brokertest.Eventually(ok) {
			t.Fatalf("never %s: %d acknowledged, answered %v, events %q\n%s", what, tap.Acknowledged(), answered, events, d.Log())
		}
	}
	must("subscribed", tap.Subscribed)
	if err := s.publish(s.runs, 1, third); err != nil {
		t.Fatal(err)
	}
	must("acknowledged", func() bool { return tap.Acknowledged() == third })
	begin(d, store)
	for n := third + 1; n <= operationRows-rest; n++ { // one commit each, while commits succeed
		if err := s.publish(s.runs, n, n); err != nil {
			t.Fatal(err)
		}
		must("acknowledged or degraded", func() bool { return tap.Acknowledged() >= n || happened("store_degraded") })
	}
	must("degraded", func() bool { return happened("store_degraded") })
	held := tap.Acknowledged()
	must("observed", func() bool { return strings.Count(d.Log(), `"msg":"connected to the broker"`) >= 2 })
	asking := []string{}
	for i := range 2 * third {
		asking = append(asking, fmt.Sprint("asking", i))
	}
	must("observing", func() bool { // the second connection may not have subscribed yet
		if err := s.publish(s.runs, 1, 0, "first"); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		return answered["first"] > 0
	})
	if err := s.publish(s.runs, 1, 0, asking...); err != nil {
		t.Fatal(err)
	}
	must("answered", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return !slices.ContainsFunc(asking, func(id string) bool { return answered[id] == 0 })
	})
	if n := tap.Acknowledged(); n != held || !happened("store_degraded") {
		t.Errorf("during the outage %d samples are acknowledged, %d before it was noticed, the events are %q", n, held, events)
	}
	end(d, store)
	if err := s.publish(s.runs, operationRows-rest+1, operationRows); err != nil {
		t.Fatal(err)
	}
	must("all acknowledged", func() bool { return tap.Acknowledged() == operationRows })
	must("recovered", func() bool { return happened("store_degraded", "store_recovered") })
	final := d.Stop()
	if n := final.Get("samples").Int(); n != operationRows || final.Get("digest").String() != s.truth {
		t.Errorf("%d of %d samples are known, digest %s, that of an undisturbed learner %s:\n%s", n, operationRows, final.Get("digest"), s.truth, d.Log())
	}
	return held - third
}

// TestOutage makes the file system of the state file read-only for a while.
func TestOutage(t *testing.T) {
	s := newScenario(t)
	var readOnly atomic.Bool
	late := s.outage(func(config, store string) *harness.Daemon {
		return supervised(t, config, func(op operation) decision {
			if readOnly.Load() && strings.HasPrefix(op.path, filepath.Dir(store)) {
				return decision{errno: syscall.EROFS}
			}
			return decision{}
		})
	}, func(*harness.Daemon, string) { readOnly.Store(true) }, func(*harness.Daemon, string) { readOnly.Store(false) })
	if late != 0 {
		t.Errorf("%d samples are acknowledged although nothing can be written", late)
	}
}

// TestDamagedWhileItRuns truncates the state file of a running daemon. The daemon
// ends, since it cannot repair the file while it runs, and the next start repairs it.
func TestDamagedWhileItRuns(t *testing.T) {
	s := newScenario(t)
	tap := harness.NewTap(t, s.broker.Addr)
	config, store := s.configure(t, tap.URL(), s.runs)
	d := harness.Start(t, config)
	const half = operationRows / 2
	publish := func(from, to int) {
		t.Helper()
		if !brokertest.Eventually(tap.Subscribed) {
			t.Fatalf("the daemon never subscribes:\n%s", d.Log())
		}
		if err := s.publish(s.runs, from, to); err != nil {
			t.Fatal(err)
		}
	}
	publish(1, half)
	if !brokertest.Eventually(func() bool { return tap.Acknowledged() == half }) {
		t.Fatalf("%d samples are acknowledged:\n%s", tap.Acknowledged(), d.Log())
	}
	if err := os.Truncate(store, 2*4096); err != nil {
		t.Fatal(err)
	}
	publish(half+1, operationRows)
	select {
	case err := <-d.Ended:
		if end := (*exec.ExitError)(nil); !errors.As(err, &end) || end.ExitCode() != exit.Store {
			t.Errorf("the daemon ends with %v, want code %d:\n%s", err, exit.Store, d.Log())
		}
	case <-time.After(brokertest.Patience):
		t.Fatalf("the daemon goes on with a damaged file:\n%s", d.Log())
	}
	tap.Settle()
	d = harness.Start(t, config)
	if !brokertest.Eventually(func() bool { return tap.Acknowledged() == operationRows }) {
		t.Fatalf("%d samples are acknowledged:\n%s", tap.Acknowledged(), d.Log())
	}
	d.Stop()
	if _, r := harness.Verify(t, store); !r.Sound {
		t.Errorf("the file is damaged: %q", r.Problems)
	}
}

// TestDiskIsFull fills a small disk of the daemon and later frees it. Samples for
// which the redo log or the state file has free pages are still learnt. Mounting the disk
// needs root.
func TestDiskIsFull(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED: only root can mount a small disk")
	}
	if _, err := exec.LookPath("unshare"); err != nil {
		brokertest.Missing(t, "unshare is not installed")
	}
	s := newScenario(t)
	ballast := func(d *harness.Daemon, store string) string {
		return filepath.Join(fmt.Sprintf("/proc/%d/root", d.Process.Pid), filepath.Dir(store), "ballast")
	}
	late := s.outage(func(config, store string) *harness.Daemon {
		data, err := os.ReadFile(config)
		if err != nil {
			t.Fatal(err)
		}
		// Checkpoints would free the pages of the journal again and again.
		config = files.Write(t, "edge.yaml", strings.Replace(string(data), "samples: 25", "samples: 1000", 1))
		return harness.StartWith(t, config, func(cmd *exec.Cmd) {
			const script = `mount -t tmpfs -o size=1m none "$1" && shift && exec "$@"`
			unshare := exec.Command("unshare", append([]string{"-m", "sh", "-c", script, "sh", filepath.Dir(store)}, cmd.Args...)...)
			cmd.Path, cmd.Args = unshare.Path, unshare.Args
		})
	}, func(d *harness.Daemon, store string) {
		f, err := os.Create(ballast(d, store))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for block := make([]byte, 4096); err == nil; {
			_, err = f.Write(block)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}, func(d *harness.Daemon, store string) {
		if err := os.Remove(ballast(d, store)); err != nil {
			t.Fatal(err)
		}
	})
	if late >= operationRows/2 {
		t.Errorf("%d samples are acknowledged although the disk is full", late)
	}
}
