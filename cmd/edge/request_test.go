package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/exit"
)

// answerTo returns the answer to a request of a running daemon.
func answerTo(t *testing.T, config string, args ...string) gjson.Result {
	t.Helper()
	code, out, errOut := edge(t, append([]string{"request", "-c", config, "--wait", brokertest.Patience.String()}, args...)...)
	if code != exit.OK {
		t.Fatalf("edge request %v exits with %d: %s", args, code, errOut)
	}
	return gjson.Get(out, "data")
}

// What a request has changed is there after a power cut, and a model goes back
// to an export of before.
func TestRequestsAreDurable(t *testing.T) {
	data := waveformFile(t, 400)
	t.Setenv("EDGE_CONTROL_ENABLED", "true")
	brokertest.ForEach(t, func(t *testing.T, b *brokertest.Broker) {
		config, store := waveformConfig(t, b.URL())
		d := startDaemon(t, config)
		d.await("connected to the broker")
		if got := answerTo(t, config, "ping"); got.Get("node").Str != "test" {
			t.Errorf("ping: %s", got)
		}
		replayed(t, data, "--broker", b.URL(), "--first", "200")()
		awaitSamples(t, b, 200)
		export := answerTo(t, config, "export", "--data", `{"name":"good"}`)
		if want := filepath.Join(filepath.Dir(store), "exports", "waveform.good.db"); export.Get("file").Str != want {
			t.Errorf("export: %s, want the file %s", export, want)
		}
		code, out, errOut := edge(t, "inspect", export.Get("file").Str, "--json")
		if code != exit.OK || gjson.Get(out, "models.0.digest").Str != export.Get("digest").Str {
			t.Errorf("inspect of the export: %d, %s%s", code, out, errOut)
		}
		answerTo(t, config, "class_add", "waveform", "--data", `{"class":"broken"}`)
		answerTo(t, config, "class_rename", "waveform", "--data", `{"from":"2","to":"two"}`)
		d.kill()

		d = startDaemon(t, config)
		d.await("connected to the broker")
		replayed(t, data, "--broker", b.URL())() // the sensors go on saying 2
		awaitSamples(t, b, 400)
		metrics := brokertest.Retained(t, b.URL(), "edge/test/waveform/metrics")
		if got := gjson.Get(metrics, "classes").Raw; got != `["0","1","two","broken"]` || gjson.Get(metrics, "per_class.two.n").Int() == 0 {
			t.Errorf("classes %s, metrics %s", got, metrics)
		}
		if got := answerTo(t, config, "rollback", "--data", `{"to":"good"}`); got.Get("samples").Int() != 192 || got.Get("classes").Raw != `["0","1","2"]` {
			t.Errorf("rollback: %s, want the classes and the 192 samples of then", got)
		}
		d.kill()

		d = startDaemon(t, config)
		ready := d.await("model ready")
		if ready.Get("samples").Int() != 200 {
			t.Errorf("after the roll-back and a power cut: %s, want 200 samples judged", ready)
		}
		d.await("connected to the broker")
		answerTo(t, config, "checkpoint")
		d.kill()
		d = startDaemon(t, config)
		if again := d.await("model ready"); again.Get("digest").Str != ready.Get("digest").Str || again.Get("replayed").Int() != 0 {
			t.Errorf("after a checkpoint: %s, then %s", ready, again)
		}
		d.await("connected to the broker")
		answerTo(t, config, "reload") // also before any signal
		for _, c := range []struct{ args, want string }{
			{`rollback --data {"to":"../../etc"}`, "want a name"},
			{`rollback --data {"to":"never"}`, "no export"},
			{`set_log_level --data {"level":"loud"}`, "want debug"},
			{"dance", "unknown request"},
		} {
			code, out, errOut := edge(t, append([]string{"request", "-c", config}, strings.Fields(c.args)...)...)
			if code != exit.Runtime || !strings.Contains(errOut, c.want) || gjson.Get(out, "status").Str != "error" {
				t.Errorf("edge request %s: %d, %s%s, want an error that says %q", c.args, code, out, errOut, c.want)
			}
		}
		d.stop()
	})
}
