package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/online"
	"edge/persist"
	"edge/test/files"
)

// oneModel is the configuration of a daemon with model m and its state at path.
func oneModel(t *testing.T, path string) *config.Config {
	t.Helper()
	cfg, err := config.Load(files.Write(t, "edge.yaml", "node: n\nstreams: {s: {topics: [s], features: [a]}}\nmodels: {m: {streams: [s]}}\nhttp: {listen: ''}\nstore: {path: "+path+"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// openingLog returns what a daemon logs until its models are restored.
func openingLog(t *testing.T, cfg *config.Config) string {
	t.Helper()
	var log bytes.Buffer
	d, err := New(cfg, slog.New(slog.NewTextHandler(&log, nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	return log.String()
}

// TestRestoredCountsCheckpointsAlone repairs a file without a readable checkpoint:
// the log must count every sample as replayed and none as restored.
func TestRestoredCountsCheckpointsAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge.db")
	cfg := oneModel(t, path)
	learnerConfig, err := cfg.Learner("m")
	if err != nil {
		t.Fatal(err)
	}
	store, err := persist.Open(path, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Load("m", learnerConfig.Shape()); err != nil {
		t.Fatal(err)
	}
	state := bytes.Repeat([]byte("a state that nothing can read. "), 100)
	for n := range uint64(30) {
		record := online.Record{Model: "m", Event: online.Event{Kind: online.Observe, Key: n + 1, X: []float64{float64(n)}, Label: []string{"a", "b"}[n%2]}}
		if err := store.Commit(&online.Commit{Records: []online.Record{record}}); err != nil {
			t.Fatal(err)
		}
		if n == 9 || n == 19 {
			if err := store.Checkpoint("m", n+1, state); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(file, []byte("nothing"), []byte("anybody")), 0o600); err != nil {
		t.Fatal(err)
	}
	log := openingLog(t, cfg)
	if !strings.Contains(log, " model=m restored=0 records=20") {
		t.Errorf("want 0 samples restored and 20 replayed:\n%s", log)
	}
}

// Of a file with no part of a model nobody knows how much is lost: the log says so of the model.
func TestLossThatIsNotCounted(t *testing.T) {
	path := files.Write(t, "edge.db", "")
	log := openingLog(t, oneModel(t, path))
	if want := `is lost" model=m state=false samples=0 pending=0 more=true`; !strings.Contains(log, want) {
		t.Errorf("the log lacks %s:\n%s", want, log)
	}
}

// A repair is in the log, and an event: who does not see the log learns of it as well.
func TestRepairIsAnEvent(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	s := serve(t, b.URL(), func(c *config.Config) {
		if err := os.WriteFile(c.Store.Path, nil, 0o600); err != nil { // as after a power cut
			t.Fatal(err)
		}
	})
	s.await("no event", "/api/v1/models", func(_ int, a string) bool {
		e := gjson.Get(a, `events.#(event=="store_repaired")`)
		return strings.Contains(e.Get("detail").Str, "every model begins anew; it is kept as") && strings.HasSuffix(e.Get("detail").Str, "edge.db.damaged-1")
	})
	if log := s.log.String(); !strings.Contains(log, "nothing in it can be used: every model begins anew") || !strings.Contains(log, "edge restore") {
		t.Errorf("the log tells neither of the loss nor of the way out:\n%s", log)
	}
}

// TestUnusedState renames a model: the log of the start names the state that is left
// under the old name.
func TestUnusedState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge.db")
	for _, tc := range []struct {
		model string
		want  bool
	}{{"first", false}, {"second", true}} {
		cfg, err := config.Load(files.Write(t, "edge.yaml", "node: n\nstreams: {s: {topics: [s], features: [a]}}\nmodels: {"+tc.model+": {streams: [s]}}\nhttp: {listen: ''}\nstore: {path: "+path+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		d, err := New(cfg, slog.New(slog.NewTextHandler(&log, nil)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if got := bytes.Contains(log.Bytes(), []byte("discard it with edge reset\" model=first")); got != tc.want {
			t.Errorf("model %s: the log names the state of model first: %v, want %v:\n%s", tc.model, got, tc.want, &log)
		}
	}
}

// A state in which nothing was learnt gives way to another shape; any other stays.
func TestVacantState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge.db")
	of := func(model string) *config.Config {
		cfg, err := config.Load(files.Write(t, "edge.yaml", "node: n\nstreams: {s: {topics: [s], features: [a, b]}}\nmodels: {m: {streams: [s], "+model+"}}\nhttp: {listen: ''}\nstore: {path: "+path+"}\n"))
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	begin := func(model string) error {
		d, err := New(of(model), slog.New(slog.DiscardHandler), nil)
		if err != nil {
			return err
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		return errors.Join(d.current().Models[0].Loop.Run(ctx), d.Close())
	}
	for _, model := range []string{"inducing: 20", "inducing: 30", "inducing: 30, window: 10, classes: {names: [x, y]}", "inducing: 40, classes: {names: [x, y, z]}"} {
		if err := begin(model); err != nil {
			t.Errorf("%s: %v", model, err)
		}
	}
	keep := func(model string, ev online.Event) {
		cfg, err := of(model).Learner("m")
		if err != nil {
			t.Fatal(err)
		}
		learner, err := online.NewLearner(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if out := learner.Add(&ev); out.Refused != nil {
			t.Fatal(out.Refused)
		}
		state, _ := learner.AppendBinary(nil)
		store, err := persist.Open(path, persist.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.Load("m", cfg.Shape())
		if err = errors.Join(err, store.Commit(&online.Commit{Records: []online.Record{{Model: "m", Event: ev}}}), store.Checkpoint("m", 1, state), store.Close()); err != nil {
			t.Fatal(err)
		}
	}
	keep("inducing: 40, classes: {names: [x, y, z]}", online.Event{Kind: online.ClassAdd, Label: "by hand", Key: 1})
	if err := begin("inducing: 50, classes: {names: [x, y, z]}"); !errors.Is(err, persist.ErrShape) {
		t.Errorf("a state with a class that is not declared is given up: %v", err)
	}
	if err := begin("inducing: 50, classes: {names: [x, y, z, by hand]}"); err != nil {
		t.Errorf("a state with a class that is declared: %v", err)
	}
	crashed(t, of("inducing: 50, classes: {names: [x, y, z]}"), 1)
	if err := begin("inducing: 60, classes: {names: [x, y, z]}"); !errors.Is(err, persist.ErrShape) {
		t.Errorf("a state with a record is given up: %v", err)
	}
}
