package torture

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/dataset"
	"edge/internal/replay"
	"edge/test/files"
	"edge/test/harness"
)

// TestTorture kills a daemon at random instants under load, EDGE_TORTURE times
// (default 100, and 4 without the build tag slow). After each start:
//
//   - it has every sample that it ever acknowledged, and acknowledged in order;
//   - its state is, bit for bit, that of a learner of exactly the first n samples,
//     each once and undisturbed;
//   - at the end n is the number of published samples.
//
// A quarter of the kills come at any time after the start of the process, so that
// some fall into opening, compaction or replay; the others come after the connection
// and some more acknowledgements, so that they need no fast machine. The frequency of
// checkpoints has phases: forty runs without any let the journal grow, ten with one
// every few samples let it shrink, and the next start compacts the file.
//
// EDGE_TORTURE_SEED repeats the choice of the instants; the step of the daemon at
// which they fall depends on the machine.
//
// Long: one loop over kills with their checks and counts.
func TestTorture(t *testing.T) {
	kills := harness.Number(t, "EDGE_TORTURE", uint64(brokertest.Brief(100, 4)))
	seed := harness.Number(t, "EDGE_TORTURE_SEED", rand.Uint64())
	t.Logf("%d kills, EDGE_TORTURE_SEED=%d", kills, seed)
	rng := rand.New(rand.NewPCG(seed, 0))

	broker := brokertest.New(t, brokertest.Mosquitto)
	tap := harness.NewTap(t, broker.Addr)
	never, often, store := tortureConfigs(t, tap.URL())
	truth := harness.NewTruth(t, never)
	load := &tortureLoad{tap: tap, stop: make(chan struct{}), done: make(chan error, 1)}

	begun := time.Now()
	var (
		known, acked       int // samples that the last start had; that are acknowledged
		blind, compactions int // kills before the model was ready; starts that made the file smaller
		replayed, longest  int // records
		fileSize           int64
	)
	// look checks the state that a daemon logged at its start, if it came that far.
	look := func(d *harness.Daemon) bool {
		ready, ok := d.Logged("model ready")
		if !ok {
			return false
		}
		n := int(ready.Get("samples").Int())
		if n < acked {
			t.Fatalf("%d samples were acknowledged, after the start there are %d:\n%s", acked, n, d.Log())
		}
		if n < known {
			t.Fatalf("%d samples were restored, after the next start %d:\n%s", known, n, d.Log())
		}
		if got, want := ready.Get("digest").String(), truth.Digest(n); got != want {
			t.Fatalf("after %d samples the digest is %s, that of an undisturbed learner %s:\n%s", n, got, want, d.Log())
		}
		if _, damaged := d.Logged("part of what the model had learnt is lost"); damaged {
			t.Fatalf("a kill damages the file:\n%s", d.Log())
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
		acked = tap.Acknowledged()
		d := harness.Start(t, config)
		if i == 0 { // the broker keeps nothing for a client that it never met
			if !brokertest.Eventually(tap.Subscribed) {
				t.Fatalf("the daemon never subscribes:\n%s", d.Log())
			}
			load.start(t, broker.URL())
		}
		if i > 0 && rng.IntN(4) == 0 {
			time.Sleep(time.Duration(rng.Int64N(int64(200 * time.Millisecond))))
		} else {
			d.Await("connected to the broker")
			samples := 600  // until the kill, at most
			if i%50 >= 47 { // enough for a checkpoint of the whole journal
				samples = 3000
			}
			until := acked + rng.IntN(samples)
			if !brokertest.Progress(tap.Acknowledged, until) {
				t.Fatalf("%d samples are acknowledged, want %d:\n%s", tap.Acknowledged(), until, d.Log())
			}
			if i%50 >= 47 && strings.Contains(d.Log(), "the model recovers: ") { // other kills end a recovery
				d.Await("the model has recovered")
			}
			time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Millisecond)))) // at any moment of what follows
		}
		d.Kill()
		tap.Settle()
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
	acked = tap.Acknowledged()
	last := harness.Start(t, often)
	if err := <-load.done; err != nil {
		t.Fatal(err)
	}
	if !brokertest.Progress(tap.Acknowledged, load.rows) {
		t.Fatalf("%d of %d samples are acknowledged:\n%s", tap.Acknowledged(), load.rows, last.Log())
	}
	final := last.Stop()
	look(last)
	if n := int(final.Get("samples").Int()); n != load.rows {
		t.Errorf("%d samples were published, %d learnt", load.rows, n)
	}
	if got, want := final.Get("digest").String(), truth.Digest(load.rows); got != want {
		t.Errorf("the digest is %s, that of an undisturbed learner %s", got, want)
	}
	if err := tap.Err(); err != nil {
		t.Error(err)
	}
	t.Logf("%d kills in %v, %d of them before the model was ready; %d samples published, %d acknowledgements, %d of them of repetitions; %d records replayed, at most %d at once; %d compactions",
		kills, time.Since(begun).Round(time.Second), blind, load.rows, tap.Acks(), tap.Acks()-load.rows, replayed, longest, compactions)
	if kills >= 100 && (longest == 0 || compactions == 0) {
		t.Errorf("the torture was too mild: %d records replayed at most, %d compactions", longest, compactions)
	}
}

// tortureConfigs writes the configurations of a daemon with a tiny model, one
// without checkpoints and one with many.
func tortureConfigs(t *testing.T, broker string) (never, often, store string) {
	t.Helper()
	store = filepath.Join(t.TempDir(), "edge.db")
	write := func(name string, samples int) string {
		return files.Write(t, name, fmt.Sprintf(`
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

// tortureLoad publishes labelled samples as fast as they are acknowledged.
type tortureLoad struct {
	tap  *harness.Tap
	stop chan struct{}
	done chan error
	rows int // published; to be read when done
}

func (l *tortureLoad) start(t *testing.T, connection string) {
	t.Helper()
	pub := brokertest.Publisher(t, connection)
	go func() {
		defer pub.Close()
		l.done <- l.run(t, pub)
	}()
}

func (l *tortureLoad) run(t *testing.T, pub *broker.Publisher) error {
	var (
		p    replay.Player
		row  dataset.Row
		rows = dataset.NewWaveform(harness.RowsSeed)
	)
	for {
		select {
		case <-l.stop:
			return pub.Drain(t.Context())
		case <-t.Context().Done():
			return t.Context().Err()
		default:
		}
		if l.rows-l.tap.Acknowledged() >= harness.Ahead {
			time.Sleep(time.Millisecond)
			continue
		}
		rows.Next(&row)
		if err := pub.Publish(t.Context(), "sensors/waveform", p.Sample(fmt.Sprint(row.Number), row.X, row.Label)); err != nil {
			return err
		}
		l.rows++
	}
}
