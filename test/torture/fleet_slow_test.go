//go:build slow

package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	"edge/internal/config"
	"edge/internal/dataset"
	"edge/internal/replay"
	"edge/online"
	"edge/online/fleet"
	"edge/persist"
	"edge/stream/membership"
	"edge/test/files"
	"edge/test/harness"
)

// TestTortureOfFleet kills three daemons that learn as one, each with labels of its own,
// EDGE_TORTURE times. A quarter of the kills come right after a merge. After each kill the
// journal continues the one that was read before, bit for bit, with the published samples in
// order, each once. The kills go on until each daemon has merged another member. After each
// start the state is that of a learner that was fed the whole journal since the first start,
// merges included, without an interruption; so is the final state of a daemon that stopped in
// good order.
//
// With bases of their own one of the daemons never sees a class that it has from the others.
// With a shared basis a daemon is asked for a new one before each third kill.
func TestTortureOfFleet(t *testing.T) {
	for basis, kills := range map[string]uint64{membership.BasisOwn: 10, membership.BasisShared: 4} {
		t.Run(basis, func(t *testing.T) {
			t.Parallel() // most of the time passes between the kills
			tortureFleet(t, basis, int(harness.Number(t, "EDGE_TORTURE", kills)))
		})
	}
}

// Long: one loop over kills with their checks and counts.
func tortureFleet(t *testing.T, basis string, kills int) {
	seed := harness.Number(t, "EDGE_TORTURE_SEED", rand.Uint64())
	t.Logf("%d kills, EDGE_TORTURE_SEED=%d", kills, seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	b := brokertest.New(t, brokertest.Servers["mosquitto"].Start)
	stop := make(chan struct{})
	nodes := make([]*tortured, 3)
	for i := range nodes {
		nodes[i] = newTortured(t, b, basis, i, []int{1000, 2000, 1_000_000}[i])
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
		if basis == membership.BasisShared && i%3 == 1 {
			nodes[rng.IntN(len(nodes))].rebase(b, []string{"first", "pooled"}[rng.IntN(2)])
			merged = true
		}
		if merged {
			n.awaitAnotherMerge()
			pause = time.Duration(rng.Int64N(int64(20 * time.Millisecond)))
			if basis == membership.BasisShared && rng.IntN(2) == 0 { // the others learn of a basis later
				pause = time.Duration(rng.Int64N(int64(3 * time.Second)))
			}
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
	if basis == membership.BasisShared {
		nodes[0].rebase(b, "first")
		for _, n := range nodes[1:] {
			n.awaitBasis(nodes[0].name)
		}
	}
	records := 0
	var all counts
	for _, n := range nodes {
		n.finish(len(nodes) - 1)
		records += len(n.history)
		all.add(&n.counts)
	}
	t.Logf("%d kills in %v, %d of them before the model was ready; %d records, %+v", i, time.Since(began).Round(time.Second), blind, records, all)
	if all.imported == 0 && basis == membership.BasisOwn {
		t.Error("no merge brought a class")
	}
	if basis == membership.BasisShared && (all.adopted == 0 || all.births < 2) {
		t.Errorf("bases were adopted %d times, the last one is number %d", all.adopted, all.births)
	}
}

// counts say what the journals of daemons hold, and what their starts replayed.
type counts struct {
	merges   int    // with members
	imported int    // classes that merges brought
	adopted  int    // merges that begin with a common basis
	averaged int    // merges that move the parameters of one
	births   uint64 // highest number of a common basis

	replayed, longest int // records of all starts, and of one
}

func (c *counts) add(o *counts) {
	c.merges, c.imported, c.adopted, c.averaged = c.merges+o.merges, c.imported+o.imported, c.adopted+o.adopted, c.averaged+o.averaged
	c.births, c.replayed, c.longest = max(c.births, o.births), c.replayed+o.replayed, max(c.longest, o.longest)
}

// count notes a merge.
func (c *counts) count(m *fleet.Merge) {
	if m.Taken() > 0 {
		c.merges++
	}
	if s := m.Sharing; s != nil {
		if c.births = max(c.births, s.Number); s.Start != nil {
			c.adopted++
		}
		if len(s.Move) > 0 {
			c.averaged++
		}
	}
}

// tortured is a daemon of a fleet, with the journal that it has written since its first
// start.
type tortured struct {
	*harness.Daemon
	t             *testing.T
	name, basis   string
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
	counts
}

func newTortured(t *testing.T, b *brokertest.Broker, basis string, number, samples int) *tortured {
	t.Helper()
	n := &tortured{
		t: t, name: fmt.Sprint("node", number), basis: basis, samples: samples, seed: uint64(harness.RowsSeed + number), tap: harness.NewTap(t, b.Addr),
		store: filepath.Join(t.TempDir(), "edge.db"), sent: make(chan error, 1),
	}
	n.rows = dataset.NewWaveform(n.seed)
	if number == 2 && basis == membership.BasisOwn { // a basis is shared where classes have like frequencies
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
	return files.Write(n.t, n.name+".yaml", fmt.Sprintf(`
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
    fleet: {concept: wave, every: 20, interval: 1s, merge_every: 1s, unseen: %[4]s, basis: %[7]s}
store: {path: "%[5]s", journal_flush: 5ms, checkpoint: {every: 0s, samples: %[6]d, size: 200MiB}}
http: {listen: ""}
control: {enabled: true}
`, n.name, n.tap.URL(), strings.Join(n.rows.Features(), ", "), unseen, n.store, samples, n.basis))
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
	pub, err := broker.NewPublisher(n.t.Context(), brokertest.Config(connection), 1, broker.Listener{})
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
		if err := pub.Publish(n.t.Context(), "sensors/"+n.name, p.Sample(fmt.Sprint(n.published+1), row.X, row.Label)); err != nil {
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

// rebase asks the daemon for a new common basis until it takes the request.
func (n *tortured) rebase(b *brokertest.Broker, how string) {
	n.t.Helper()
	cfg, err := config.Load(n.config)
	if err != nil {
		n.t.Fatal(err)
	}
	cfg.MQTT.Servers = []string{b.URL()} // the tap is for the daemon
	if !brokertest.Eventually(func() bool {
		ctx, cancel := context.WithTimeout(n.t.Context(), 5*time.Second)
		defer cancel()
		_, err = broker.Ask(ctx, cfg, "fleet_rebase/waveform", []byte(`{"basis":"`+how+`"}`), io.Discard)
		return err == nil
	}) {
		n.t.Fatalf("%s takes no request for a basis: %v\n%s", n.name, err, n.Log())
	}
}

// awaitBasis waits until the daemon has adopted a basis of another one since its start.
func (n *tortured) awaitBasis(author string) {
	n.t.Helper()
	if !brokertest.Eventually(func() bool { return strings.Contains(n.Log(), "of "+author+" is adopted") }) {
		n.t.Fatalf("%s adopts no basis of %s:\n%s", n.name, author, n.Log())
	}
}

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
			n.count(m)
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
