//go:build slow

package torture

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/persist"
	"edge/stream/signal"
	"edge/test/files"
	"edge/test/harness"
)

// signalRow returns row i of one device: its time in ms, its value and its label.
func signalRow(i int) (ms int64, x float64, label string) {
	return 500_000_000_000 + int64(10*i), 100 * rand.New(rand.NewPCG(uint64(i), 7)).Float64(), []string{"ok", "worn"}[i/300%2]
}

// TestTortureOfWindows kills a daemon with windows by time EDGE_TORTURE times (default
// 30) while rows with times arrive; a quarter of the ends are orderly stops, of which the
// last checkpoint shortens the journal. After each kill every sample in the journal is one
// of an undisturbed run over all rows, byte for byte, with its label; none was there
// before under another number, and the number of samples never falls. At the end every
// window is learnt, but for those that a kill cut.
func TestTortureOfWindows(t *testing.T) {
	kills, seed := int(harness.Number(t, "EDGE_TORTURE", 30)), harness.Number(t, "EDGE_TORTURE_SEED", rand.Uint64())
	t.Logf("%d kills, EDGE_TORTURE_SEED=%d", kills, seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	b := brokertest.New(t, brokertest.Mosquitto)
	tap := harness.NewTap(t, b.Addr)
	store := filepath.Join(t.TempDir(), "edge.db")
	path := files.Write(t, "windows.yaml", fmt.Sprintf(`
node: test
mqtt: {servers: ["%s"], max_reconnect_interval: 200ms}
streams:
  acc: {topics: [sensors/acc], signals: [x], window: {length: 200ms, hop: 100ms, max_gap: 10s}}
models:
  acc: {streams: [acc], inducing: 5, window: 10, horizons: [inf, 100], classes: {names: [ok, worn]}, batch: {max_size: 16, max_wait: 0s}, pending: {max: 100}}
store: {path: "%s", journal_flush: 5ms, checkpoint: {every: 0s, samples: 1000000}}
`, tap.URL(), store))
	var published int
	stop, done := make(chan struct{}), make(chan error, 1)
	known, seen := uint64(0), map[string]uint64{}
	look := func() {
		t.Helper()
		tap.Settle()
		kept := loadWindows(t, path, store)
		if last := kept.Seq + uint64(len(kept.Records)); last < known {
			t.Fatalf("%d samples were journalled, now %d", known, last)
		} else {
			known = last
		}
		want := undisturbed(t, path, tap.Acknowledged()+2*harness.Ahead)
		for _, r := range kept.Records {
			sample := fmt.Sprint(r.X, r.Label)
			if before, twice := seen[sample]; !want[sample] || twice && before != r.Seq {
				t.Fatalf("record %d, %s: in an undisturbed run %v, earlier in the journal %d", r.Seq, sample, want[sample], before)
			}
			seen[sample] = r.Seq
		}
	}
	stops := 0
	for i := range kills {
		acked := tap.Acknowledged()
		d := harness.Start(t, path)
		if i == 0 {
			if !brokertest.Eventually(tap.Subscribed) {
				t.Fatalf("the daemon never subscribes:\n%s", d.Log())
			}
			go func() { done <- publishRows(t, b.URL(), tap, stop, &published) }()
		}
		d.Await("connected to the broker")
		if !brokertest.Progress(tap.Acknowledged, acked+rng.IntN(600)) {
			t.Fatalf("%d rows are acknowledged:\n%s", tap.Acknowledged(), d.Log())
		}
		time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Millisecond))))
		if rng.IntN(4) == 0 {
			stops++
			d.Stop()
		} else {
			d.Kill()
			look()
		}
	}
	close(stop)
	last := harness.Start(t, path)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !brokertest.Progress(tap.Acknowledged, published) {
		t.Fatalf("%d of %d rows are acknowledged:\n%s", tap.Acknowledged(), published, last.Log())
	}
	final := last.Stop()
	samples, all := int(final.Get("samples").Int()), len(undisturbed(t, path, published))
	cut := 3 * (kills - stops) // windows that hold the moment of a kill, and one that was not committed
	if samples > all || samples < all-cut {
		t.Errorf("%d samples were learnt of %d that an undisturbed run has; %d kills may cost %d", samples, all, kills-stops, cut)
	}
	t.Logf("%d rows, %d samples of %d; %d kills, %d orderly stops", published, samples, all, kills-stops, stops)
}

// loadWindows reads the journal of a daemon that has ended.
func loadWindows(t *testing.T, path, store string) *persist.Recovered {
	t.Helper()
	cfg, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	learner, err := cfg.Learner("")
	if err != nil {
		t.Fatal(err)
	}
	s, err := persist.OpenReadOnly(store, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	kept, err := s.Load("acc", learner.Shape())
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// undisturbed returns the labelled samples of the first n rows.
func undisturbed(t *testing.T, path string, n int) map[string]bool {
	t.Helper()
	cfg, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	of := cfg.Streams["acc"]
	s, err := signal.NewStage(signal.Options{Config: of.StageConfig(), Features: of.Features}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for i := 1; i <= n; i++ {
		ms, x, label := signalRow(i)
		for _, sample := range s.Take(&signal.Message{Own: true, Rows: []signal.Row{{Time: ms * int64(time.Millisecond), X: []float64{x}, Label: label}}}) {
			if sample.Label != "" {
				all[fmt.Sprint(sample.X, sample.Label)] = true
			}
		}
	}
	return all
}

// publishRows publishes rows as fast as they are acknowledged. Their number is the tap's.
func publishRows(t *testing.T, connection string, tap *harness.Tap, stop chan struct{}, n *int) error {
	pub, err := broker.NewPublisher(t.Context(), brokertest.Config(connection), 1, broker.Listener{})
	if err != nil {
		return err
	}
	defer pub.Close()
	for {
		select {
		case <-stop:
			return pub.Drain(t.Context())
		case <-t.Context().Done():
			return t.Context().Err()
		default:
		}
		if *n-tap.Acknowledged() >= harness.Ahead {
			time.Sleep(time.Millisecond)
			continue
		}
		ms, x, label := signalRow(*n + 1)
		if err := pub.Publish(t.Context(), "sensors/acc", fmt.Appendf(nil, `{"id":%d,"ts":%d,"x":%v,"label":%q}`, *n+1, ms, x, label)); err != nil {
			return err
		}
		*n++
	}
}
