package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/web"
	"edge/online"
	"edge/stream/codec"
	"edge/test/harness"
)

// served is a daemon in this process, with its page and its log.
type served struct {
	*Daemon
	t    *testing.T
	url  string
	log  *harness.Log
	stop func()
}

// serve runs a daemon that learns two features, a and b, until the test ends.
// The page has a free port of the loopback interface.
func serve(t *testing.T, broker string, change func(*config.Config)) *served {
	t.Helper()
	return serveTuned(t, broker, change, nil)
}

// serveTuned is serve with a web server changed by tune, if it is not nil.
func serveTuned(t *testing.T, broker string, change func(*config.Config), tune func(*web.Server)) *served {
	t.Helper()
	c := config.Default()
	c.Node, c.MQTT.Servers, c.MQTT.MaxReconnectInterval = "test", []string{broker}, 200*time.Millisecond
	in, m := codec.DefaultStream(), config.DefaultModel()
	in.Topics, in.TopicTemplate, in.Features = []string{"plant/+/pump"}, "plant/{device}/pump", []string{"a", "b"}
	m.Streams, m.Learner.Inducing, m.Learner.Window = []string{"pump"}, 10, 20
	m.Learner.Batch = online.Batch{MaxSize: 8, MaxWait: 50 * time.Millisecond}
	c.Streams["pump"], c.Models["wear"] = in, m
	c.Store.Path = t.TempDir() + "/edge.db"
	c.HTTP.Listen = "127.0.0.1:0"
	if change != nil {
		change(&c)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	s := &served{t: t, log: &harness.Log{}}
	d, err := New(&c, slog.New(slog.NewTextHandler(s.log, nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Daemon, s.url = d, strings.TrimSuffix(d.web.URL(), "/")
	if tune != nil {
		tune(d.web)
	}
	s.stop = startRun(t, d, s.log)
	return s
}

// startRun runs a daemon until the test ends, or stop is called.
func startRun(t *testing.T, d *Daemon, log *harness.Log) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the daemon ends with %v", err)
		}
	})
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("the daemon logged:\n%s", log)
		}
	})
	return stop
}

// do sends a request; header may be nil.
func (s *served) do(method, path, body string, header map[string]string) (code int, answer string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for k, v := range header {
		if k == "Host" {
			r.Host = v
		}
		r.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(all)
}

func (s *served) get(path string) (code int, answer string) {
	s.t.Helper()
	return s.do("GET", path, "", nil)
}

// events requests the event stream of the model; it ends with ctx.
func (s *served) events(ctx context.Context) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+"/api/v1/events?model=wear", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp
}

// metricIn returns the value of a metric in the text of /metrics, 0 if it is not there.
func metricIn(text, name string) (value float64) {
	_, rest, _ := strings.Cut(text, "\n"+name+" ")
	fmt.Sscan(rest, &value)
	return value
}

// await waits until the answer of a path satisfies good.
func (s *served) await(what, path string, good func(code int, answer string) bool) {
	s.t.Helper()
	var code int
	var answer string
	if !brokertest.Eventually(func() bool { code, answer = s.get(path); return good(code, answer) }) {
		s.t.Fatalf("%s: %s still answers %d %s", what, path, code, answer)
	}
}

func (s *served) ready() *served {
	s.t.Helper()
	s.await("the daemon is not ready", "/readyz", func(code int, _ string) bool { return code == http.StatusOK })
	return s
}

// publish publishes messages, and returns when the broker has acknowledged them.
func publish(t *testing.T, connection, topic string, payloads ...string) {
	t.Helper()
	pub := brokertest.Publisher(t, connection)
	defer pub.Close()
	for _, p := range payloads {
		if err := pub.Publish(t.Context(), topic, []byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	if err := pub.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// pumpSamples returns n labelled samples of two well separated classes.
func pumpSamples(n int) (payloads []string) {
	for i := range n {
		class, at := "ok", 0.0
		if i%3 == 0 {
			class, at = "worn", 5
		}
		payloads = append(payloads, fmt.Sprintf(`{"id":"p-%d","features":[%g,%g],"label":%q}`, i, at+float64(i%7)/7, at, class))
	}
	return payloads
}
