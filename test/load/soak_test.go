//go:build slow && linux

package load

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"golang.org/x/sys/unix"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/dataset"
	"edge/internal/doctor"
	"edge/internal/replay"
	"edge/internal/terminal"
	"edge/persist"
	"edge/test/files"
	"edge/test/harness"
)

// TestSoak runs a daemon over EDGE_SOAK messages (default 10,000): of ten, four are
// labelled, four unlabelled, one waits for a label that never comes, and one is
// hostile. There is one fault in EDGE_SOAK_QUIET messages (default 10,000) and at
// least twenty, chosen by the seed EDGE_SOAK_SEED: connections cut and stalled, the
// client id taken over, the broker restarted, the disk refusing every write, the
// process paused, stopped and killed. At the end every labelled sample is learnt, once
// and in order, to the last bit. Half of the messages belong to one run: in its second
// half it has no more goroutines, file descriptors, memory or state file than in its
// first.
func TestSoak(t *testing.T) {
	messages := int(harness.Number(t, "EDGE_SOAK", 10_000))
	if testing.Short() {
		messages = min(messages, 4_000)
	}
	seed := harness.Number(t, "EDGE_SOAK_SEED", rand.Uint64())
	t.Logf("%d messages, EDGE_SOAK_SEED=%d", messages, seed)
	s := newSoak(t, seed, "inducing: 5\n    window: 10\n    horizons: [inf, 100]")
	begun := time.Now()
	s.start()
	s.connect()

	faults := max(20, messages/int(harness.Number(t, "EDGE_SOAK_QUIET", 10_000)))
	for i := range faults {
		s.publish(max(messages/faults-soakDuring, 0))
		mortal := i < faults/4 || i >= faults*3/4
		if i == faults/4 {
			s.restart((*harness.Daemon).Kill)
		}
		if !mortal {
			s.measure()
		}
		s.fault(mortal)
		if faults >= 100 && (i+1)%(faults/20) == 0 {
			t.Logf("%d messages, %d faults after %v", s.published, i+1, time.Since(begun).Round(time.Second))
		}
	}
	if err := s.publisher.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !brokertest.Progress(s.tap.Acknowledged, s.labelled) {
		t.Fatalf("%d of %d samples are acknowledged:\n%s", s.tap.Acknowledged(), s.labelled, s.daemon.Log())
	}
	s.account()
	final := s.daemon.Stop()
	if n := int(final.Get("samples").Int()); n != s.labelled {
		t.Errorf("%d samples were labelled, %d are learnt", s.labelled, n)
	}
	if got, want := final.Get("digest").String(), s.truth.Digest(s.labelled); got != want {
		t.Errorf("the digest is %s, that of an undisturbed learner %s", got, want)
	}
	if err := s.tap.Err(); err != nil {
		t.Error(err)
	}
	heap := float64(4 << 20)
	if messages < 100_000 {
		heap = math.Inf(1) // a short run has not reached its level
	}
	s.flat(heap, 2<<20) // the file grows by half of that at once
	took := time.Since(begun)
	t.Logf("%d messages in %v, %d of them labelled; faults: %v", s.published, took.Round(time.Second), s.labelled, s.faults)
	aDay := func(bytes float64) string {
		return terminal.Bytes(uint64(bytes * (24 * time.Hour).Seconds() / took.Seconds()))
	}
	t.Logf("%s written in %d transactions, %.0f bytes for each labelled sample: %s a day at this pace, doctor estimates %s",
		terminal.Bytes(uint64(s.written)), s.transactions, float64(s.written)/float64(s.labelled), aDay(float64(s.written)), aDay(s.estimated()))
}

const soakDuring = 300 // messages while a fault lasts

// soak is a daemon between mosquitto and the truth.
type soak struct {
	t         *testing.T
	rng       *rand.Rand
	broker    *brokertest.Broker
	tap       *harness.Tap
	config    string
	store     string
	web       string
	daemon    *harness.Daemon
	truth     *harness.Truth
	publisher *broker.Publisher
	rows      *dataset.Waveform

	published, labelled, acked, restored int
	faults                               map[string]int
	latest                               []string // faults
	samples                              []soakSample
	written, transactions                int64 // of the state file
}

// soakSample are the resources that a daemon uses at one moment.
type soakSample struct{ goroutines, descriptors, resident, heap, file float64 }

// newSoak returns a soak whose model has additional settings.
func newSoak(t *testing.T, seed uint64, model string) *soak {
	t.Helper()
	s := &soak{t: t, rng: rand.New(rand.NewPCG(seed, 0)), faults: map[string]int{}, rows: dataset.NewWaveform(harness.RowsSeed), web: brokertest.FreeAddress(t)}
	folder := t.TempDir()
	// A restart shall lose nothing, and nothing be dropped while the daemon is away.
	s.broker = brokertest.New(t, brokertest.Keeping(folder))
	s.tap = harness.NewTap(t, s.broker.Addr)
	s.store = filepath.Join(folder, "edge.db")
	s.config = files.Write(t, "soak.yaml", fmt.Sprintf(`
node: test
mqtt: {servers: ["%s"], client_id: soak, keepalive: 5s, max_reconnect_interval: 200ms}
streams: {waveform: {topics: [sensors/waveform], features: [%s], max_payload: 16KiB}}
models:
  waveform:
    streams: [waveform]
    %s
    classes: {names: ["0", "1", "2"], open: false}
    batch: {max_size: 16, max_wait: 0s}
    pending: {max: 100}
store: {path: "%s", journal_flush: 5ms, checkpoint: {every: 0s, samples: 500}, max_size: 8MiB}
http: {listen: "%s"}
`, s.tap.URL(), strings.Join(s.rows.Features(), ", "), model, s.store, s.web))
	s.truth = harness.NewTruth(t, s.config)
	return s
}

func (s *soak) start() {
	s.acked = s.tap.Acknowledged()
	s.daemon = harness.Start(s.t, s.config)
	s.daemon.Await("connected to the broker")
	ready := s.daemon.Await("model ready")
	n := int(ready.Get("samples").Int())
	if n < s.acked || n < s.restored {
		s.t.Fatalf("%d samples were acknowledged and %d restored before, this start restored %d:\n%s", s.acked, s.restored, n, s.daemon.Log())
	}
	if got, want := ready.Get("digest").String(), s.truth.Digest(n); got != want {
		s.daemon.Kill()
		s.t.Fatalf("after %d samples the digest is %s, that of an undisturbed learner %s; the last faults were %v; %s; %v",
			n, got, want, s.latest[max(len(s.latest)-5, 0):], s.difference(), s.tap.Err())
	}
	s.restored = n
}

// difference describes the first record of the journal that is not the published
// sample.
func (s *soak) difference() string {
	store, err := persist.OpenReadOnly(s.store, persist.Options{})
	if err != nil {
		return err.Error()
	}
	defer store.Close()
	info, err := store.Info("waveform")
	if err != nil {
		return err.Error()
	}
	kept, err := store.Load("waveform", info.Shape)
	if err != nil {
		return err.Error()
	}
	var row dataset.Row
	rows := dataset.NewWaveform(harness.RowsSeed)
	for range kept.Seq {
		rows.Next(&row)
	}
	for _, r := range kept.Records {
		if rows.Next(&row); r.Label != row.Label || !slices.Equal(r.X, row.X) {
			found := 0
			for again := dataset.NewWaveform(harness.RowsSeed); found == 0 && again.Number < s.labelled; {
				if again.Next(&row); slices.Equal(r.X, row.X) {
					found = row.Number
				}
			}
			return fmt.Sprintf("record %d of %d to %d is sample %d", r.Seq, kept.Seq+1, info.Last, found)
		}
	}
	return fmt.Sprintf("the difference is in the first %d records, which a checkpoint has replaced", kept.Seq)
}

// connect waits for the daemon's first subscription and makes a publisher.
func (s *soak) connect() {
	s.t.Helper()
	if !brokertest.Eventually(s.tap.Subscribed) {
		s.t.Fatalf("the daemon never subscribes:\n%s", s.daemon.Log())
	}
	s.publisher = brokertest.Publisher(s.t, s.broker.URL())
}

// hostile are payloads without a sample to learn, which must cost little.
var hostile = [][]byte{
	[]byte(`{"features":[1,2`),
	[]byte(`{"features":[` + strings.Repeat("1e400,", 20) + `0],"label":"0"}`),
	[]byte(strings.Repeat(`{"a":`, 1000)),
	[]byte(strings.Repeat(`[`, 10_000)),
	[]byte("{\"x1\":1,\"label\":\"\xff\xfe\"}"),
	[]byte(`{"features":[1,2,3],"features":[4,5,6],"label":"1"}`),
	[]byte(`{"features":[` + strings.Repeat("0,", 20) + `0],"label":"another class"}`),
	[]byte(`{"id":"unknown","label":"1"}`),
	bytes.Repeat([]byte("x"), 100_000), // beyond max_payload
	{},
}

// publish sends messages as fast as labelled ones are acknowledged.
func (s *soak) publish(messages int) {
	var (
		p   replay.Player
		row dataset.Row
	)
	send := func(payload []byte) {
		if err := s.publisher.Publish(s.t.Context(), "sensors/waveform", payload); err != nil {
			s.t.Fatal(err)
		}
		s.published++
	}
	asking := dataset.NewWaveform(s.rng.Uint64())
	for i := range messages {
		switch kind := i % 10; {
		case kind < 4:
			for wait := time.Now(); s.labelled-s.tap.Acknowledged() >= harness.Ahead; time.Sleep(time.Millisecond) {
				if time.Since(wait) > brokertest.Patience {
					s.t.Fatalf("%d of %d samples are acknowledged:\n%s", s.tap.Acknowledged(), s.labelled, s.daemon.Log())
				}
			}
			s.rows.Next(&row)
			send(p.Sample(strconv.Itoa(row.Number), row.X, row.Label))
			s.labelled++
		case kind < 9:
			asking.Next(&row)
			payload := p.Sample("w"+strconv.Itoa(s.published), row.X, "")
			if kind < 8 { // without an id nothing waits for a label
				payload = append([]byte("{"), payload[bytes.IndexByte(payload, ',')+1:]...)
			}
			send(payload)
		default:
			send(hostile[s.published/10%len(hostile)])
		}
	}
}

// fault disturbs the daemon, its broker or its disk for a while, during which messages
// arrive.
func (s *soak) fault(mortal bool) {
	ms := func(from, to int) time.Duration { return time.Duration(from+s.rng.IntN(to-from)) * time.Millisecond }
	kinds := []string{"cut", "stall", "clash", "broker", "disk", "held", "verify"}
	if mortal {
		kinds = append(kinds, "killed", "killed", "killed", "stopped")
	}
	kind := kinds[s.rng.IntN(len(kinds))]
	s.faults[kind]++
	s.latest = append(s.latest, fmt.Sprintf("%s at sample %d", kind, s.labelled))
	// Messages arrive during every fault.
	done := make(chan struct{})
	after, short, long := ms(1, 100), ms(10, 500), ms(50, 1000)
	go func() {
		defer close(done)
		time.Sleep(after)
		switch kind {
		case "cut":
			s.tap.Cut()
		case "stall":
			s.tap.Stall(long)
		case "clash":
			s.clash()
		case "broker":
			s.broker.Restart(s.t)
		case "disk":
			s.refuseWrites(long)
		case "held":
			s.daemon.Process.Signal(syscall.SIGSTOP)
			time.Sleep(short)
			s.daemon.Process.Signal(syscall.SIGCONT)
		}
	}()
	s.publish(soakDuring)
	<-done
	switch kind {
	case "verify":
		if _, r := harness.Verify(s.t, s.store); !r.Sound || !r.InUse {
			s.t.Errorf("beside the daemon verify finds %+v", r)
		}
	case "killed":
		s.restart((*harness.Daemon).Kill)
	case "stopped":
		s.restart(func(d *harness.Daemon) {
			d.Process.Signal(syscall.SIGTERM)
			<-d.Ended // the broker sends uncommitted messages again
		})
	}
}

// refuseWrites lets every write to a file fail for a while, with EFBIG: it limits the
// size of files to one byte.
func (s *soak) refuseWrites(d time.Duration) {
	limit := func(n uint64) {
		if err := unix.Prlimit(s.daemon.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: unix.RLIM_INFINITY}, nil); err != nil {
			s.t.Error(err)
		}
	}
	limit(1)
	time.Sleep(d)
	limit(unix.RLIM_INFINITY)
}

// clash is another client with the daemon's id, which acknowledges nothing.
func (s *soak) clash() {
	opts := paho.NewClientOptions().AddBroker("tcp://" + s.broker.Addr).SetClientID("soak").
		SetCleanSession(false).SetAutoReconnect(false).SetAutoAckDisabled(true).SetConnectTimeout(5 * time.Second)
	c := paho.NewClient(opts)
	if c.Connect().WaitTimeout(10 * time.Second) {
		c.Disconnect(0)
	}
}

func (s *soak) restart(end func(*harness.Daemon)) {
	s.account()
	end(s.daemon)
	s.tap.Settle()
	s.start()
}

// account adds the bytes and transactions that the daemon has written since its start.
func (s *soak) account() {
	s.written += int64(s.metric("edge_store_written_bytes_total"))
	s.transactions += int64(s.metric("edge_store_transactions_total"))
}

// estimated returns the bytes that the transactions should have written by the
// measurement of doctor.
func (s *soak) estimated() float64 {
	cfg, err := config.Load(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	w, err := doctor.MeasureEndurance(s.t.Context(), cfg, s.t.TempDir(), 1e4, 5*time.Second)
	if err != nil {
		s.t.Fatal(err)
	}
	checkpoints := float64(s.labelled / 500)
	return (float64(s.transactions)-checkpoints)*w.CommitBytes + checkpoints*w.CheckpointBytes
}

func (s *soak) metric(name string) float64 {
	s.t.Helper()
	values, err := scrape(s.web)
	if err != nil {
		s.t.Fatal(err)
	}
	v, err := strconv.ParseFloat(values[name], 64)
	if err != nil {
		s.t.Fatalf("metric %s: %v", name, err)
	}
	return v
}

// scrape returns the metrics that have no labels.
func scrape(addr string) (map[string]string, error) {
	c := http.Client{Timeout: brokertest.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get("http://" + addr + "/metrics")
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			values[name] = value
		}
	}
	return values, err
}

// measure records the resources of the daemon.
func (s *soak) measure() {
	info, err := os.Stat(s.store)
	if err != nil {
		s.t.Fatal(err)
	}
	s.samples = append(s.samples, soakSample{
		s.metric("go_goroutines"), s.metric("process_open_fds"), s.metric("process_resident_memory_bytes"),
		s.metric("go_memstats_heap_alloc_bytes"), float64(info.Size()),
	})
}

// flat fails if the maxima of the second half exceed those of the first; heap and file
// may do so by a number of bytes.
func (s *soak) flat(heap, file float64) {
	half := len(s.samples) / 2
	most := func(of []soakSample) (m soakSample) {
		for _, v := range of {
			m.goroutines, m.descriptors = max(m.goroutines, v.goroutines), max(m.descriptors, v.descriptors)
			m.resident, m.heap, m.file = max(m.resident, v.resident), max(m.heap, v.heap), max(m.file, v.file)
		}
		return m
	}
	a, b := most(s.samples[:half]), most(s.samples[half:])
	// A second connection during a fault has goroutines and descriptors of its
	// own; what leaks stays.
	rest := b
	for _, v := range s.samples[half:] {
		rest.goroutines, rest.descriptors = min(rest.goroutines, v.goroutines), min(rest.descriptors, v.descriptors)
	}
	s.t.Logf("the first and the second half of one run: goroutines %g, %g; file descriptors %g, %g; resident MiB %.1f, %.1f; heap MiB %.1f, %.1f; file KiB %.0f, %.0f",
		a.goroutines, b.goroutines, a.descriptors, b.descriptors, a.resident/(1<<20), b.resident/(1<<20), a.heap/(1<<20), b.heap/(1<<20), a.file/1024, b.file/1024)
	var errs []error
	for _, m := range []struct {
		what                 string
		first, second, slack float64
	}{
		{"goroutines", a.goroutines, rest.goroutines, 0},
		{"file descriptors", a.descriptors, rest.descriptors, 0},
		{"resident bytes", a.resident, b.resident, 2 * heap}, // the collector's rhythm
		{"bytes of heap", a.heap, b.heap, heap},
		{"bytes of the file", a.file, b.file, file},
	} {
		if m.second > m.first+m.slack {
			errs = append(errs, fmt.Errorf("%s grow from %g to %g", m.what, m.first, m.second))
		}
	}
	if err := errors.Join(errs...); err != nil {
		s.t.Error(err)
	}
}
