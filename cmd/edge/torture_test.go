package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"github.com/tidwall/gjson"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/dataset"
	"edge/internal/replay"
	"edge/online"
	"edge/stream/mqtt"
)

// The broker keeps 1000 messages for a client that is away and drops the rest:
// the load stays this far ahead of the daemon's acknowledgements.
const tortureAhead = 500

// TestTorture kills a daemon at random instants under load, EDGE_TORTURE times
// (default 100, and 4 without the build tag slow), and holds what it knows after each start against the truth:
//
//   - it has every sample that it ever acknowledged, and acknowledged in order;
//   - its state is, bit for bit, that of a learner which was fed exactly the
//     first n samples, each once and undisturbed;
//   - at the end n is the number of samples that were published.
//
// A quarter of the kills come at any time after the start of the process, so
// that some meet it while it opens, compacts or replays; the others come once it
// is connected and has acknowledged some more samples, so that a slow machine has
// as many of them to repeat. Checkpoints come in tides: forty lives without any let the
// journal grow, ten with one every few samples let it shrink, and the start
// after that compacts the file.
//
// EDGE_TORTURE_SEED repeats the choice of the instants; where they fall in the
// daemon's work remains the machine's choice.
func TestTorture(t *testing.T) {
	kills := tortureNumber(t, "EDGE_TORTURE", uint64(brokertest.Brief(100, 4)))
	seed := tortureNumber(t, "EDGE_TORTURE_SEED", rand.Uint64())
	t.Logf("%d kills, EDGE_TORTURE_SEED=%d", kills, seed)
	rng := rand.New(rand.NewPCG(seed, 0))

	broker := brokertest.New(t, brokertest.Mosquitto)
	tap := newTap(t, broker.Addr)
	never, often, store := tortureConfigs(t, "mqtt://"+tap.listener.Addr().String())
	truth := newTruth(t, never)
	load := &tortureLoad{tap: tap, stop: make(chan struct{}), done: make(chan error, 1)}

	begun := time.Now()
	var (
		known, acked       int // samples that the last start had; that are acknowledged
		blind, compactions int // kills before the model was ready; starts that made the file smaller
		replayed, longest  int // records
		fileSize           int64
	)
	// look checks what a daemon said at its start, if it came to that.
	look := func(d *daemonProcess) bool {
		ready, ok := d.said("model ready")
		if !ok {
			return false
		}
		n := int(ready.Get("samples").Int())
		if n < acked {
			t.Fatalf("%d samples were acknowledged, after the start there are %d:\n%s", acked, n, d.wholeLog())
		}
		if n < known {
			t.Fatalf("%d samples were known, after the next start %d:\n%s", known, n, d.wholeLog())
		}
		if got, want := ready.Get("digest").String(), truth.digest(n); got != want {
			t.Fatalf("after %d samples the digest is %s, that of an undisturbed learner %s:\n%s", n, got, want, d.wholeLog())
		}
		if _, damaged := d.said("part of what the model had learnt is lost"); damaged {
			t.Fatalf("a kill damages the file:\n%s", d.wholeLog())
		}
		records := int(ready.Get("replayed").Int())
		replayed += records
		longest, known = max(longest, records), n
		return true
	}
	for i := range int(kills) {
		config := never
		if i%50 >= 40 {
			config = often
		}
		acked = tap.acknowledged()
		d := startDaemon(t, config)
		if i == 0 { // the broker keeps nothing for a client that it never met
			if !brokertest.Eventually(tap.subscribed) {
				t.Fatalf("the daemon never subscribes:\n%s", d.wholeLog())
			}
			load.start(t, broker.URL())
		}
		if i > 0 && rng.IntN(4) == 0 {
			time.Sleep(time.Duration(rng.Int64N(int64(200 * time.Millisecond))))
		} else {
			d.await("connected to the broker")
			life := 600     // samples
			if i%50 >= 47 { // long enough for a checkpoint of what the tide has left
				life = 3000
			}
			until := acked + rng.IntN(life)
			if !brokertest.Eventually(func() bool { return tap.acknowledged() >= until }) {
				t.Fatalf("%d samples are acknowledged, want %d:\n%s", tap.acknowledged(), until, d.wholeLog())
			}
			time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Millisecond)))) // at any moment of what follows
		}
		d.kill()
		tap.settle()
		if !look(d) {
			blind++
		}
		if now, err := os.Stat(store); err == nil {
			if now.Size() < fileSize {
				compactions++
			}
			fileSize = now.Size()
		}
	}
	close(load.stop)
	acked = tap.acknowledged()
	last := startDaemon(t, often)
	if err := <-load.done; err != nil {
		t.Fatal(err)
	}
	if !brokertest.Eventually(func() bool { return tap.acknowledged() == load.rows }) {
		t.Fatalf("%d of %d samples are acknowledged:\n%s", tap.acknowledged(), load.rows, last.wholeLog())
	}
	final := last.stop()
	look(last)
	if n := int(final.Get("samples").Int()); n != load.rows {
		t.Errorf("%d samples were published, %d learnt", load.rows, n)
	}
	if got, want := final.Get("digest").String(), truth.digest(load.rows); got != want {
		t.Errorf("the digest is %s, that of an undisturbed learner %s", got, want)
	}
	if err := tap.fault(); err != nil {
		t.Error(err)
	}
	t.Logf("%d kills in %v, %d of them before the model was ready; %d samples published, %d acknowledgements, %d of them of repetitions; %d records replayed, at most %d at once; %d compactions",
		kills, time.Since(begun).Round(time.Second), blind, load.rows, tap.acks(), tap.acks()-load.rows, replayed, longest, compactions)
	if kills >= 100 && (longest == 0 || compactions == 0) {
		t.Errorf("the torture was too mild: %d records replayed at most, %d compactions", longest, compactions)
	}
}

// tortureNumber is a setting from the environment.
func tortureNumber(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(cmp.Or(os.Getenv(name), strconv.FormatUint(otherwise, 10)), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// tortureConfigs writes the configurations of a daemon with a tiny model, one
// without checkpoints and one with many.
func tortureConfigs(t *testing.T, broker string) (never, often, store string) {
	t.Helper()
	store = filepath.Join(t.TempDir(), "edge.db")
	write := func(name string, samples int) string {
		return writeFile(t, name, fmt.Sprintf(`
node: test
mqtt: {servers: ["%s"], max_reconnect_interval: 200ms}
streams: {waveform: {topics: [sensors/waveform], features: [%s]}}
models:
  waveform:
    streams: [waveform]
    inducing: 5
    window: 10
    horizons: [inf, 100]
    classes: {names: ["0", "1", "2"]}
    batch: {max_size: 16, max_wait: 0s}
store: {path: "%s", journal_flush: 5ms, checkpoint: {every: 0s, samples: %d}}
`, broker, strings.Join(new(dataset.Waveform).Features(), ", "), store, samples))
	}
	return write("never.yaml", 1_000_000), write("often.yaml", 20), store
}

// tortureTruth is the learner that nothing ever happens to.
type tortureTruth struct {
	t       *testing.T
	learner *online.Learner
	rows    *dataset.Waveform
	n       int
}

const tortureRows = 3 // seed of the samples

func newTruth(t *testing.T, file string) *tortureTruth {
	t.Helper()
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	learnerConfig, err := cfg.Learner("")
	if err != nil {
		t.Fatal(err)
	}
	l, err := online.NewLearner(learnerConfig)
	if err != nil {
		t.Fatal(err)
	}
	return &tortureTruth{t: t, learner: l, rows: dataset.NewWaveform(tortureRows)}
}

// digest is that of the state after the first n samples; n never falls.
func (tr *tortureTruth) digest(n int) string {
	var row dataset.Row
	for ; tr.n < n; tr.n++ {
		tr.rows.Next(&row)
		if out := tr.learner.Add(&online.Event{Kind: online.Observe, X: row.X, Label: row.Label}); out.Refused != nil {
			tr.t.Fatal(out.Refused)
		}
	}
	return tr.learner.Digest()
}

// tortureLoad publishes labelled samples as fast as they are acknowledged.
type tortureLoad struct {
	tap  *tap
	stop chan struct{}
	done chan error
	rows int // published; to be read when done
}

func (l *tortureLoad) start(t *testing.T, connection string) {
	t.Helper()
	cfg := mqtt.DefaultConfig()
	cfg.Servers = []string{connection}
	pub, err := broker.NewPublisher(t.Context(), cfg, 1, nil, nil, func() {})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer pub.Close()
		l.done <- l.run(t, pub)
	}()
}

func (l *tortureLoad) run(t *testing.T, pub *broker.Publisher) error {
	var (
		p    replay.Player
		row  dataset.Row
		rows = dataset.NewWaveform(tortureRows)
	)
	for {
		select {
		case <-l.stop:
			return pub.Drain(t.Context())
		case <-t.Context().Done():
			return t.Context().Err()
		default:
		}
		if l.rows-l.tap.acknowledged() >= tortureAhead {
			time.Sleep(time.Millisecond)
			continue
		}
		rows.Next(&row)
		if err := pub.Publish(t.Context(), "sensors/waveform", p.AppendSample(nil, fmt.Sprint(row.Number), row.X, row.Label)); err != nil {
			return err
		}
		l.rows++
	}
}

// tap stands between a daemon and its broker, and reads along which samples
// are acknowledged.
type tap struct {
	listener net.Listener
	broker   string
	all      sync.WaitGroup
	flow     sync.RWMutex // locked while nothing passes

	mu     sync.Mutex
	conns  map[net.Conn]bool
	open   int // connections being served
	quiet  *sync.Cond
	suback bool
	upTo   int // number of the last sample acknowledged: acknowledgements come in order
	total  int // acknowledgements
	err    error

	password string // of the last connection
}

func newTap(t *testing.T, broker string) *tap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tap{listener: l, broker: broker, conns: map[net.Conn]bool{}}
	p.quiet = sync.NewCond(&p.mu)
	p.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.conns[c] = true
			p.open++
			p.mu.Unlock()
			p.all.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.cut()
		p.all.Wait()
	})
	return p
}

func (p *tap) serve(daemon net.Conn) {
	defer func() {
		daemon.Close()
		p.mu.Lock()
		delete(p.conns, daemon)
		p.open--
		p.quiet.Broadcast()
		p.mu.Unlock()
	}()
	broker, err := net.Dial("tcp", p.broker)
	if err != nil {
		return
	}
	// Message id → numbers of the samples on their way under it, 0 for one that has
	// none: mosquitto 2.0.11 gives an id out again where more than 65 535 messages
	// wait. Guarded by p.mu.
	samples := map[uint16][]int{}
	var down sync.WaitGroup
	down.Go(func() {
		p.follow(daemon, broker, func(packet packets.ControlPacket) {
			switch m := packet.(type) {
			case *packets.SubackPacket:
				p.suback = true
			case *packets.PublishPacket:
				samples[m.MessageID] = append(samples[m.MessageID], int(gjson.GetBytes(m.Payload, "id").Int()))
			}
		})
		daemon.Close()
	})
	// What a killed daemon has written is still read to its end.
	p.follow(broker, daemon, func(packet packets.ControlPacket) {
		if m, ok := packet.(*packets.ConnectPacket); ok {
			p.password = string(m.Password)
		}
		m, ok := packet.(*packets.PubackPacket)
		if !ok {
			return
		}
		n, under := 0, samples[m.MessageID]
		if len(under) > 0 {
			n, samples[m.MessageID] = under[0], under[1:]
		}
		if len(under) == 0 || n > p.upTo+1 {
			p.err = errors.Join(p.err, fmt.Errorf("message %d, sample %d, is acknowledged after sample %d", m.MessageID, n, p.upTo))
		}
		p.upTo, p.total = max(p.upTo, n), p.total+1
	})
	broker.Close()
	down.Wait()
}

// follow copies packets until an end closes. It looks at each before it passes
// it on: the answer may come at once.
func (p *tap) follow(to, from net.Conn, see func(packets.ControlPacket)) {
	var raw bytes.Buffer
	for r := io.TeeReader(from, &raw); ; raw.Reset() {
		packet, err := packets.ReadPacket(r)
		if err != nil {
			return
		}
		p.mu.Lock()
		see(packet)
		p.mu.Unlock()
		p.flow.RLock()
		to.Write(raw.Bytes()) // an end that is gone reads no more; the other is still read to its end
		p.flow.RUnlock()
	}
}

// cut ends all connections.
func (p *tap) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// settle waits until every connection of the past has been read to its end.
func (p *tap) settle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.open > 0 {
		p.quiet.Wait()
	}
}

func (p *tap) acknowledged() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.upTo
}

func (p *tap) acks() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}

func (p *tap) subscribed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.suback
}

func (p *tap) fault() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
