package main

import (
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/tidwall/gjson"

	"edge/online/active"
)

func TestEvalQuery(t *testing.T) {
	path := tableFile(t, "table.csv", 400)
	full := evalJSON(t, path, "--inducing", "10")[0]
	reports := evalJSON(t, path, "--inducing", "10", "--query", "margin,random", "--budget", "0.1,0.3,1")
	if len(reports) != 6 {
		t.Fatalf("two strategies and three budgets give %d reports", len(reports))
	}
	for i, r := range reports {
		a := r.Asked
		if a == nil || r.Samples != 400 || string(a.Strategy) != []string{"margin", "random"}[i/3] || a.Budget != []float64{0.1, 0.3, 1}[i%3] {
			t.Fatalf("report %d: %d samples, %+v", i, r.Samples, a)
		}
		if most := min(400, max(a.Budget*2400, 20)+a.Budget*200); a.Labels > most || a.Labels < 0.7*a.Budget*400 || a.Fraction != a.Labels/400 {
			t.Errorf("%s, budget %g: %g labels (%g), want at most %g", a.Strategy, a.Budget, a.Labels, a.Fraction, most)
		}
		if a.LastHalf.Error <= 0 || a.LastHalf.NLL <= 0 || r.Error < a.LastHalf.Error/2 || r.NLL > math.Log(3) || r.ECE <= 0 {
			t.Errorf("%s, budget %g: %+v, error %g, log loss %g, ece %g", a.Strategy, a.Budget, a.LastHalf, r.Error, r.NLL, r.ECE)
		}
		if last := r.Curve[len(r.Curve)-1]; last.N != 400 || last.Error != r.Error {
			t.Errorf("the curve ends with %+v, error %g", last, r.Error)
		}
	}
	if reports[2].Digest != reports[5].Digest {
		t.Error("asking for everything depends on the strategy")
	}
	if again := evalJSON(t, path, "--inducing", "10", "--query", "margin", "--budget", "0.1")[0]; again.Digest != reports[0].Digest || again.NLL != reports[0].NLL {
		t.Error("a second run gives another digest or log loss")
	}
	if reports[0].Digest == reports[3].Digest || reports[0].Digest == full.Digest {
		t.Error("what is asked for makes no difference")
	}
}

// With budget 1 every label is taught, one by one: as if each came alone.
func TestEvalQueryForEverything(t *testing.T) {
	path := tableFile(t, "table.csv", 120)
	config := writeFile(t, "edge.yaml", "mqtt: {servers: [mqtt://broker.lan]}\n"+
		"streams: {s: {topics: [t], features: [x, y]}}\n"+
		"models: {m: {streams: [s], inducing: 8, temporal: off, batch: {max_size: 1}, classes: {names: [class0, class1, class2]}}}\n")
	one := evalJSON(t, path, "-c", config)[0]
	all := evalJSON(t, path, "-c", config, "--query", "bald", "--budget", "1")[0]
	if all.Asked.Labels != 120 || all.Error != one.Error || math.Abs(all.NLL-one.NLL) > 1e-12 {
		t.Errorf("%g labels, error %g, log loss %g; without asking %g, %g", all.Asked.Labels, all.Error, all.NLL, one.Error, one.NLL)
	}
}

func TestEvalQuerySeedsTableAndPlot(t *testing.T) {
	path := tableFile(t, "table.csv", 100)
	r := evalJSON(t, path, "--query", "entropy", "--budget", "0.2", "--seeds", "2")[0]
	if len(r.Runs) != 2 || r.Runs[0].Seed != 1 || r.Runs[1].Seed != 2 || r.Runs[0].Digest == r.Runs[1].Digest {
		t.Errorf("runs %+v", r.Runs)
	}
	svg := filepath.Join(t.TempDir(), "asked.svg")
	code, out, errOut := edge(t, "eval", path, "--query", "margin", "--budget", "0.1,0.2", "--plot", svg)
	if code != exitOK || len(strings.Split(strings.TrimSpace(out), "\n")) != 3 || !strings.Contains(out, "last half") {
		t.Errorf("exits with %d: %s\n%s", code, errOut, out)
	}
	if picture, err := os.ReadFile(svg); err != nil || !strings.Contains(string(picture), "labels asked for") {
		t.Errorf("the plot has %d bytes (%v)", len(picture), err)
	}
	for _, args := range [][]string{{"--query", "often"}, {"--query", "off"}, {"--query", "margin", "--budget", "2"}, {"--query", "margin", "--mode", "cv"}} {
		if code, _, errOut := edge(t, append([]string{"eval", path}, args...)...); code != exitUsage || !strings.Contains(errOut, "--query") {
			t.Errorf("%q exits with %d: %s", args, code, errOut)
		}
	}
}

// A question comes over MQTT; the label that answers it teaches, and so does the
// answer on the page, which shows what is asked first.
func TestQueryOverMQTT(t *testing.T) {
	forEachBroker(t, func(t *testing.T, b *testBroker) {
		s := serve(t, b.url(), func(c *Config) {
			m := c.Models["wear"]
			m.Active = active.Config{Strategy: active.BALD, Budget: 1}
			c.Models["wear"], c.Control.Enabled = m, true
		}).ready()
		asked := make(chan gjson.Result, 10)
		client := mqtt.NewClient(mqtt.NewClientOptions().AddBroker(b.url()).SetClientID("operator"))
		if token := client.Connect(); token.Wait() && token.Error() != nil {
			t.Fatal(token.Error())
		}
		defer client.Disconnect(0)
		if token := client.Subscribe("edge/test/wear/query", 1, func(_ mqtt.Client, m mqtt.Message) { asked <- gjson.ParseBytes(m.Payload()) }); token.Wait() && token.Error() != nil {
			t.Fatal(token.Error())
		}
		publish(t, b.url(), "plant/a/pump", `{"id":"one","features":[1,2]}`, `{"features":[2,2]}`, `{"id":"three","features":[3,2]}`)
		for _, id := range []string{"one", "three"} {
			select {
			case q := <-asked:
				if q.Get("id").String() != id || q.Get("reason").String() != "bald" || q.Get("device").String() != "a" || q.Get("features.b").Float() != 2 || !q.Get("expires").Exists() {
					t.Errorf("want a question about %s: %s", id, q)
				}
			case <-time.After(patience):
				t.Fatalf("nobody asks about %s", id)
			}
		}
		_, a := s.get("/api/v1/models/wear")
		if open := gjson.Get(a, "queries.open"); open.Get("0.id").String() != "one" || open.Get("1.seq").Uint() != 3 || open.Get("0.reason").String() != "bald" || len(open.Array()) != 2 {
			t.Errorf("the page does not show them: %s", open)
		}
		publish(t, b.url(), "edge/test/wear/label/a", `{"id":"one","label":"ok"}`)
		if !eventually(func() bool { return s.now().node.Stats().Models["wear"].Answered == 1 }) {
			t.Fatal("the label over MQTT answers nothing")
		}
		code, answer := s.do("POST", "/api/v1/models/wear/label", `{"id":"three","device":"a","seq":3,"label":"worn"}`, map[string]string{"Content-Type": "application/json"})
		if code != http.StatusOK {
			t.Fatalf("the page's answer: %d %s", code, answer)
		}
		s.await("not both are learnt", "/api/v1/models/wear", func(_ int, a string) bool {
			return gjson.Get(a, "version").Uint() == 2 && gjson.Get(a, "queries.answered").Uint() == 2 && len(gjson.Get(a, "queries.open").Array()) == 0
		})
		_, metrics := s.get("/metrics")
		for _, want := range []string{`edge_queries_total{model="wear",what="asked"} 2`, `edge_queries_total{model="wear",what="answered"} 2`, `edge_queries_open{model="wear"} 0`} {
			if !strings.Contains(metrics, want) {
				t.Errorf("/metrics does not say %s", want)
			}
		}
		if m := retained(t, b.url(), "edge/test/wear/metrics"); !gjson.Get(m, "queries.asked").Exists() {
			t.Errorf("the model's metrics do not count questions: %s", m)
		}
	})
}

// Beside every label, it is told how few are as good.
func TestEvalQueryAgainstFull(t *testing.T) {
	path := tableFile(t, "table.csv", 400)
	code, out, errOut := edge(t, "eval", path, "--inducing", "10", "--query", "random", "--budget", "0.01,1", "--against-full", "--seeds", "2")
	if code != exitOK {
		t.Fatalf("exits with %d: %s", code, errOut)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 8 || !strings.Contains(lines[1], "every label") || !strings.Contains(lines[1], " 400 ") {
		t.Fatalf("prints\n%s", out)
	}
	if last := lines[len(lines)-1]; !strings.HasPrefix(strings.TrimSpace(last), "table") || !strings.Contains(last, "random") || strings.Contains(last, "(0.01)") {
		t.Errorf("a hundredth of the labels is as good as all: %s", last)
	}
	if code, _, _ := edge(t, "eval", path, "--against-full"); code != exitUsage {
		t.Error("--against-full needs no questions")
	}
}

func TestLabelsNeeded(t *testing.T) {
	report := func(strategy active.Strategy, budget, err, half float64) *Report {
		return &Report{Dataset: "d", Error: err, Asked: &AskedReport{Strategy: strategy, Budget: budget, Labels: 100 * budget, LastHalf: HalfScore{Error: half}}}
	}
	var out strings.Builder
	if err := printNeeded(&out, []*Report{
		report(everyLabel, 1, 0.1, 0.05),
		report(active.Margin, 0.1, 0.2, 0.04), report(active.Margin, 0.5, 0.1, 0.03), report(active.Margin, 0.7, 0.09, 0.03),
		report(active.BALD, 0.1, 0.2, 0.1),
	}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{"d margin 50 (0.5) 10 (0.1)", "d bald more more"} {
		if got := strings.Join(strings.Fields(lines[2+i]), " "); got != want {
			t.Errorf("line %d: %q, want %q", 2+i, got, want)
		}
	}
	out.Reset()
	if err := printNeeded(&out, []*Report{report(active.Margin, 0.1, 0.2, 0.1)}); err != nil || out.Len() > 0 {
		t.Errorf("without every label: %s %v", &out, err)
	}
}
