package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/dataset"
	"edge/stream"
	"edge/stream/codec"
)

// seen is the page as testdata/page.js found it.
type seen struct {
	Requests, Problems, Nameless, Landmarks []string
	Text, Facts                             map[string]string
	Confusion, Samples                      [][]string
	Events, Offer, Told, Present, Axis      string
	Bands                                   int
	Values                                  []string
	NewTold                                 []string
	Fleet                                   string
	Members                                 [][]string
	Overflow                                int
	Scrolled                                []string
}

// In a real browser the page leads with the present class, shows the figures of the
// metrics topic and sends labels by its buttons and by the entry for a new class;
// the console has no error, and every request goes to the daemon. Long: one visit
// of the page, step by step.
func TestPageInBrowser(t *testing.T) {
	browser := os.Getenv("PAGE_BROWSER")
	if browser == "" {
		t.Skip("PAGE_BROWSER is not set; ci/page/run sets it")
	}
	classes := []string{"ok", "worn", "broken as a machine says it: " + strings.Repeat("x", 60)} // one for each of the demo's sensors
	w := dataset.NewWaveform(3)
	b := brokertest.New(t, brokertest.Embedded)
	s := serve(t, b.URL(), func(c *config.Config) {
		c.Node, c.Control.Enabled = "pi4-hall", true
		in, m := c.Streams["pump"], config.DefaultModel()
		in.Features, in.Topics, in.TopicTemplate = w.Features(), []string{"plant/+/vibration"}, "plant/{device}/vibration"
		m.Streams = []string{"vibration"}
		m.Learner.Classes.Names, m.Fleet.Concept = classes, "mill"
		c.Streams, c.Models = map[string]codec.Stream{"vibration": in}, map[string]config.Model{"bearing": m}
		c.Metrics = stream.Metrics{Every: time.Second, Samples: 100}
		c.Store.Checkpoint.Samples = 500
	}).ready()

	labelled, unlabelled, pause, turns, devices := 400, 8, time.Duration(0), 40, []string{"p7"}
	if os.Getenv("PAGE_SHOTS") != "" { // a picture shows more after a while, and of several devices
		labelled, pause, turns, devices = 4000, 60*time.Second, 600, []string{"p7", "p8", "p9"}
	}
	p := stream.Prediction{} // only to number the samples
	var row dataset.Row
	next := func(n, class int, withLabel bool) (payloads []string) {
		for range n {
			for w.Next(&row); row.Label != strconv.Itoa(class); w.Next(&row) {
			}
			p.Seq++
			label := ""
			if withLabel {
				label = fmt.Sprintf(`,"label":%q`, classes[class])
			}
			x, _ := json.Marshal(row.X)
			payloads = append(payloads, fmt.Sprintf(`{"id":"s-%04d","features":%s%s}`, p.Seq, x, label))
		}
		return payloads
	}
	for i := range turns {
		for j, device := range devices {
			class := (i/(turns/7+j*turns/12) + j) % len(classes) // for some time each
			n := labelled * (i*len(devices) + j + 1) / (turns * len(devices))
			publish(t, b.URL(), "plant/"+device+"/vibration", next(n-int(p.Seq), class, true)...)
		}
		time.Sleep(pause / time.Duration(turns))
	}
	publish(t, b.URL(), "plant/p7/vibration", next(unlabelled, 1, false)...)
	s.await("not all is learnt", "/api/v1/models/bearing", func(_ int, a string) bool {
		return gjson.Get(a, "version").Int() == int64(labelled) && gjson.Get(a, "pending").Int() == int64(unlabelled) && len(gjson.Get(a, "course").Array()) > 0
	})
	publish(t, b.URL(), "edge/fleet/mill/pi9", contributionOf(t, "pi9"))
	s.await("the contribution is not judged", "/api/v1/models/bearing", func(_ int, a string) bool {
		return gjson.Get(a, "fleet.members.0.refused").Exists()
	})
	metrics, ok := brokertest.Await(t, b, "edge/pi4-hall/bearing/metrics", func(m string) bool {
		return gjson.Get(m, "n").Int() == int64(labelled) && gjson.Get(m, "pending").Int() == int64(unlabelled)
	})
	if !ok {
		t.Fatalf("the metrics topic has %s", metrics)
	}

	cmd := exec.CommandContext(t.Context(), "node", "testdata/page.js")
	cmd.Env = append(os.Environ(), "PAGE_URL="+s.url+"/", "PAGE_LABEL=worn")
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &errOut)
	}
	var saw struct{ Desk, Phone seen }
	if err := json.Unmarshal(out.Bytes(), &saw); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	for name, v := range map[string]seen{"desk": saw.Desk, "phone": saw.Phone} {
		for _, r := range v.Requests {
			if !strings.HasPrefix(r, s.url+"/") && r != "data:," {
				t.Errorf("%s: the page asks for %s", name, r)
			}
		}
		if len(v.Problems) > 0 || len(v.Nameless) > 0 || len(v.Landmarks) != 4 || v.Overflow > 0 || len(v.Requests) < 3 {
			t.Errorf("%s: problems %q, without a name %q, landmarks %q, %d px too wide, %d requests", name, v.Problems, v.Nameless, v.Landmarks, v.Overflow, len(v.Requests))
		}
	}
	v := saw.Desk
	if len(v.Scrolled) > 0 {
		t.Errorf("the tables %q are wider than their place", v.Scrolled)
	}
	for id, key := range map[string]string{"error": "error", "window-error": "window.error", "loss": "log_loss", "window-loss": "window.log_loss", "ece": "ece"} {
		want, format, unit := gjson.Get(metrics, key).Float(), "%.3f", 0.001
		if !strings.HasSuffix(id, "loss") {
			want, format, unit = 100*want, "%.1f %%", 0.1
		}
		// Go and JavaScript round 4.25 differently.
		var shown float64
		_, err := fmt.Sscan(v.Text[id], &shown)
		if err != nil || v.Text[id] != fmt.Sprintf(format, shown) || math.Abs(shown-want) > unit/2+1e-9 {
			t.Errorf("the page shows %s %s, the metrics topic has %g", id, v.Text[id], want)
		}
	}
	plain := func(s string) string { return strings.ReplaceAll(s, "\u202f", "") }
	for id, want := range map[string]string{"n": strconv.Itoa(labelled), "pending": strconv.Itoa(unlabelled)} {
		if plain(v.Text[id]) != want {
			t.Errorf("the page shows %s %s, want %s", id, v.Text[id], want)
		}
	}
	if len(v.Members) != 1 || v.Members[0][0] != "pi9" || v.Members[0][1] != "90" || v.Members[0][5] != "✗ other features" || !strings.Contains(v.Fleet, "mill: 1 other") {
		t.Errorf("the page shows the fleet %q with %q", v.Fleet, v.Members)
	}
	for i, cells := range gjson.Get(metrics, "confusion").Array() {
		for j, n := range cells.Array() {
			if i >= len(v.Confusion) || j >= len(v.Confusion[i]) || plain(v.Confusion[i][j]) != n.Raw {
				t.Fatalf("the page shows confusion %q, the metrics topic has %s", v.Confusion, gjson.Get(metrics, "confusion"))
			}
		}
	}
	if newest := fmt.Sprintf("s-%04d p7", p.Seq); len(v.Samples) == 0 || v.Samples[0][1] != newest || !strings.HasPrefix(v.Offer, "Sample "+newest[:6]) {
		t.Errorf("the newest sample is %s, the page shows %q and offers %q", newest, v.Samples, v.Offer)
	}
	if !strings.Contains(v.Events, "warmed up") || v.Facts["Written since the start"] == "" {
		t.Errorf("events %q, facts %v", v.Events, v.Facts)
	}
	_, api := s.get("/api/v1/models/bearing")
	if at := gjson.Get(api, "present.devices.0"); !strings.HasPrefix(v.Present, "p7"+at.Get("class").String()) || !strings.Contains(v.Present, "sure") || v.Bands == 0 || !strings.Contains(v.Axis, ":") {
		t.Errorf("the page leads with %q, %d bands and the times %q; the API has %s", v.Present, v.Bands, v.Axis, at)
	}
	const most = 12 // features of a sample that waits for its label
	if len(v.Values) != most || !strings.Contains(v.Values[0], " to ") {
		t.Errorf("beside the query are the values %q, want %d with their usual range", v.Values, most)
	}
	if want := fmt.Sprintf("Learnt: s-%04d is worn.", p.Seq); v.Told != want {
		t.Errorf("after the button: %q, want %q", v.Told, want)
	}
	if want := []string{"Type the name of the class first.", "The name takes 300 bytes; at most 256 are allowed.", fmt.Sprintf("Learnt: s-%04d is cracked.", p.Seq-1)}; !slices.Equal(v.NewTold, want) {
		t.Errorf("after the entry for a new class: %q, want %q", v.NewTold, want)
	}
	s.await("the labels were not learnt", "/api/v1/models/bearing", func(code int, a string) bool {
		return code == http.StatusOK && gjson.Get(a, "version").Int() == int64(labelled)+2 && gjson.Get(a, "n").Int() == int64(labelled)+2 && gjson.Get(a, "pending").Int() == int64(unlabelled)-2 &&
			gjson.Get(a, "classes.#").Int() == 4
	})
}
