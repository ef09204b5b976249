package daemon

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/inspect"
	"edge/internal/terminal"
	"edge/stream/mqtt"
)

// A reload changes password and certificate, or says why not.
func TestReloadHTTP(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	config, _ := waveformConfig(t, b.URL())
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	web := brokertest.FreeAddress(t)
	write := func(keys string) {
		t.Helper()
		if err := os.WriteFile(config, []byte(strings.ReplaceAll(string(text), `http: {listen: ""}`, fmt.Sprintf("http: {listen: %q, %s}", web, keys))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("hosts: [edge.lan]")
	r := startReloadable(t, config).ready()
	write(fmt.Sprintf("password: {file: %q}", t.TempDir()+"/none"))
	if _, err := r.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "http.password") {
		t.Errorf("a password that is not there: %v", err)
	}
	write(fmt.Sprintf("password: {file: %q}", writeFile(t, "password", secretForTests)))
	changed, err := r.Reload(t.Context())
	slices.Sort(changed)
	if err != nil || !slices.Contains(changed, "http.password.file") {
		t.Fatalf("changed %v, %v", changed, err)
	}
	if !brokertest.Eventually(func() bool {
		resp, err := http.Get("http://" + web + "/api/v1/models")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusUnauthorized
	}) {
		t.Error("the password is not asked for")
	}
}

// reloadable is a daemon in this process whose configuration is a file.
type reloadable struct {
	*Daemon
	t    *testing.T
	path string
	log  *lockedLog
	stop func()
}

// startReloadable runs a daemon until the test ends, or stop is called.
func startReloadable(t *testing.T, path string) *reloadable {
	t.Helper()
	cfg, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &reloadable{t: t, path: path, log: &lockedLog{}}
	level := new(slog.LevelVar)
	r.Daemon, err = New(cfg, slog.New(terminal.AdjustableHandler{Handler: slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: level}), Level: level}), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Source = func() (*config.Config, error) { return config.Load(path) }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the daemon ends with %v", err)
		}
	})
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("the daemon logged:\n%s", r.log)
		}
	})
	return r
}

func (r *reloadable) ready() *reloadable {
	r.t.Helper()
	if !brokertest.Eventually(func() bool { return r.now().Node.Stats().Subscribed }) {
		r.t.Fatal("the daemon does not subscribe")
	}
	return r
}

// edit replaces text of the configuration.
func (r *reloadable) edit(replacements ...string) {
	r.t.Helper()
	data, err := os.ReadFile(r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(string(data), replacements[i]) {
			r.t.Fatalf("%s is not in the configuration:\n%s", replacements[i], data)
		}
	}
	if err := os.WriteFile(r.path, []byte(strings.NewReplacer(replacements...).Replace(string(data))), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// reload reloads, and waits until the daemon works under what it has read.
func (r *reloadable) reload() (changed []string, err error) {
	r.t.Helper()
	const done = `msg="configuration reloaded"`
	before := strings.Count(r.log.String(), done)
	ctx, cancel := context.WithTimeout(r.t.Context(), brokertest.Patience)
	defer cancel()
	changed, err = r.Reload(ctx)
	if err == nil && len(changed) > 0 && !brokertest.Eventually(func() bool { return strings.Count(r.log.String(), done) > before }) {
		r.t.Fatal("the reload does not end")
	}
	return changed, err
}

// change edits and reloads, which must succeed and find these keys changed.
func (r *reloadable) change(want string, replacements ...string) {
	r.t.Helper()
	r.edit(replacements...)
	changed, err := r.reload()
	if err != nil || config.Joined(changed) != want {
		r.t.Fatalf("changed %q, %v, want %q", config.Joined(changed), err, want)
	}
}

// final stops the daemon and returns the digest of its only model.
func (r *reloadable) final() string {
	r.stop()
	return r.now().Models[0].Loop.Learner().Digest()
}

// What a daemon learns from a stream is, to the last bit, what it learns
// undisturbed, whatever is changed meanwhile that does not concern the learning.
func TestReloadDisturbsNothing(t *testing.T) {
	data := waveformFile(t, 900)
	brokertest.WithMosquitto(t, func(t *testing.T, b *brokertest.Broker) {
		path, _ := waveformConfig(t, b.URL())
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
			{"log.level", []string{"http:", "log: {level: debug}\nhttp:"}},
			{"store.checkpoint.samples", []string{"samples: 150", "samples: 70"}},
			{"mqtt.inflight_window, mqtt.keepalive", []string{"200ms}", "200ms, keepalive: 20s, inflight_window: 7}"}},
			{"homeassistant.enabled", []string{"http:", "homeassistant: {enabled: true}\nhttp:"}},
			{"http.listen, store.max_size", []string{page, `""`, "store: {", "store: {max_size: 64MiB, "}},
		} {
			n := d.now().Node.Stats().Predictions
			if !brokertest.Eventually(func() bool { return d.now().Node.Stats().Predictions >= min(n+60, 900) }) {
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
		if !brokertest.Eventually(func() bool { return d.now().Models[0].Loop.Status().Scores.N == 900 }) {
			t.Errorf("%d samples were learnt, want 900", d.now().Models[0].Loop.Status().Scores.N)
		}
		if s := d.now().Node.Stats(); s.Predictions < 900 || s.Learned < 900 || s.Streams["wave"].Received == 0 {
			t.Errorf("the counters do not go on: %+v", s)
		}
		if got := d.final(); got != want.Digest {
			t.Errorf("the digest is %s, undisturbed it is %s", got, want.Digest)
		}
	})
}

// What would lose what was learnt, or let it mean something else, is refused with
// the key; so is a file that is wrong. The daemon goes on as before.
func TestReloadRefuses(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	path, _ := waveformConfig(t, b.URL())
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := startReloadable(t, path).ready()
	replayed(t, waveformFile(t, 60), b.URL())()
	before, taken := d.now(), brokertest.FreeAddress(t)
	busy, err := net.Listen("tcp", taken)
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for name, tc := range map[string]struct {
		want string
		edit []string
	}{
		"inducing":   {"models.waveform.inducing: what was learnt has 20 and cannot become 21", []string{"inducing: 20", "inducing: 21"}},
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
		"address":    {"http.listen " + taken, []string{`http: {listen: ""}`, "http: {listen: " + taken + "}"}},
	} {
		d.edit(tc.edit...)
		if _, err := d.reload(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
		if d.now() != before {
			t.Fatalf("%s: the daemon works under another configuration", name)
		}
		if !brokertest.Eventually(func() bool { return strings.Contains(d.log.String(), "the old one goes on") }) {
			t.Errorf("%s: the log does not say so", name)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if changed, err := d.reload(); err != nil || len(changed) > 0 {
		t.Errorf("the old file: changed %q, %v", changed, err)
	}
	publish(t, b.URL(), "sensors/waveform", "nothing")
	if !brokertest.Eventually(func() bool { return d.now().Node.Stats().Rejected["malformed"] == 1 }) {
		t.Error("it does not listen any more")
	}
}

// A node tells what has changed, and leaves nothing behind of what it has given up.
func TestReloadTells(t *testing.T) {
	brokertest.WithMosquitto(t, func(t *testing.T, b *brokertest.Broker) {
		path, _ := waveformConfig(t, b.URL())
		heard := listen(t, b.URL(), "edge/#")
		d := startReloadable(t, path)
		d.ready()
		d.change("control.enabled, homeassistant.enabled", "metrics:", "control: {enabled: true}\nhomeassistant: {enabled: true}\nmetrics:")
		d.ready()
		config := func() string { return gjson.Get(heard.last("edge/test/info"), "config").String() }
		if !brokertest.Eventually(func() bool { return config() == d.now().settings.Digest() }) {
			t.Errorf("info says %s", heard.last("edge/test/info"))
		}
		if e := heard.last("edge/test/event"); gjson.Get(e, "event").String() != "config_reloaded" || gjson.Get(e, "detail").String() != "control.enabled, homeassistant.enabled" {
			t.Errorf("the event is %s", e)
		}
		if n := heard.count("edge/test/state", "offline"); n != 0 {
			t.Errorf("it says %d times that it is offline", n)
		}
		// Asked by a request, which is answered although its node ends.
		d.edit("every: 1s", "every: 5s")
		publish(t, b.URL(), "edge/test/request/reload", `{"transaction": 7}`)
		if !brokertest.Eventually(func() bool {
			return gjson.Get(heard.last("edge/test/response/reload"), "status").String() == "ok" && gjson.Get(heard.last("edge/test/event"), "detail").String() == "metrics.every"
		}) {
			t.Errorf("the answer is %s, the event %s", heard.last("edge/test/response/reload"), heard.last("edge/test/event"))
		}
		d.edit("every: 5s", "every: 5ms")
		publish(t, b.URL(), "edge/test/request/reload", `{}`)
		if !brokertest.Eventually(func() bool {
			return strings.Contains(gjson.Get(heard.last("edge/test/response/reload"), "error").String(), "metrics.every") && gjson.Get(heard.last("edge/test/event"), "event").String() == "config_refused"
		}) {
			t.Errorf("the answer is %s, the event %s", heard.last("edge/test/response/reload"), heard.last("edge/test/event"))
		}
		// Another name: the old topics are emptied.
		d.change("metrics.every, node", "every: 5ms", "every: 1s", "node: test", "node: hall")
		d.ready()
		if !brokertest.Eventually(func() bool {
			return heard.last("edge/hall/state") == "online" && heard.last("edge/test/info") == "" && heard.last("edge/test/waveform/metrics") == ""
		}) {
			t.Errorf("of the old node remains: %s", heard.last("edge/test/info"))
		}
	})
}

// A model whose configuration leaves the number of inducing points open keeps what
// it has learnt when labels begin to be asked for, over a reload and a restart; one
// that begins so has more.
func TestAskingKeepsWhatWasLearnt(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	path, store := waveformConfig(t, b.URL())
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	open := strings.Replace(string(text), "inducing: 20", "active: {strategy: 'off'}", 1)
	if err := os.WriteFile(path, []byte(open), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startReloadable(t, path).ready()
	replayed(t, waveformFile(t, 60), b.URL())()
	awaitSamples(t, b, 60)
	d.change("models.waveform.active.strategy", "'off'", "margin")
	if m := d.now().Models[0].Config; m.Inducing != 50 || m.Passes != 4 {
		t.Errorf("after the reload M = %d, %d passes, want 50, 4", m.Inducing, m.Passes)
	}
	d.final()
	d = startReloadable(t, path).ready()
	if m := d.now().Models[0]; m.Config.Inducing != 50 || m.Loop.Status().Scores.N != 60 {
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
	if m := startReloadable(t, path).ready().now().Models[0]; m.Config.Inducing != 100 {
		t.Errorf("a model that begins with M = %d, want 100", m.Config.Inducing)
	}
}

// A model that is added begins, one that is removed leaves its state where it is,
// and finds it again.
func TestReloadModels(t *testing.T) {
	b := brokertest.New(t, brokertest.Mosquitto)
	path, _ := waveformConfig(t, b.URL())
	d := startReloadable(t, path).ready()
	replayed(t, waveformFile(t, 100), b.URL())()
	digest := func() string {
		_, state, err := d.now().Model("waveform").Loop.State(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x", state)
	}
	if !brokertest.Eventually(func() bool { return d.now().Models[0].Loop.Status().Scores.N == 100 }) {
		t.Fatal("not all is learnt")
	}
	want := digest()
	d.change("models.other added", "models:\n", "models:\n  other: {streams: [waveform], inducing: 10, window: 20}\n")
	d.ready()
	d.change("models.waveform removed", "  waveform:\n    streams: [waveform]\n    inducing: 20\n    window: 40\n    classes: {names: [\"0\", \"1\", \"2\"]}\n    batch: {max_size: 16, max_wait: 0s}\n", "")
	d.ready()
	publish(t, b.URL(), "sensors/waveform", `{"id":"only","features":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21],"label":"1"}`)
	if !brokertest.Eventually(func() bool { return d.now().Model("other").Loop.Status().Scores.N == 1 }) {
		t.Error("the new model learns nothing")
	}
	if d.now().Model("waveform") != nil {
		t.Fatal("the model is still there")
	}
	d.change("models.waveform added", "  other:", "  waveform:\n    streams: [waveform]\n    inducing: 20\n    window: 40\n    classes: {names: [\"0\", \"1\", \"2\"]}\n    batch: {max_size: 16, max_wait: 0s}\n  other:")
	if got := digest(); got != want {
		t.Error("the model comes back as another")
	}
}

// Random reloads under load lose nothing and teach nothing twice.
func TestReloadUnderLoad(t *testing.T) {
	reloads, rows := brokertest.Brief(100, 6), brokertest.Brief(4000, 500)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	data := waveformFile(t, rows)
	b := brokertest.New(t, brokertest.Mosquitto)
	path, _ := waveformConfig(t, b.URL())
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
	if !brokertest.Eventually(func() bool { return d.now().Models[0].Loop.Status().Scores.N == uint64(rows) }) {
		t.Errorf("%d samples were learnt, want %d", d.now().Models[0].Loop.Status().Scores.N, rows)
	}
	s := d.now().Node.Stats()
	t.Logf("%d reloads, %d messages, %d redelivered", done, s.Received, s.Redelivered)
	if got := d.final(); got != want.Digest {
		t.Errorf("the digest is %s, undisturbed it is %s", got, want.Digest)
	}
}

// A broker that moves, whose certificate, password or authority is another, is
// found again after a reload, and the client proves itself with what is new.
func TestReloadCredentials(t *testing.T) {
	if _, err := exec.LookPath("mosquitto_passwd"); err != nil {
		brokertest.Missing(t, "mosquitto_passwd is not installed: "+err.Error())
	}
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	secret := func(word string) {
		if err := os.WriteFile(file("secret"), []byte(word+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mosquitto_passwd", "-b", "-c", file("users"), "edge", word).CombinedOutput(); err != nil {
			t.Fatalf("mosquitto_passwd: %s", out)
		}
	}
	certify := func() {
		ca, key := writeCertificate(t, file("ca"), nil, nil, "ca")
		writeCertificate(t, file("server"), ca, key, "127.0.0.1")
		writeCertificate(t, file("client"), ca, key, "edge")
	}
	secret("first")
	certify()
	start := func(t *testing.T, addr string) func() {
		return brokertest.MosquittoWith(t, addr, fmt.Sprintf("allow_anonymous false\npassword_file %s\ncafile %s\ncertfile %s\nkeyfile %s\nrequire_certificate true\n",
			file("users"), file("ca.pem"), file("server.pem"), file("server.key")))
	}
	b := brokertest.New(t, start)
	path, _ := waveformConfig(t, "mqtts://"+b.Addr)
	d := &reloadable{t: t, path: path}
	d.edit("mqtt: {", fmt.Sprintf("mqtt: {username: edge, password: {file: %s}, tls: {ca: %s, cert: %s, key: %s}, ", file("secret"), file("ca.pem"), file("client.pem"), file("client.key")))
	d = startReloadable(t, path).ready()
	if changed, err := d.reload(); err != nil || len(changed) > 0 {
		t.Errorf("nothing has changed, but %q, %v", changed, err)
	}
	connected := func() int { return strings.Count(d.log.String(), `msg="connected to the broker"`) }
	for name, renew := range map[string]func(){
		"password": func() { secret("second") }, "certificates": certify,
	} {
		b.Stop()
		renew()
		b.Stop = b.Start(t, b.Addr)
		n := connected()
		if changed, err := d.reload(); err != nil || config.Joined(changed) != "mqtt.password or mqtt.tls renewed" {
			t.Fatalf("%s: changed %q, %v", name, changed, err)
		}
		if !brokertest.Eventually(func() bool { return connected() > n && d.now().Node.Stats().Subscribed }) {
			t.Errorf("%s: it does not connect again", name)
		}
	}
	elsewhere := brokertest.New(t, start)
	d.change("mqtt.servers", b.Addr, elsewhere.Addr)
	d.ready()
	if text := d.log.String(); strings.Contains(text, "first") || strings.Contains(text, "second") {
		t.Error("a secret is in the log")
	}
}

// writeCertificate writes PATH.pem and PATH.key.
func writeCertificate(t *testing.T, path string, ca *x509.Certificate, signer *ecdsa.PrivateKey, name string) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.ParseIP("127.0.0.1")},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: ca == nil, BasicConstraintsValid: true,
	}
	if ca == nil {
		ca, signer = c, key
	}
	der, err := x509.CreateCertificate(crand.Reader, c, ca, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for end, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path+end, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return c, key
}

// A daemon that watches its files reads them when they change, however they do.
func TestReloadWatches(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	path, _ := waveformConfig(t, b.URL())
	link := filepath.Join(t.TempDir(), "edge.yaml")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	d := startReloadable(t, link).ready()
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	said := &manager{}
	watching.Go(func() {
		reloads(ctx, make(chan os.Signal), d.Daemon, &service{log: d.Daemon.log, send: said.hear}, link, true)
	})
	defer watching.Wait()
	defer cancel()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	every := func(s string) []byte { return []byte(strings.Replace(string(text), "every: 1s", "every: "+s, 1)) }
	for _, change := range []struct {
		want  time.Duration
		write func()
	}{
		{2 * time.Second, func() { os.WriteFile(path, every("2s"), 0o600) }},
		{3 * time.Second, func() { // as editors do
			os.WriteFile(path+"~", every("3s"), 0o600)
			os.Rename(path+"~", path)
		}},
		{4 * time.Second, func() { // as a mounted volume does
			other := writeFile(t, "next.yaml", string(every("4s")))
			os.Symlink(other, link+".new")
			os.Rename(link+".new", link)
		}},
	} {
		want, write := change.want, change.write
		time.Sleep(50 * time.Millisecond) // for the watch to begin; more only makes the test slower
		for end := time.Now().Add(brokertest.Patience); d.now().Config.Metrics.Every != want && time.Now().Before(end); time.Sleep(2 * settleTime) {
			write()
		}
		if got := d.now().Config.Metrics.Every; got != want {
			t.Errorf("metrics.every is %v, want %v", got, want)
		}
	}
	if said.count("RELOADING=1\nMONOTONIC_USEC=") == 0 || said.count("READY=1") == 0 {
		t.Errorf("the service manager hears %q", said.heard)
	}
}

// ear keeps all that is published.
type ear struct {
	mu    sync.Mutex
	heard map[string][]string // payloads by topic, in order
}

func listen(t *testing.T, connection, filter string) *ear {
	t.Helper()
	e := &ear{heard: map[string][]string{}}
	cfg := mqtt.DefaultConfig()
	cfg.Servers = []string{connection}
	client, err := broker.NewPublisher(t.Context(), cfg, 1, []string{filter}, func(topic string, payload []byte, _ bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.heard[topic] = append(e.heard[topic], string(payload))
	}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return e
}

// last returns the newest payload of a topic.
func (e *ear) last(topic string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if all := e.heard[topic]; len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

func (e *ear) count(topic, payload string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.heard[topic] {
		if p == payload {
			n++
		}
	}
	return n
}
