package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/online"
	"edge/persist"
	"edge/test/files"
	"edge/test/harness"
)

// gate is a log that holds the goroutine which logs a message, until it is opened.
type gate struct {
	slog.Handler
	message string
	reached chan struct{}
	open    chan struct{}
	once    *sync.Once
}

func (g gate) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == g.message {
		g.once.Do(func() {
			close(g.reached)
			<-g.open
		})
	}
	return g.Handler.Handle(ctx, r)
}

// recovering is a daemon whose model recovers and is held at a record of its journal.
type recovering struct {
	*Daemon
	gate
	log  *harness.Log
	stop func() error // opens the gate once the loop is to end
}

// crashed writes a state file with a journal of n records, as a crash leaves it. A
// record in the middle is refused.
func crashed(t *testing.T, cfg *config.Config, n int) {
	t.Helper()
	learner, err := cfg.Learner("m")
	if err != nil {
		t.Fatal(err)
	}
	store, err := persist.Open(cfg.Store.Path, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Load("m", learner.Shape()); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		ev := online.Event{Kind: online.Observe, Key: uint64(i + 1), X: []float64{float64(i%3) + float64(i%7)/20, float64(i % 5)}, Label: string(rune('a' + i%3))}
		if i == n/2 {
			ev.X = ev.X[:1]
		}
		if err := store.Commit(&online.Commit{Records: []online.Record{{Model: "m", Event: ev}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// runUnderClasses runs a daemon on a state file that crashed has written until its model has recovered,
// under a closed list of classes, or open classes without names. It returns the daemon and its log.
func runUnderClasses(t *testing.T, cfg *config.Config, names []string) (*Daemon, string) {
	t.Helper()
	m := cfg.Models["m"]
	m.Learner.Classes.Open, m.Learner.Classes.Names = names == nil, names
	cfg.Models["m"] = m
	log := new(harness.Log)
	d, err := New(cfg, slog.New(slog.NewTextHandler(log, nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	stop := startRun(t, d, log)
	<-d.Loop("m").Recovered()
	stop()
	return d, log.String()
}

// TestLabelsThatClassesRefuse starts a daemon after a crash under a configuration whose classes are closed
// and lack one of the journal.
func TestLabelsThatClassesRefuse(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	cfg := recoverable(t, b.URL())
	crashed(t, cfg, 60)
	if _, text := runUnderClasses(t, cfg, []string{"a", "b"}); strings.Count(text, "labels are lost") != 1 {
		t.Errorf("the log does not tell once that labels are lost:\n%s", text)
	}
}

// The samples that waited at the start are the node's alone: it drops them one by one.
func TestSamplesOfTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge.db")
	cfg, err := config.Load(files.Write(t, "edge.yaml", "node: n\nstreams: {s: {topics: [s], features: [a]}}\nmodels: {m: {streams: [s]}}\nhttp: {listen: ''}\nstore: {path: "+path+"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, waiting := range []int{0, 1} {
		d, err := New(cfg, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		m := d.current().Model("m")
		if kept, err := d.store.Info("m"); err != nil || kept.Pending != uint64(waiting) || m.Feed.Waiting != nil || m.Feed.Unlearnt != nil {
			t.Errorf("%d samples wait, %v; the deployment has %d of them, and %d records", kept.Pending, err, len(m.Feed.Waiting), len(m.Feed.Unlearnt))
		}
		if err := d.store.Commit(&online.Commit{Records: []online.Record{{Model: "m", Event: online.Event{Kind: online.Observe, X: []float64{1}, Label: "a"}}}, Wait: []online.Pending{{Model: "m", Key: 7, X: []float64{1}}}}); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A start under a closed list that lacks a class of the state keeps the class, and says so. A class that was renamed
// is not missing.
func TestStartWithoutAClass(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	cfg := recoverable(t, b.URL())
	crashed(t, cfg, 60)
	for _, c := range []struct {
		names []string // none: open
		want  int
	}{{nil, 0}, {[]string{"a", "b", "c"}, 0}, {[]string{"a", "b"}, 1}} {
		d, text := runUnderClasses(t, cfg, c.names)
		if strings.Count(text, `classes.names, lacks; they stay, and labels of them are learnt: request class_remove, or list them" model=m classes=[c]`) != c.want {
			t.Errorf("under %q it logs\n%s", c.names, text)
		}
		if learnt := d.Loop("m").Learner(); c.names != nil {
			learnt.Add(&online.Event{Kind: online.ClassRename, Label: "a", Name: "fine"})
			if more := learnt.Undeclared(); len(more) != c.want {
				t.Errorf("after a renaming the list lacks %q", more)
			}
		}
	}
}

// startRecovering starts a daemon on a state file that crashed has written.
func startRecovering(t *testing.T, cfg *config.Config) *recovering {
	t.Helper()
	log := new(harness.Log)
	r := &recovering{log: log, gate: gate{
		slog.NewTextHandler(io.MultiWriter(t.Output(), log), &slog.HandlerOptions{Level: slog.LevelDebug}), "learning refused, as it was before",
		make(chan struct{}), make(chan struct{}), new(sync.Once),
	}}
	var err error
	if r.Daemon, err = New(cfg, slog.New(r.gate), nil); err != nil {
		t.Fatal(err)
	}
	r.Source = func() (*config.Config, error) { return cfg, nil }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	opened := sync.OnceFunc(func() { close(r.open) })
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = r.stop() })
	<-r.reached
	if !brokertest.Eventually(func() bool { return r.Stats().Subscribed }) { // Run has started all tasks
		t.Fatal("the daemon does not connect")
	}
	learning := r.current().tasks["m"]
	end := learning.cancel
	learning.cancel = func(cause error) {
		end(cause)
		opened()
	}
	return r
}

func recoverable(t *testing.T, broker string) *config.Config {
	t.Helper()
	cfg, err := config.Load(files.Write(t, "edge.yaml", fmt.Sprintf(`
node: n
mqtt: {servers: ["%s"]}
streams: {s: {topics: [s], features: [a, b]}}
models: {m: {streams: [s], inducing: 10, window: 20, batch: {max_size: 8, max_wait: 0s}}}
http: {listen: "127.0.0.1:0"}
store: {path: %s/edge.db}
`, broker, t.TempDir())))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// TestAnswersWhileItRecovers holds a recovery: the daemon answers, keeps labels, and
// refuses or postpones what needs the whole state. Afterwards it has learnt all.
func TestAnswersWhileItRecovers(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	cfg := recoverable(t, b.URL())
	crashed(t, cfg, 200)
	published := record(t, b.URL(), "edge/n/#")
	d := startRecovering(t, cfg)
	page := &served{Daemon: d.Daemon, t: t, url: strings.TrimSuffix(d.web.URL(), "/")}
	page.ready()
	if _, text := page.get("/readyz"); !strings.Contains(text, "recovers: it answers from its last checkpoint, and has ") {
		t.Errorf("ready: %s", text)
	}
	answer := func(id string) gjson.Result {
		t.Helper()
		publish(t, b.URL(), "s", fmt.Sprintf(`{"id":%q,"features":[1,1]}`, id))
		if !brokertest.Eventually(func() bool { return gjson.Get(published.last("edge/n/m/prediction"), "id").Str == id }) {
			t.Fatal("no prediction")
		}
		return gjson.Parse(published.last("edge/n/m/prediction"))
	}
	if p := answer("before"); !p.Get("recovering").Bool() {
		t.Errorf("predicted %s", p)
	}
	for i := range 100 { // the queue of the loop holds 64 groups
		publish(t, b.URL(), "s", fmt.Sprintf(`{"id":"new-%d","features":[%d,1],"label":"d"}`, i, i%4))
	}
	if !brokertest.Eventually(func() bool { s := d.Stats(); return s.Learned == 100 && s.Unacked == 0 }) {
		t.Errorf("labels wait for the recovery: %+v", d.Stats())
	}
	reload := make(chan error, 1)
	go func() {
		_, err := d.Reload(t.Context())
		reload <- err
	}()
	if err := d.commands().Reload(t.Context()); !errors.Is(err, online.ErrRecovering) {
		t.Errorf("a request to reload is answered with %v", err)
	}
	if text := published.last("edge/n/m/metrics"); gjson.Get(text, "recovery").Int() < 100 {
		t.Errorf("the metrics do not say that the model recovers: %s", text)
	}
	page.await("the page does not show the recovery", "/api/v1/models/m", func(_ int, a string) bool { return gjson.Get(a, "recovery").Int() >= 100 })
	if _, text := page.get("/metrics"); !strings.Contains(text, "\nedge_recovering{model=\"m\"} 1\n") {
		t.Error("the metrics do not have the recovery")
	}
	if len(reload) > 0 {
		t.Error("a reload does not wait for the recovery")
	}
	d.open <- struct{}{}
	if err := <-reload; err != nil {
		t.Errorf("the reload after the recovery: %v", err)
	}
	if !brokertest.Eventually(func() bool { return gjson.Get(published.last("edge/n/event"), "event").Str == online.NoticeRecovered }) {
		t.Errorf("the newest event is %s", published.last("edge/n/event"))
	}
	if p := answer("after"); p.Get("recovering").Exists() || p.Get("version").Uint() < 290 {
		t.Errorf("predicted %s", p)
	}
	sameAsFed(t, d)
}

// TestStoppedWhileItRecovers stops a daemon whose model has yet to learn half of its
// journal: nothing is lost, and no more is learnt before the end.
func TestStoppedWhileItRecovers(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	cfg := recoverable(t, b.URL())
	crashed(t, cfg, 200)
	d := startRecovering(t, cfg)
	publish(t, b.URL(), "s", `{"id":"new","features":[1,1],"label":"d"}`)
	if !brokertest.Eventually(func() bool { return d.Stats().Learned == 1 }) {
		t.Fatal("the label is not kept")
	}
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	if n := d.Loop("m").Status().Behind; n != 100 {
		t.Errorf("stopped with %d records to learn, want 100", n)
	}
	if text := d.log.String(); !strings.Contains(text, `the next start learns first" model=m records=100`) {
		t.Errorf("the log does not say how many records are left:\n%s", text)
	}
	again, err := New(cfg, slog.New(slog.NewTextHandler(t.Output(), nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	done := make(chan error, 1)
	go func() { done <- again.Run(ctx) }()
	<-again.Loop("m").Recovered()
	all, err := again.store.Records("m", 0, 1000)
	cancel()
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	compare(t, again, all, 201)
}

// sameAsFed stops a daemon and compares its state with that of a learner which was fed
// with all records of the journal.
func sameAsFed(t *testing.T, d *recovering) {
	t.Helper()
	all, err := d.store.Records("m", 0, 1000)
	// A stop leaves to the next start what the loop has no room for.
	if !brokertest.Eventually(func() bool { return len(all) == 0 || d.Loop("m").Status().Seq >= all[len(all)-1].Seq }) {
		t.Errorf("not all records are learnt: %+v", d.Loop("m").Status())
	}
	if err := errors.Join(err, d.stop()); err != nil {
		t.Fatal(err)
	}
	compare(t, d.Daemon, all, 300)
}

func compare(t *testing.T, d *Daemon, all []online.Record, want int) {
	t.Helper()
	learner, err := online.NewLearner(d.current().Models[0].Config)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		learner.Add(&all[i].Event)
	}
	if len(all) != want || d.Loop("m").Learner().Digest() != learner.Digest() {
		t.Errorf("after %d records, want %d, the state differs from that of a learner which was fed directly", len(all), want)
	}
}
