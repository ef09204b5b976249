package daemon

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/inspect"
	"edge/test/harness"
)

// Changes of keys that do not concern learning leave the learnt state equal to the
// last bit to that of a daemon without reloads.
func TestReloadDisturbsNothing(t *testing.T) {
	data := harness.WaveformFile(t, 900)
	brokertest.WithMosquitto(t, func(t *testing.T, b *brokertest.Broker) {
		path, _ := harness.WaveformConfig(t, b.URL())
		want := undisturbed(t, data, path)
		d := startReloadable(t, path).ready()
		wait := replayed(t, data, b.URL())
		page := brokertest.FreeAddress(t)
		for _, c := range []struct {
			keys string
			edit []string
		}{
			{"models.waveform.streams, streams.wave added, streams.waveform removed", []string{"streams: {waveform: {", "streams: {wave: {", "streams: [waveform]", "streams: [wave]"}},
			{"streams.wave.topics", []string{"[sensors/waveform],", "[sensors/waveform, sensors/more],"}},
			{"metrics.every", []string{"every: 1s", "every: 2s"}},
			{"http.listen", []string{`http: {listen: ""}`, "http: {listen: " + page + "}"}},
			{"models.waveform.fleet.concept, models.waveform.fleet.every", []string{"    window: 40\n", "    window: 40\n    fleet: {concept: wave, every: 50}\n"}},
			{"models.waveform.fleet.trust, models.waveform.fleet.unseen", []string{"every: 50}", "every: 50, trust: -inf, unseen: mix}"}},
			{"log.level", []string{"http:", "log: {level: debug}\nhttp:"}},
			{"store.checkpoint.samples", []string{"samples: 150", "samples: 70"}},
			{"mqtt.inflight_window, mqtt.keepalive", []string{"200ms}", "200ms, keepalive: 20s, inflight_window: 7}"}},
			{"homeassistant.enabled", []string{"http:", "homeassistant: {enabled: true}\nhttp:"}},
			{"http.listen, store.max_size", []string{page, `""`, "store: {", "store: {max_size: 64MiB, "}},
		} {
			n := d.current().Node.Stats().Predictions
			if !brokertest.Eventually(func() bool { return d.current().Node.Stats().Predictions >= min(n+60, 900) }) {
				t.Fatal("the replay stands still")
			}
			d.change(c.keys, c.edit...)
			if c.keys == "http.listen" {
				if r, err := http.Get("http://" + page + "/healthz"); err != nil || r.Body.Close() != nil || r.StatusCode != http.StatusOK {
					t.Errorf("the page is not served at its new address: %v", err)
				}
			}
		}
		wait()
		if !brokertest.Eventually(func() bool { return d.current().Models[0].Loop.Status().Scores.N == 900 }) {
			t.Errorf("%d samples were learnt, want 900", d.current().Models[0].Loop.Status().Scores.N)
		}
		if s := d.current().Node.Stats(); s.Predictions < 900 || s.Learned < 900 || s.Streams["wave"].Received == 0 {
			t.Errorf("the counters do not go on: %+v", s)
		}
		if got := d.final(); got != want.Digest {
			t.Errorf("the digest is %s, undisturbed it is %s", got, want.Digest)
		}
	})
}

// A change that would lose the learnt state or alter its meaning is refused with
// its key, and so is an invalid file. The daemon stays as it was.
func TestReloadRefuses(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	path, _ := harness.WaveformConfig(t, b.URL())
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := startReloadable(t, path).ready()
	replayed(t, harness.WaveformFile(t, 60), b.URL())()
	before, taken := d.current(), brokertest.FreeAddress(t)
	busy, err := net.Listen("tcp", taken)
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for name, tc := range map[string]struct {
		want string
		edit []string
	}{
		"inducing":   {"models.waveform.inducing: the learnt state has 20, which cannot become 21", []string{"inducing: 20", "inducing: 21"}},
		"window":     {"models.waveform.window:", []string{"window: 40", "window: 41"}},
		"horizons":   {"models.waveform.horizons:", []string{"window: 40", "window: 40\n    horizons: [inf, 50]"}},
		"kernel":     {"models.waveform.kernel:", []string{"window: 40", "window: 40\n    kernel: per-class"}},
		"features":   {"models.waveform.features:", []string{"x1, x2,", "x2, x1,"}},
		"order":      {`models.waveform.classes.names: "1" has another place`, []string{`["0", "1", "2"]`, `["1", "0", "2"]`}},
		"class gone": {`models.waveform.classes.names: "2" is a class that the model has`, []string{`["0", "1", "2"]`, `["0", "1"]`}},
		"fewer":      {"models.waveform.classes.max: the model has 3", []string{`["0", "1", "2"]`, `[], max: 2`}},
		"store":      {"store.path:", []string{"edge.db", "other.db"}},
		"dedupe":     {"store.dedupe:", []string{"store: {", "store: {dedupe: 100, "}},
		"format":     {"log.format:", []string{"http:", "log: {format: text}\nhttp:"}},
		"no YAML":    {path + ":", []string{"streams:", "streams: ["}},
		"unknown":    {"inducin", []string{"inducing:", "inducin:"}},
		"range":      {"models.waveform.damping", []string{"window: 40", "window: 40\n    damping: 7"}},
		"no CA":      {"mqtt.tls: read ca", []string{"mqtt: {", "mqtt: {tls: {ca: /none/ca.pem}, "}},
		"no secret":  {"mqtt.password: read secret", []string{"mqtt: {", "mqtt: {username: u, password: {file: /none/secret}, "}},
		"own output": {"would receive the node's own output", []string{"[sensors/waveform]", "[edge/#]"}},
		"address":    {"http.listen " + taken + ": listen tcp", []string{`http: {listen: ""}`, "http: {listen: " + taken + "}"}},
		"follower":   {"http.listen " + taken, []string{`http: {listen: ""}`, "http: {listen: " + taken + "}", "    window: 40\n", "    window: 40\n    fleet: {concept: c, role: follower}\n"}},
		"new model":  {"http.listen " + taken, []string{`http: {listen: ""}`, "http: {listen: " + taken + "}", "models:\n", "models:\n  other: {streams: [waveform], inducing: 10, window: 20}\n"}},
	} {
		d.edit(tc.edit...)
		if _, err := d.reload(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if d.current() != before {
			t.Fatalf("%s: the daemon works under another configuration", name)
		}
		if !brokertest.Eventually(func() bool { return strings.Contains(d.log.String(), "the old one stays in effect") }) {
			t.Errorf("%s: the log does not have it", name)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if changed, err := d.reload(); err != nil || len(changed) > 0 {
		t.Errorf("the old file: changed %q, %v", changed, err)
	}
	if strings.Contains(d.log.String(), "will keep trying") {
		t.Error("the log tells of a page that is not served")
	}
	if !d.current().Node.Stats().Models["waveform"].Learning {
		t.Error("the model is shown as one that does not learn")
	}
	d.change("models.other added", "models:\n", "models:\n  other: {streams: [waveform], inducing: 12, window: 20}\n")
	d.ready() // a message between two connections is TestReloadUnderLoad's
	publish(t, b.URL(), "sensors/waveform", "nothing")
	if !brokertest.Eventually(func() bool { return d.current().Node.Stats().Rejected["malformed"] == 1 }) {
		t.Error("it receives nothing any more")
	}
}

// The page moves to another address with the same port, also one that includes its own;
// if it cannot listen there, it stays.
func TestReloadKeepsThePort(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	path, _ := harness.WaveformConfig(t, b.URL())
	d := startReloadable(t, path).ready()
	page := brokertest.FreeAddress(t)
	_, port, err := net.SplitHostPort(page)
	if err != nil {
		t.Fatal(err)
	}
	served := func() bool {
		r, err := http.Get("http://" + page + "/healthz")
		return err == nil && r.Body.Close() == nil && r.StatusCode == http.StatusOK
	}
	d.change("http.listen", `http: {listen: ""}`, "http: {listen: "+page+"}")
	busy, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("this test needs the address 127.0.0.2, which each Linux has: %v", err)
	}
	d.edit(page, "127.0.0.2:"+port)
	if _, err := d.reload(); err == nil || !strings.Contains(err.Error(), "http.listen 127.0.0.2") || !served() {
		t.Errorf("an address that is in use: %v, the page is served: %t", err, served())
	}
	busy.Close()
	d.change("http.listen", "127.0.0.2:"+port, "0.0.0.0:"+port)
	if !served() {
		t.Error("the page is not served at all addresses")
	}
}

// A node publishes the changed keys, and clears the retained messages of its old
// name.
func TestReloadIsPublished(t *testing.T) {
	brokertest.WithMosquitto(t, func(t *testing.T, b *brokertest.Broker) {
		path, _ := harness.WaveformConfig(t, b.URL())
		published := record(t, b.URL(), "edge/#")
		d := startReloadable(t, path)
		d.ready()
		d.change("control.enabled, homeassistant.enabled", "metrics:", "control: {enabled: true}\nhomeassistant: {enabled: true}\nmetrics:")
		d.ready()
		config := func() string { return gjson.Get(published.last("edge/test/info"), "config").String() }
		if !brokertest.Eventually(func() bool { return config() == d.current().settings.Unpack().Digest() }) {
			t.Errorf("info is %s", published.last("edge/test/info"))
		}
		if !brokertest.Eventually(func() bool { // the event follows the information
			e := published.last("edge/test/event")
			return gjson.Get(e, "event").String() == "config_reloaded" && gjson.Get(e, "detail").String() == "control.enabled, homeassistant.enabled"
		}) {
			t.Errorf("the event is %s", published.last("edge/test/event"))
		}
		if n := published.count("edge/test/state", "offline"); n != 0 {
			t.Errorf("it published offline %d times", n)
		}
		// A request is answered although its node is replaced.
		d.edit("every: 1s", "every: 5s")
		publish(t, b.URL(), "edge/test/request/reload", `{"transaction": 7}`)
		if !brokertest.Eventually(func() bool {
			return gjson.Get(published.last("edge/test/response/reload"), "status").String() == "ok" && gjson.Get(published.last("edge/test/event"), "detail").String() == "metrics.every"
		}) {
			t.Errorf("the answer is %s, the event %s", published.last("edge/test/response/reload"), published.last("edge/test/event"))
		}
		d.edit("every: 5s", "every: 5ms")
		publish(t, b.URL(), "edge/test/request/reload", `{}`)
		if !brokertest.Eventually(func() bool {
			return strings.Contains(gjson.Get(published.last("edge/test/response/reload"), "error").String(), "metrics.every") && gjson.Get(published.last("edge/test/event"), "event").String() == "config_refused"
		}) {
			t.Errorf("the answer is %s, the event %s", published.last("edge/test/response/reload"), published.last("edge/test/event"))
		}
		// Another name: the old topics are emptied.
		d.change("metrics.every, node", "every: 5ms", "every: 1s", "node: test", "node: hall")
		d.ready()
		if !brokertest.Eventually(func() bool {
			return published.last("edge/hall/state") == "online" && published.last("edge/test/info") == "" && published.last("edge/test/waveform/metrics") == ""
		}) {
			t.Errorf("of the old node remains: %s", published.last("edge/test/info"))
		}
	})
}

// A model without a configured number of inducing points keeps its state when
// active learning is enabled, over a reload and a restart; a new one has more.
func TestActiveLearningKeepsState(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	path, store := harness.WaveformConfig(t, b.URL())
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	open := strings.Replace(string(text), "inducing: 20", "active: {strategy: 'off'}", 1)
	if err := os.WriteFile(path, []byte(open), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startReloadable(t, path).ready()
	replayed(t, harness.WaveformFile(t, 60), b.URL())()
	harness.AwaitSamples(t, b, 60)
	d.change("models.waveform.active.strategy", "'off'", "margin")
	if m := d.current().Models[0].Config; m.Inducing != 50 || m.Passes != 4 {
		t.Errorf("after the reload M = %d, %d passes, want 50, 4", m.Inducing, m.Passes)
	}
	d.final()
	d = startReloadable(t, path).ready()
	if m := d.current().Models[0]; m.Config.Inducing != 50 || m.Loop.Status().Scores.N != 60 {
		t.Errorf("after the restart M = %d, %d samples, want 50, 60", m.Config.Inducing, m.Loop.Status().Scores.N)
	}
	d.final()
	cfg, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inspect.File(store, cfg); err != nil {
		t.Error(err)
	}
	if err := os.Remove(store); err != nil {
		t.Fatal(err)
	}
	if m := startReloadable(t, path).ready().current().Models[0]; m.Config.Inducing != 100 {
		t.Errorf("a model that begins with M = %d, want 100", m.Config.Inducing)
	}
}

// An added model starts to learn; a removed one leaves its state in the file, and
// has it again when it is added.
func TestReloadModels(t *testing.T) {
	b := brokertest.New(t, brokertest.Mosquitto)
	path, _ := harness.WaveformConfig(t, b.URL())
	d := startReloadable(t, path).ready()
	replayed(t, harness.WaveformFile(t, 100), b.URL())()
	digest := func() string {
		_, state, err := d.current().Model("waveform").Loop.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x", state)
	}
	if !brokertest.Eventually(func() bool { return d.current().Models[0].Loop.Status().Scores.N == 100 }) {
		t.Fatal("not all is learnt")
	}
	want := digest()
	d.change("models.other added", "models:\n", "models:\n  other: {streams: [waveform], inducing: 10, window: 20}\n")
	d.ready()
	d.change("models.waveform removed", "  waveform:\n    streams: [waveform]\n    inducing: 20\n    window: 40\n    classes: {names: [\"0\", \"1\", \"2\"]}\n    batch: {max_size: 16, max_wait: 0s}\n", "")
	d.ready()
	publish(t, b.URL(), "sensors/waveform", `{"id":"only","features":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21],"label":"1"}`)
	if !brokertest.Eventually(func() bool { return d.current().Model("other").Loop.Status().Scores.N == 1 }) {
		t.Error("the new model learns nothing")
	}
	if d.current().Model("waveform") != nil {
		t.Fatal("the model is still there")
	}
	d.change("models.waveform added", "  other:", "  waveform:\n    streams: [waveform]\n    inducing: 20\n    window: 40\n    classes: {names: [\"0\", \"1\", \"2\"]}\n    batch: {max_size: 16, max_wait: 0s}\n  other:")
	if got := digest(); got != want {
		t.Error("the model has another state when it is added again")
	}
}

// The event stream of a model that a reload removes ends: its figures would stay as they
// are, also after the model is added again.
func TestReloadEndsEventStream(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	path, _ := harness.WaveformConfig(t, b.URL())
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	web := brokertest.FreeAddress(t)
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), `http: {listen: ""}`, fmt.Sprintf("http: {listen: %q}", web))), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startReloadable(t, path).ready()
	resp, err := http.Get("http://" + web + "/api/v1/events?model=waveform")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, resp.Body)
		ended <- err
	}()
	d.change("models.other added, models.waveform removed", "  waveform:\n    streams:", "  other:\n    streams:")
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the stream ends with %v", err)
		}
	case <-time.After(brokertest.Patience):
		t.Error("the stream does not end")
	}
}

// Random reloads under load lose no sample and learn none twice.
func TestReloadUnderLoad(t *testing.T) {
	reloads, rows := brokertest.Brief(100, 6), brokertest.Brief(4000, 500)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	data := harness.WaveformFile(t, rows)
	b := brokertest.New(t, brokertest.Mosquitto)
	path, _ := harness.WaveformConfig(t, b.URL())
	want := undisturbed(t, data, path)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := startReloadable(t, path).ready()
	wait := replayed(t, data, b.URL())
	pick := func(words ...string) string { return words[rng.IntN(len(words))] }
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		wait()
	}()
	done := 0
	for ; done < reloads; done++ {
		name := pick("waveform", "wave", "form")
		edited := strings.NewReplacer(
			"streams: {waveform: {", "streams: {"+name+": {", "streams: [waveform]", "streams: ["+name+"]",
			"[sensors/waveform],", pick("[sensors/waveform],", "[sensors/waveform, sensors/a],", "[sensors/waveform, sensors/b/#],"),
			"every: 1s", pick("every: 1s", "every: 2s"), "samples: 150", pick("samples: 150", "samples: 40"),
			"200ms}", pick("200ms}", "200ms, keepalive: 20s}", "200ms, ring: {max_messages: 10}}", "200ms, inflight_window: 3}"),
			"inducing: 20", pick("inducing: 20", "inducing: 20", "inducing: 20", "inducing: 30"), // the last is refused
		).Replace(string(text))
		if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := d.reload(); err != nil && !strings.Contains(err.Error(), "inducing") {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
	}
	<-ended
	if !brokertest.Eventually(func() bool { return d.current().Models[0].Loop.Status().Scores.N == uint64(rows) }) {
		t.Errorf("%d samples were learnt, want %d", d.current().Models[0].Loop.Status().Scores.N, rows)
	}
	s := d.current().Node.Stats()
	t.Logf("%d reloads, %d messages, %d redelivered", done, s.Received, s.Redelivered)
	if got := d.final(); got != want.Digest {
		t.Errorf("the digest is %s, undisturbed it is %s", got, want.Digest)
	}
}
