package main

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"edge/online"
	"edge/stream"
)

// The scores of published predictions are those of the predictions, each row's
// first one, whatever else is heard.
func TestPublishedScores(t *testing.T) {
	s := publishedScores{Total: 20}
	var want online.Judge
	rng := rand.New(rand.NewPCG(1, 2))
	classes := []string{"ok", "worn"}
	for row := 1; row <= 20; row++ {
		k := rng.IntN(2)
		s.expect(row, classes[k])
		if row == 7 {
			continue // is never answered
		}
		p := 0.5 + 0.5*rng.Float64()
		set := []string{"worn"}
		heard := &stream.PredictionPayload{Probs: map[string]float64{"ok": 1 - p, "worn": p}, Set: &set, Abstain: row%5 == 0, Latency: 1500}
		s.predicted("a", "m", row, heard)
		s.predicted("a", "m", row, heard)   // of a message that came twice
		s.predicted("a", "m", row+5, heard) // of a row that was not sent
		want.AddBeside([]float64{1 - p, p}, k, online.Beside{Ruled: true, Abstained: row%5 == 0, Sets: true, Size: 1, Holds: k == 1})
	}
	s.asked("a", "m")
	s.drifted("a", "m", "log_loss rose")
	s.asked("b", "silent")
	reports := s.reports("rows")
	if len(reports) != 1 {
		t.Fatalf("%d reports, want one", len(reports))
	}
	r, scores := reports[0], want.Scores(classes)
	if r.Samples != 19 || r.Error != scores.Error || math.Abs(r.NLL-scores.NLL) > 1e-12 || r.ECE != scores.ECE || r.Sets.Covered != scores.Sets.Covered || r.Abstained.Kept != scores.Abstained.Kept || r.Last.N != 19 {
		t.Errorf("%+v, want %+v", r, scores.Figures)
	}
	if p := r.Published; p.Node != "a" || p.Model != "m" || p.Rows != 20 || p.Unanswered != 1 || p.Queries != 1 || math.Abs(p.Latency.P99-0.0015) > 3e-5 || p.RoundTrip.Mean <= 0 {
		t.Errorf("published: %+v", r.Published)
	}
	if len(r.Tenths) != 9 || len(r.Drifts) != 1 || r.Drifts[0].N != 19 || len(r.Curve) == 0 {
		t.Errorf("%d tenths, drifts %v, %d points", len(r.Tenths), r.Drifts, len(r.Curve))
	}
}

func TestDurations(t *testing.T) {
	var d durations
	if d.summary() != (Durations{}) {
		t.Error("nothing has a summary")
	}
	for i := range 1000 {
		d.add(time.Duration(i+1) * time.Millisecond)
	}
	s := d.summary()
	for _, c := range []struct{ got, want float64 }{{s.Mean, 0.5005}, {s.P50, 0.5}, {s.P90, 0.9}, {s.P99, 0.99}, {s.Max, 1}} {
		if math.Abs(c.got-c.want) > 0.011*c.want {
			t.Errorf("%+v, want %g", s, c.want)
		}
	}
}

// Replay tells how what was published for its rows compares with the file.
func TestReplayScores(t *testing.T) {
	data := waveformFile(t, 400)
	forEachBroker(t, func(t *testing.T, b *testBroker) {
		config, _ := waveformConfig(t, b.url())
		d := startDaemon(t, config)
		code, out, errOut := edge(t, "replay", data, "-c", config, "--json")
		if code != exitOK {
			t.Fatalf("replay exits with %d: %s", code, errOut)
		}
		var r Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		final := d.stop()
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

// Asked for a label, replay gives the file's: so active learning is measured over
// MQTT.
func TestReplayAnswersQuestions(t *testing.T) {
	data := waveformFile(t, 300)
	b := newTestBroker(t, startEmbedded)
	config, _ := waveformConfig(t, b.url())
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	config = writeFile(t, "asking.yaml", strings.Replace(string(text), "    inducing: 20\n", "    inducing: 20\n    active: {strategy: margin, budget: 0.3, budget_per_hour: 0}\n", 1))
	d := startDaemon(t, config)
	code, out, errOut := edge(t, "replay", data, "-c", config, "--labels", "asked", "--ahead", "1")
	if code != exitOK {
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
	awaitSamples(t, b, asked)
	if n := d.stop().Get("samples").Int(); n != int64(asked) {
		t.Errorf("%d labels were learnt, %d asked for:\n%s", n, asked, out)
	}
}

// Whatever is published for the rows of a file, the report can be written.
func FuzzPublished(f *testing.F) {
	f.Add([]byte(`{"model":"m","id":"r-1","class":"ok","probs":{"ok":0.75,"worn":0.25},"set":["ok"],"latency_us":1500}`), []byte(`{}`))
	f.Add([]byte(`{"probs":{"ok":-1,"worn":1e308}}`), []byte(`{"probs":{"ok":7},"set":[],"latency_us":-9223372036854775808}`))
	f.Add([]byte{0xa1, 0x65, 'p', 'r', 'o', 'b', 's', 0xa1, 0x62, 'o', 'k', 0xfb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0}, []byte{0xa1, 0x65, 'p', 'r', 'o', 'b', 's', 0xa0})
	f.Fuzz(func(t *testing.T, one, two []byte) {
		s := publishedScores{Total: 4}
		for row := 1; row <= 4; row++ {
			s.expect(row, []string{"ok", "worn"}[row%2])
			p, err := stream.ReadPrediction([][]byte{one, two}[row%2])
			if err == nil {
				s.predicted("a", "m", row, p)
			}
		}
		for _, r := range s.reports("rows") {
			if _, err := json.Marshal(r); err != nil {
				t.Errorf("the report of %q and %q has no JSON: %v", one, two, err)
			}
		}
	})
}

// Rows go where a stream of the configuration takes them, or nowhere.
func TestTopicOfAReplay(t *testing.T) {
	stream := func(topics string) *Config {
		return parsed(t, strings.Replace(minimal, "topics: [factory/+/vibration]", "topics: "+topics, 1))
	}
	for name, tc := range map[string]struct {
		cfg        *Config
		want, fail string
	}{
		"no configuration":     {nil, "sensors/gas", ""},
		"a stream takes it":    {stream("[lab/gas, sensors/+]"), "sensors/gas", ""},
		"shared subscription":  {stream("[$share/g/sensors/#]"), "sensors/gas", ""},
		"the only one":         {stream("[lab/gas]"), "lab/gas", ""},
		"one of several":       {stream("[lab/gas, lab/air]"), "", "takes sensors/gas: give --topic one that matches lab/gas or lab/air"},
		"only with a wildcard": {stream("[lab/+/gas]"), "", "give --topic one that matches lab/+/gas"},
	} {
		got, err := topicOf("gas", tc.cfg)
		if got != tc.want || (err == nil) != (tc.fail == "") || err != nil && !strings.Contains(err.Error(), tc.fail) {
			t.Errorf("%s: %q, %v; want %q, %s", name, got, err, tc.want, tc.fail)
		}
	}
}
