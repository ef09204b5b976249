package e2e

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/internal/exit"
	"edge/internal/report"
	"edge/test/files"
	"edge/test/harness"
)

// TestReplayScores compares the scores that replay prints for the published
// predictions with those of the daemon.
func TestReplayScores(t *testing.T) {
	data := harness.WaveformFile(t, 400)
	brokertest.ForEach(t, func(t *testing.T, b *brokertest.Broker) {
		config, _ := harness.WaveformConfig(t, b.URL())
		d := harness.Start(t, config)
		code, out, errOut := harness.Run(t, "replay", data, "-c", config, "--json")
		if code != exit.OK {
			t.Fatalf("replay exits with %d: %s", code, errOut)
		}
		var r report.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		final := d.Stop()
		if p := r.Published; p == nil || p.Node != "test" || p.Model != "waveform" || p.Rows != 400 || p.Unanswered != 0 || p.Latency.Mean <= 0 || p.RoundTrip.P50 < p.Latency.P50 {
			t.Errorf("published: %+v", p)
		}
		if r.Mode != "published" || r.Samples != 400 || r.Error < final.Get("error").Float()-0.05 || r.Error > 0.7 || r.Sets == nil || r.Sets.N != 400 || r.Last.N != 400 || r.Prior.Error < 0.5 {
			t.Errorf("%s; the daemon %s", out, final)
		}
		if math.Abs(float64(r.Sets.Covered)-0.9) > 0.03 {
			t.Errorf("the published sets hold the label in %.3f", r.Sets.Covered)
		}
	})
}

// TestReplayAnswersQuestions lets replay answer queries with the labels of the file,
// which measures active learning over MQTT.
func TestReplayAnswersQuestions(t *testing.T) {
	data := harness.WaveformFile(t, 300)
	b := brokertest.New(t, brokertest.Embedded)
	config, _ := harness.WaveformConfig(t, b.URL())
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	config = files.Write(t, "asking.yaml", strings.Replace(string(text), "    inducing: 20\n", "    inducing: 20\n    active: {strategy: margin, budget: 0.3, budget_per_hour: 0}\n", 1))
	d := harness.Start(t, config)
	code, out, errOut := harness.Run(t, "replay", data, "-c", config, "--labels", "asked", "--ahead", "1")
	if code != exit.OK {
		t.Fatalf("replay exits with %d: %s", code, errOut)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	fields := strings.Fields(lines[len(lines)-1])
	if len(lines) != 5 || len(fields) < 6 || fields[3] != "0" {
		t.Fatalf("replay prints:\n%s", out)
	}
	asked, err := strconv.Atoi(fields[4])
	if err != nil || asked <= 20 { // of 90 that the budget allows; how many depends on how soon answers are learnt
		t.Errorf("%d labels were asked for (%v):\n%s", asked, err, out)
	}
	harness.AwaitSamples(t, b, asked)
	if n := d.Stop().Get("samples").Int(); n != int64(asked) {
		t.Errorf("%d labels were learnt, %d asked for:\n%s", n, asked, out)
	}
}
