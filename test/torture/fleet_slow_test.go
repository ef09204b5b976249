//go:build slow

package torture

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/dataset"
	"edge/internal/replay"
	"edge/online"
	"edge/online/fleet"
	"edge/persist"
	"edge/stream/mqtt"
	"edge/test/harness"
)

// TestTortureOfFleet kills three daemons that learn as one, each with labels of its own,
// EDGE_TORTURE times (default 10). One of them never sees a class that it has from the
// others. A quarter of the kills come right after a merge. After each kill the journal
// continues the one that was read before, bit for bit, with the published samples in
// order, each once. The kills go on until each daemon has merged another member. After each start the state is that of a learner that was fed the
// whole journal since the first start, merges included, without an interruption; so is the
// final state of a daemon that stopped in good order.
func TestTortureOfFleet(t *testing.T) {
	kills, seed := int(harness.Number(t, "EDGE_TORTURE", 10)), harness.Number(t, "EDGE_TORTURE_SEED", rand.Uint64())
	t.Logf("%d kills, EDGE_TORTURE_SEED=%d", kills, seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	b := brokertest.New(t, brokertest.Servers["mosquitto"].Start)
	stop := make(chan struct{})
	nodes := make([]*tortured, 3)
	for i := range nodes {
		nodes[i] = newTortured(t, b, i, []int{1000, 2000, 1_000_000}[i])
		nodes[i].start()
	}
	for _, n := range nodes {
		if !brokertest.Eventually(n.tap.Subscribed) {
			t.Fatalf("%s never subscribes:\n%s", n.name, n.Log())
		}
		go func() { n.sent <- n.publish(b.URL(), stop) }()
	}
	began, blind := time.Now(), 0
	const more = 10 // kills at most, on a machine that is too slow for merges between the others
	i := 0
	for ; i < kills || i < kills+more && slices.ContainsFunc(nodes, (*tortured).lonely); i++ {
		n, pause := nodes[rng.IntN(len(nodes))], time.Duration(rng.Int64N(int64(1500*time.Millisecond)))
		merged := rng.IntN(4) == 0
		for _, other := range slices.Backward(nodes) { // before its journal drops a record that was not read
			if other.overdue() {
				n, pause, merged = other, 0, false
			}
		}
		if i >= kills {
			n, merged = nodes[slices.IndexFunc(nodes, (*tortured).lonely)], true
		}
		if merged {
			n.awaitAnotherMerge()
			pause = time.Duration(rng.Int64N(int64(20 * time.Millisecond)))
		}
		time.Sleep(pause)
		n.Kill()
		if !n.look() {
			blind++
		}
		if i%100 == 99 {
			t.Logf("%d kills in %v", i+1, time.Since(began).Round(time.Second))
		}
		n.start()
	}
	close(stop)
	records, merges, imported := 0, 0, 0
	for _, n := range nodes {
		n.finish(len(nodes) - 1)
		records, merges = records+len(n.history), merges+n.merges
		imported += n.imported
	}
	t.Logf("%d kills in %v, %d of them before the model was ready; %d records, %d merges with members, %d classes imported; %d records replayed, at most %d at once",
		i, time.Since(began).Round(time.Second), blind, records, merges, imported, nodes[0].replayed+nodes[1].replayed+nodes[2].replayed,
		max(nodes[0].longest, nodes[1].longest, nodes[2].longest))
	if imported == 0 {
		t.Error("no merge brought a class")
	}
}

// tortured is a daemon of a fleet, with the journal that it has written since its first
// start.
type tortured struct {
	*harness.Daemon
	t             *testing.T
	name          string
	config, store string
	samples       int // between two checkpoints
	seed          uint64
	lacks         string // label that it never sees
	tap           *harness.Tap
	sent          chan error
	published     int // to be read after sent

	rows     *dataset.Waveform // those that were published, for the comparison
	history  []online.Record
	truth    *online.Learner // it is fed history
	learnt   int             // records of history that truth has learnt
	observed atomic.Int64    // samples in history
	merges   int             // in history, with members
	imported int             // classes that merges brought to truth

	replayed, longest int // records
}

func newTortured(t *testing.T, b *brokertest.Broker, number, samples int) *tortured {
	t.Helper()
	n := &tortured{
		t: t, name: fmt.Sprint("node", number), samples: samples, seed: uint64(harness.RowsSeed + number), tap: harness.NewTap(t, b.Addr),
		store: filepath.Join(t.TempDir(), "edge.db"), sent: make(chan error, 1),
	}
	n.rows = dataset.NewWaveform(n.seed)
	if number == 2 {
		n.lacks = "2"
	}
	n.config = n.configure(samples)
	n.truth = harness.NewTruth(t, n.config).Learner
	return n
}

// configure writes a configuration with that many samples between two checkpoints.
func (n *tortured) configure(samples int) (path string) {
	n.t.Helper()
	unseen := "report"
	if n.lacks != "" {
		unseen = "mix"
	}
	return harness.WriteFile(n.t, n.name+".yaml", fmt.Sprintf(`
node: %[1]s
mqtt: {servers: ["%[2]s"], max_reconnect_interval: 200ms}
streams: {waveform: {topics: [sensors/%[1]s], features: [%[3]s]}}
models:
  waveform:
    streams: [waveform]
    inducing: 8
    window: 60
    horizons: [inf, 100]
    batch: {max_size: 16, max_wait: 0s}
    fleet: {concept: wave, every: 20, interval: 1s, merge_every: 1s, unseen: %[4]s}
store: {path: "%[5]s", journal_flush: 5ms, checkpoint: {every: 0s, samples: %[6]d, size: 200MiB}}
http: {listen: ""}
`, n.name, n.tap.URL(), strings.Join(n.rows.Features(), ", "), unseen, n.store, samples))
}

func (n *tortured) start() { n.Daemon = harness.Start(n.t, n.config) }

// next returns the next row of the node's labels.
func (n *tortured) next(from *dataset.Waveform, row *dataset.Row) {
	for from.Next(row); row.Label == n.lacks; {
		from.Next(row)
	}
}

// publish publishes some 100 rows a second until stop is closed.
func (n *tortured) publish(connection string, stop chan struct{}) error {
	cfg := mqtt.DefaultConfig()
	cfg.Servers = []string{connection}
	pub, err := broker.NewPublisher(n.t.Context(), cfg, 1, nil, nil, func() {})
	if err != nil {
		return err
	}
	defer pub.Close()
	var (
		p    replay.Player
		row  dataset.Row
		rows = dataset.NewWaveform(n.seed)
	)
	for {
		select {
		case <-stop:
			return pub.Drain(n.t.Context())
		case <-n.t.Context().Done():
			return n.t.Context().Err()
		case <-time.After(10 * time.Millisecond):
		}
		if n.published-n.tap.Acknowledged() >= harness.Ahead || n.published-int(n.observed.Load()) >= n.samples/2 {
			continue // the daemon is behind, or a checkpoint may drop a record that was not read
		}
		n.next(rows, &row)
		if err := pub.Publish(n.t.Context(), "sensors/"+n.name, p.AppendSample(nil, fmt.Sprint(n.published+1), row.X, row.Label)); err != nil {
			return err
		}
		n.published++
	}
}

// overdue reports whether so many samples are acknowledged since the journal was read that
// a checkpoint may drop some of them soon.
func (n *tortured) overdue() bool { return n.tap.Acknowledged()-int(n.observed.Load()) > n.samples/4 }

// lonely reports whether the journal, as far as it was read, has no merge with another
// member, or no class of the fleet that the node lacks.
func (n *tortured) lonely() bool { return n.merges == 0 || n.lacks != "" && n.imported == 0 }

// awaitAnotherMerge waits until the daemon has merged once more, if the others have
// something new. A daemon that nobody in the fleet knows yet waits for five seconds before
// its first merge.
func (n *tortured) awaitAnotherMerge() {
	merged := func() int { return strings.Count(n.Log(), `"fleet merged"`) }
	before := merged()
	brokertest.Eventually(func() bool { return merged() > before })
}

// look compares the state that the killed daemon began with, if it came that far, and the
// journal that it leaves. It reports whether the daemon came that far.
func (n *tortured) look() (ready bool) {
	n.t.Helper()
	n.tap.Settle()
	line, ready := n.Logged("model ready")
	if ready {
		records := int(line.Get("replayed").Int())
		n.replayed, n.longest = n.replayed+records, max(n.longest, records)
		n.compare(int(line.Get("restored").Int())+records, line.Get("digest").String())
	}
	if _, damaged := n.Logged("part of what the model had learnt is lost"); damaged {
		n.t.Fatalf("a kill damages the file of %s:\n%s", n.name, n.Log())
	}
	acked := n.tap.Acknowledged()
	n.read()
	if observed := int(n.observed.Load()); observed < acked {
		n.t.Fatalf("%s: %d samples were acknowledged, the journal has %d:\n%s", n.name, acked, observed, n.Log())
	}
	return ready
}

// compare holds the digest after a number of records against that of the reference.
func (n *tortured) compare(records int, digest string) {
	n.t.Helper()
	if records > len(n.history) || records < n.learnt {
		n.t.Fatalf("%s continues from record %d; the journal had %d, an earlier start %d:\n%s", n.name, records, len(n.history), n.learnt, n.Log())
	}
	for ; n.learnt < records; n.learnt++ {
		out := n.truth.Add(&n.history[n.learnt].Event)
		if out.Refused != nil {
			n.t.Fatalf("%s: record %d is refused: %v", n.name, n.learnt+1, out.Refused)
		}
		n.imported += len(out.Imported)
	}
	if want := n.truth.Digest(); digest != want {
		n.t.Fatalf("%s: after %d records the digest is %s, that of an undisturbed learner %s:\n%s", n.name, records, digest, want, n.Log())
	}
}

// read appends the new records of the journal to the history, and compares them with the
// published rows, and the earlier ones with the history.
func (n *tortured) read() {
	n.t.Helper()
	var row dataset.Row
	for _, r := range journalOf(n.t, n.store, "waveform") {
		switch have := uint64(len(n.history)); {
		case r.Seq > have+1:
			n.t.Fatalf("%s: the journal begins with record %d, %d were read", n.name, r.Seq, have)
		case r.Seq <= have:
			if before := n.history[r.Seq-1]; !reflect.DeepEqual(before.Event, r.Event) {
				n.t.Fatalf("%s: record %d was %+v, now it is %+v", n.name, r.Seq, before.Event, r.Event)
			}
			continue
		}
		n.history = append(n.history, r)
		switch r.Kind {
		case online.Observe:
			observed := n.observed.Add(1)
			if n.next(n.rows, &row); !slices.Equal(row.X, r.X) || row.Label != r.Label {
				n.t.Fatalf("%s: record %d is %v %s, sample %d is %v %s", n.name, r.Seq, r.X, r.Label, observed, row.X, row.Label)
			}
		case online.Merge:
			m, err := fleet.DecodeMerge(r.State)
			if err != nil {
				n.t.Fatal(err)
			}
			if m.Taken() > 0 {
				n.merges++
			}
		default:
			n.t.Fatalf("%s: record %d is of kind %d", n.name, r.Seq, r.Kind)
		}
	}
}

// finish waits until the daemon has learnt all samples and has merged that many others,
// stops it, and compares its final state.
func (n *tortured) finish(others int) {
	n.t.Helper()
	if err := <-n.sent; err != nil {
		n.t.Fatal(err)
	}
	if !brokertest.Progress(n.tap.Acknowledged, n.published) {
		n.t.Fatalf("%s acknowledges %d of %d samples:\n%s", n.name, n.tap.Acknowledged(), n.published, n.Log())
	}
	if !brokertest.Eventually(func() bool { return strings.Contains(n.Log(), fmt.Sprintf(`"of":%d`, others)) }) {
		n.t.Fatalf("%s does not merge %d others:\n%s", n.name, others, n.Log())
	}
	n.Kill()
	n.look()
	n.config = n.configure(1_000_000) // the checkpoint at the stop drops only what was read
	n.start()
	n.Await("model ready")
	final := n.Stop()
	n.look()
	n.compare(len(n.history), final.Get("digest").String())
	if samples := int(final.Get("samples").Int()); samples != n.published || int(n.observed.Load()) != n.published {
		n.t.Errorf("%s: %d samples were published, %d journalled, %d learnt", n.name, n.published, n.observed.Load(), samples)
	}
	if n.merges == 0 {
		n.t.Errorf("%s never merged another member", n.name)
	}
	if err := n.tap.Err(); err != nil {
		n.t.Error(err)
	}
}

// journalOf reads all records in the journal of a model; none before the file has it.
func journalOf(t *testing.T, store, model string) []online.Record {
	t.Helper()
	s, err := persist.OpenReadOnly(store, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	info, err := s.Info(model)
	if errors.Is(err, persist.ErrModel) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	records, err := s.Records(model, info.First-1, int(info.Last-(info.First-1)))
	if err != nil {
		t.Fatal(err)
	}
	return records
}
