//go:build slow

package torture

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/dataset"
	"edge/online"
	"edge/persist"
	"edge/test/files"
	"edge/test/harness"
)

// anonymousRows are labelled rows without ids: all equal, or those of a real
// stream whose sensors are coarse, so that neighbours are often equal.
var anonymousRows = map[string]func(t *testing.T) []dataset.Row{
	"constant": func(t *testing.T) []dataset.Row {
		return []dataset.Row{{X: []float64{20.5, 40}, Label: "ok"}}
	},
	"room_occupancy": func(t *testing.T) []dataset.Row {
		file, err := dataset.Open(filepath.Join("..", "..", "..", "shared", "data", "room_occupancy.csv.gz"), dataset.Format{})
		if err != nil {
			brokertest.Missing(t, "needs ../shared: "+err.Error())
		}
		defer file.Close()
		rows, err := dataset.ReadAll(file)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	},
}

// TestKilledWithoutIDs kills a daemon EDGE_KILLS times (default 3) for each broker
// while labelled messages without ids arrive, some of them equal. After each start,
// and at the end, its state equals to the last bit that of a learner of the first n
// rows, each once; n never falls and ends at the number of rows. Where the broker
// changes the order, the journal of the whole run contains each row as often as it was
// published, and the final state is that of a learner of the rows in the order of the
// journal.
func TestKilledWithoutIDs(t *testing.T) {
	for name, broker := range brokertest.Servers {
		t.Run(name, func(t *testing.T) {
			for name, rows := range anonymousRows {
				t.Run(name, func(t *testing.T) { killWithoutIDs(t, brokertest.New(t, broker.Start), rows(t), broker.InOrder) })
			}
		})
	}
}

// Long: one run with its checks.
func killWithoutIDs(t *testing.T, broker *brokertest.Broker, rows []dataset.Row, inOrder bool) {
	kills, seed := harness.Number(t, "EDGE_KILLS", 3), harness.Number(t, "EDGE_TORTURE_SEED", rand.Uint64())
	t.Logf("%d kills, EDGE_TORTURE_SEED=%d", kills, seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	row := func(i int) *dataset.Row { return &rows[i%len(rows)] }
	store, samples := filepath.Join(t.TempDir(), "edge.db"), 500 // between two checkpoints
	if !inOrder {
		samples = 1 << 30
	}
	config, page := anonymousConfig(t, broker.URL(), store, samples, rows)

	truth, fed := harness.NewTruth(t, config).Learner, 0
	digest := func(n int) string {
		for ; fed < n; fed++ {
			if out := truth.Add(&online.Event{Kind: online.Observe, X: row(fed).X, Label: row(fed).Label}); out.Refused != nil {
				t.Fatal(out.Refused)
			}
		}
		return truth.Digest()
	}
	known, earlier := 0, ""
	look := func(d *harness.Daemon, msg string) {
		t.Helper()
		line, ok := d.Logged(msg)
		if !ok {
			return
		}
		n := int(line.Get("samples").Int())
		if n < known {
			t.Fatalf("%d samples were known, now %d:\n%s", known, n, d.Log())
		}
		known = n
		if !inOrder {
			return
		}
		if got, want := line.Get("digest").String(), digest(n); got != want {
			t.Fatalf("after %d samples the digest is %s, that of an undisturbed learner %s\n%s\n%s%s",
				n, got, want, differences(t, config, store, n, row), earlier, d.Log())
		}
		earlier = d.Log() + "\n\n"
	}

	first := harness.Start(t, config)
	first.Await("connected to the broker")
	stop, sent := make(chan struct{}), make(chan error, 1)
	var published atomic.Int64
	// A broker keeps no message for a session without a subscription.
	if !brokertest.Progress(func() int { return metric(t, page, "edge_subscribed") }, 1) {
		t.Fatalf("the daemon does not subscribe:\n%s", first.Log())
	}
	go func() { sent <- publishAnonymous(t, broker.URL(), row, stop, &published) }()
	d := first
	for i := range int(kills) {
		if i > 0 {
			d = harness.Start(t, config)
			if rng.IntN(4) > 0 {
				d.Await("connected to the broker")
			}
		}
		time.Sleep(time.Duration(rng.Int64N(int64(700 * time.Millisecond))))
		d.Kill()
		look(d, "model ready")
	}
	close(stop)
	last := harness.Start(t, config)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	total := int(published.Load())
	// The daemon is stopped when it has learnt every row and then none for a while, so
	// that it would also have learnt a repeated row.
	last.Await("connected to the broker")
	harness.AwaitModelSamples(t, broker, "room", total)
	for before := -1; ; time.Sleep(3 * time.Second) {
		now := learnedSoFar(t, page)
		if now == before {
			break
		}
		before = now
	}
	if !inOrder { // a stop makes a checkpoint, which shortens the journal
		last.Kill()
		want := compareJournal(t, config, store, rows, total)
		last = harness.Start(t, config)
		if got := last.Await("model ready").Get("digest").String(); got != want {
			t.Errorf("the digest is %s, that of an undisturbed learner %s", got, want)
		}
	}
	final := last.Stop()
	look(last, "model stopped")
	if n := int(final.Get("samples").Int()); n != total {
		t.Errorf("%d rows were published, %d learnt:\n%s", total, n, last.Log())
	}
	t.Logf("%d rows were published", total)
}

// compareJournal holds the journal of a whole run against the rows that were
// published, and returns the digest of a learner that is fed the journal.
func compareJournal(t *testing.T, config, store string, rows []dataset.Row, total int) (digest string) {
	t.Helper()
	truth, held := harness.NewTruth(t, config).Learner, loadRoom(t, config, store)
	if held.Seq != 0 {
		t.Fatalf("the journal begins after record %d", held.Seq)
	}
	count := map[string]int{}
	for i := range total {
		count[fmt.Sprint(rows[i%len(rows)].X, rows[i%len(rows)].Label)]++
	}
	for _, r := range held.Records {
		count[fmt.Sprint(r.X, r.Label)]--
		if out := truth.Add(&r.Event); out.Refused != nil {
			t.Fatal(out.Refused)
		}
	}
	for row, n := range count {
		if n != 0 {
			t.Errorf("the row %s was learnt %d times too few", row, n)
		}
	}
	return truth.Digest()
}

// publishAnonymous publishes rows at some 500 a second until stop is closed.
func publishAnonymous(t *testing.T, connection string, row func(int) *dataset.Row, stop chan struct{}, published *atomic.Int64) error {
	pub, err := broker.NewPublisher(t.Context(), brokertest.Config(connection), 1, broker.Listener{})
	if err != nil {
		return err
	}
	defer pub.Close()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return pub.Drain(t.Context())
		default:
		}
		if err := pub.Publish(t.Context(), "sensors/room", anonymousPayload(t, row(i))); err != nil {
			return err
		}
		published.Add(1)
		if i%5 == 4 {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// loadRoom reads the state and journal of the only model of a state file.
func loadRoom(t *testing.T, file, store string) *persist.Recovered {
	t.Helper()
	s, err := persist.OpenReadOnly(store, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	learner, err := cfg.Learner("")
	if err != nil {
		t.Fatal(err)
	}
	held, err := s.Load("room", learner.Shape())
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// differences shows where the journal and the rows part, for n samples.
func differences(t *testing.T, config, store string, n int, row func(int) *dataset.Row) string {
	held := loadRoom(t, config, store)
	text := func(x []float64, label string) string { return fmt.Sprint(x, " ", label) }
	first := n - len(held.Records)
	if first < 0 {
		return fmt.Sprintf("the journal holds %d records of %d rows", len(held.Records), n)
	}
	for i, r := range held.Records {
		if want := row(first + i); text(r.X, r.Label) != text(want.X, want.Label) {
			var b strings.Builder
			for j := max(i-12, 0); j < min(i+40, len(held.Records)); j++ {
				got := text(held.Records[j].X, held.Records[j].Label)
				where := ""
				for k := max(first+j-60, 0); k < first+j+60; k++ {
					if text(row(k).X, row(k).Label) == got {
						where += fmt.Sprint(" ", k)
					}
				}
				fmt.Fprintf(&b, "record %d holds the row of%s\n", first+j, where)
			}
			return b.String()
		}
	}
	return "the journal holds the rows; the difference is older"
}

// learnedSoFar counts the samples that are in a daemon's models.
func learnedSoFar(t *testing.T, page string) int { return metric(t, page, "edge_learned_samples") }

// metric sums the values that a daemon exposes under a name, over all labels.
func metric(t *testing.T, page, name string) (sum int) {
	t.Helper()
	answer, err := http.Get("http://" + page + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), " ")
		if family, _, _ := strings.Cut(series, "{"); family == name {
			v, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += int(v)
		}
	}
	return sum
}

func anonymousConfig(t *testing.T, broker, store string, samples int, rows []dataset.Row) (config, page string) {
	classes := map[string]bool{}
	var names []string
	for _, r := range rows {
		if !classes[r.Label] {
			classes[r.Label], names = true, append(names, fmt.Sprintf("%q", r.Label))
		}
	}
	page = brokertest.FreeAddress(t)
	return files.Write(t, "edge.yaml", fmt.Sprintf(`
node: test
mqtt: {servers: ["%s"], client_id: edge-test, max_reconnect_interval: 200ms}
streams: {room: {topics: [sensors/room], dimension: %d}}
models:
  room:
    streams: [room]
    inducing: 5
    window: 10
    horizons: [inf, 100]
    classes: {names: [%s]}
    batch: {max_size: 16, max_wait: 0s}
store: {path: "%s", journal_flush: 5ms, checkpoint: {every: 0s, samples: %d, size: 200MiB}}
http: {listen: "%s"}
metrics: {every: 1s}
log: {level: debug}
`, broker, len(rows[0].X), strings.Join(names, ", "), store, samples, page)), page
}

// TestBurstWithoutIDs sends bursts of 8000 labelled messages without ids, of coarse
// readings, EDGE_BURSTS times (default 2), to a daemon with a queue for 1024. The
// daemon reconnects by itself, and mosquitto repeats all messages in flight with the
// DUP flag. The test also cuts connections.
func TestBurstWithoutIDs(t *testing.T) {
	bursts, seed := harness.Number(t, "EDGE_BURSTS", 2), harness.Number(t, "EDGE_TORTURE_SEED", rand.Uint64())
	t.Logf("%d bursts, EDGE_TORTURE_SEED=%d", bursts, seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	const size = 8000
	for name, rows := range map[string][]dataset.Row{
		"coarse":         coarseRows(rng),
		"room_occupancy": anonymousRows["room_occupancy"](t),
	} {
		t.Run(name, func(t *testing.T) {
			connection := brokertest.New(t, func(t *testing.T, addr string) func() {
				return brokertest.MosquittoWith(t, addr, "max_queued_messages 100000")
			})
			row := func(i int) *dataset.Row { return &rows[i%len(rows)] }
			tap := harness.NewTap(t, connection.Addr)
			config, page := anonymousConfig(t, tap.URL(), filepath.Join(t.TempDir(), "edge.db"), 500, rows)
			d := harness.Start(t, config)
			if !brokertest.Eventually(tap.Subscribed) {
				t.Fatalf("the daemon never subscribes:\n%s", d.Log())
			}
			pub := brokertest.Publisher(t, connection.URL())
			sent := 0
			for range bursts {
				for i := range size {
					if err := pub.Publish(t.Context(), "sensors/room", anonymousPayload(t, row(sent))); err != nil {
						t.Fatal(err)
					}
					sent++
					if i%(size/4) == size/8 {
						tap.Cut()
					}
				}
				if err := pub.Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
				if !brokertest.Progress(func() int { return learnedSoFar(t, page) }, sent) {
					t.Fatalf("%d of %d rows are learnt:\n%s", learnedSoFar(t, page), sent, d.Log())
				}
			}
			final := d.Stop()
			truth := harness.NewTruth(t, config).Learner
			for i := range sent {
				if out := truth.Add(&online.Event{Kind: online.Observe, X: row(i).X, Label: row(i).Label}); out.Refused != nil {
					t.Fatal(out.Refused)
				}
			}
			if n := int(final.Get("samples").Int()); n != sent || final.Get("digest").String() != truth.Digest() {
				if path := os.Getenv("EDGE_TEST_LOG"); path != "" {
					os.WriteFile(path, []byte(d.Log()), 0o600)
				}
				t.Errorf("%d rows were published, %d learnt, digest %s, that of an undisturbed learner %s", sent, n, final.Get("digest"), truth.Digest())
			}
			lost := strings.Count(d.Log(), "connection to the broker lost")
			t.Logf("%d rows, the connection was lost %d times", sent, lost)
			if lost == 0 {
				t.Error("nothing disturbed the bursts")
			}
		})
	}
}

// coarseRows are readings of a sensor with few distinct values.
func coarseRows(rng *rand.Rand) (rows []dataset.Row) {
	for range 997 {
		k := rng.IntN(2)
		rows = append(rows, dataset.Row{X: []float64{float64(20 + k), float64(rng.IntN(3))}, Label: fmt.Sprint("c", k)})
	}
	return rows
}

func anonymousPayload(t *testing.T, row *dataset.Row) []byte {
	payload, err := json.Marshal(map[string]any{"features": row.X, "label": row.Label})
	if err != nil {
		t.Fatal(err)
	}
	return payload
}
