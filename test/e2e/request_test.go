package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/exit"
	"edge/test/harness"
)

// answerTo sends a request to a running daemon and returns the data of its answer.
func answerTo(t *testing.T, config string, args ...string) gjson.Result {
	t.Helper()
	code, out, errOut := harness.Run(t, append([]string{"request", "-c", config, "--wait", brokertest.Patience.String()}, args...)...)
	if code != exit.OK {
		t.Fatalf("edge request %v exits with %d: %s", args, code, errOut)
	}
	return gjson.Get(out, "data")
}

// TestRequestsAreDurable kills the daemon after requests: their effects are kept. A
// model then rolls back to an earlier export.
func TestRequestsAreDurable(t *testing.T) {
	data := harness.WaveformFile(t, 400)
	t.Setenv("EDGE_CONTROL_ENABLED", "true")
	brokertest.ForEach(t, func(t *testing.T, b *brokertest.Broker) {
		config, store := harness.WaveformConfig(t, b.URL())
		d := harness.Start(t, config)
		d.Await("connected to the broker")
		if got := answerTo(t, config, "ping"); got.Get("node").Str != "test" {
			t.Errorf("ping: %s", got)
		}
		if code, out, errOut := harness.Run(t, "request", "ping", "--broker", b.URL(), "--node", "test"); code != exit.OK || gjson.Get(out, "data.node").Str != "test" {
			t.Errorf("ping without a configuration: %d, %s%s", code, out, errOut)
		}
		harness.Replay(t, data, "--broker", b.URL(), "--first", "200")()
		harness.AwaitSamples(t, b, 200)
		export := answerTo(t, config, "export", "--data", `{"name":"good"}`)
		if want := filepath.Join(filepath.Dir(store), "exports", "waveform.good.db"); export.Get("file").Str != want {
			t.Errorf("export: %s, want the file %s", export, want)
		}
		code, out, errOut := harness.Run(t, "inspect", export.Get("file").Str, "--json")
		if code != exit.OK || gjson.Get(out, "models.0.digest").Str != export.Get("digest").Str {
			t.Errorf("inspect of the export: %d, %s%s", code, out, errOut)
		}
		answerTo(t, config, "class_add", "waveform", "--data", `{"class":"broken"}`)
		answerTo(t, config, "class_rename", "waveform", "--data", `{"from":"2","to":"two"}`)
		d.Kill()

		d = harness.Start(t, config)
		d.Await("connected to the broker")
		harness.Replay(t, data, "--broker", b.URL())() // the sensors go on saying 2
		harness.AwaitSamples(t, b, 400)
		metrics := brokertest.Retained(t, b.URL(), "edge/test/waveform/metrics")
		if got := gjson.Get(metrics, "classes").Raw; got != `["0","1","two","broken"]` || gjson.Get(metrics, "per_class.two.n").Int() == 0 {
			t.Errorf("classes %s, metrics %s", got, metrics)
		}
		if got := answerTo(t, config, "rollback", "--data", `{"to":"good"}`); got.Get("samples").Int() != 200 || got.Get("classes").Raw != `["0","1","2"]` {
			t.Errorf("rollback: %s, want the classes and the 200 samples of then, 8 of them in the open minibatch", got)
		}
		d.Kill()

		d = harness.Start(t, config)
		ready := d.Await("model ready")
		if ready.Get("samples").Int() != 200 {
			t.Errorf("after the roll-back and a power cut: %s, want 200 samples judged", ready)
		}
		d.Await("connected to the broker")
		answerTo(t, config, "checkpoint")
		d.Kill()
		d = harness.Start(t, config)
		if again := d.Await("model ready"); again.Get("digest").Str != ready.Get("digest").Str || again.Get("replayed").Int() != 0 {
			t.Errorf("after a checkpoint: %s, then %s", ready, again)
		}
		d.Await("connected to the broker")
		answerTo(t, config, "reload") // also before any signal
		for _, c := range []struct{ args, want string }{
			{`rollback --data {"to":"../../etc"}`, "want a name"},
			{`rollback --data {"to":"never"}`, "no export"},
			{`set_log_level --data {"level":"loud"}`, "want debug"},
			{`class_add waveform --data {"name":"broken"}`, `want {"data": {"class": "…"}}, not "name"; --data gives the inner object`},
		} {
			code, out, errOut := harness.Run(t, append([]string{"request", "-c", config}, strings.Fields(c.args)...)...)
			if code != exit.Runtime || !strings.Contains(errOut, c.want) || gjson.Get(out, "status").Str != "error" {
				t.Errorf("edge request %s: %d, %s%s, want an error that says %q", c.args, code, out, errOut, c.want)
			}
		}
		d.Stop()
	})
}
