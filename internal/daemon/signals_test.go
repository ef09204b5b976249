package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/online/active"
	"edge/stream/codec"
	"edge/stream/signal"
)

// withSignals lets a daemon learn windows of four rows of two signals, each two rows, and
// ask for each label.
func withSignals(c *config.Config) {
	in, m := c.Streams["pump"], c.Models["wear"]
	in.Features, in.ID = nil, ""
	in.Stage.Signals = []string{"x", "y"}
	in.Stage.Window.Length, in.Stage.Window.Hop = signal.Span{Rows: 4}, signal.Span{Rows: 2}
	m.Active = active.Config{Strategy: active.BALD, Budget: 1}
	c.Streams, c.Models = map[string]codec.Stream{"pump": in}, map[string]config.Model{"wear": m}
	c.Control.Enabled = true
}

// rows returns messages of one row each of x = from, from+1, … and y = -x.
func rows(from, n int) (payloads []string) {
	for i := from; i < from+n; i++ {
		payloads = append(payloads, fmt.Sprintf(`{"ts":%d,"x":%d,"y":%d}`, 1_700_000_000+i, i, -i))
	}
	return payloads
}

// The API has the course of the signals beside each question, and how full the windows of
// the devices are.
func TestSignalsInTheAPI(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	s := serve(t, b.URL(), withSignals).ready()
	if _, a := s.get("/api/v1/models/wear"); gjson.Get(a, "windows").Exists() {
		t.Errorf("windows before the first row: %s", gjson.Get(a, "windows"))
	}
	publish(t, b.URL(), "plant/a/pump", rows(0, 7)...)
	publish(t, b.URL(), "plant/b/pump", rows(0, 3)...)
	var a string
	s.await("the rows did not come", "/api/v1/models/wear", func(_ int, answer string) bool {
		a = answer
		return gjson.Get(a, "queries.open.#").Int() == 2 && gjson.Get(a, "windows.devices.#(rows==3)#|#").Int() == 2
	})
	for i, want := range []string{
		`{"from":"2023-11-14T22:13:20.000Z","to":"2023-11-14T22:13:23.000Z","signals":[{"signal":"x","values":[0,1,2,3]},{"signal":"y","values":[0,-1,-2,-3]}]}`,
		`{"from":"2023-11-14T22:13:22.000Z","to":"2023-11-14T22:13:25.000Z","signals":[{"signal":"x","values":[2,3,4,5]},{"signal":"y","values":[-2,-3,-4,-5]}]}`,
	} {
		if got := gjson.Get(a, fmt.Sprintf("queries.open.%d.signals", i)).Raw; got != want {
			t.Errorf("question %d has the course\n%s, want\n%s", i, got, want)
		}
		if got := gjson.Get(a, fmt.Sprintf("samples.%d.signals", 1-i)).Raw; got != want {
			t.Errorf("sample %d has the course\n%s, want\n%s", i, got, want)
		}
	}
	windows := gjson.Get(a, "windows").Raw
	if want := `{"devices":[{"stream":"pump","device":"a","length":"4","rows":3,"part":0.75,"ts":"2023-11-14T22:13:26.000Z"},` +
		`{"stream":"pump","device":"b","length":"4","rows":3,"part":0.75,"ts":"2023-11-14T22:13:22.000Z"}],"others":0}`; windows != want {
		t.Errorf("the windows are\n%s, want\n%s", windows, want)
	}
	// The question is answered; its sample was learnt with its id.
	id := gjson.Get(a, "queries.open.0.id").String()
	if code, answer := s.label(id, "a", 1, "ok"); code != 200 {
		t.Errorf("the label of %s: %d %s", id, code, answer)
	}
	// A reload takes the windows over.
	s.Daemon.Source = func() (*config.Config, error) {
		c := *s.current().Config
		withSignals(&c)
		m := c.Models["wear"]
		m.Pending.Max = 7
		c.Models["wear"] = m
		return &c, nil
	}
	if _, err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, a = s.get("/api/v1/models/wear"); gjson.Get(a, "windows").Raw != windows {
		t.Errorf("after a reload the windows are %s", gjson.Get(a, "windows"))
	}
}

// A page that a reload adds has the courses of later samples, also of rows that came before.
func TestSignalsOfAddedPage(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	page := brokertest.FreeAddress(t)
	s := serve(t, b.URL(), func(c *config.Config) {
		withSignals(c)
		c.HTTP.Listen = ""
	})
	if !brokertest.Eventually(func() bool { return s.current().Node.Stats().Subscribed }) {
		t.Fatal("the daemon does not subscribe")
	}
	publish(t, b.URL(), "plant/a/pump", rows(0, 2)...)
	if !brokertest.Eventually(func() bool { return s.current().Node.Stats().Streams["pump"].Received == 2 }) {
		t.Fatal("the rows did not come")
	}
	s.Daemon.Source = func() (*config.Config, error) {
		c := *s.current().Config
		withSignals(&c)
		c.HTTP.Listen = page
		return &c, nil
	}
	if _, err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + page
	if !brokertest.Eventually(func() bool { return s.current().Config.HTTP.Listen != "" }) {
		t.Fatal("the reload does not end")
	}
	s.ready()
	publish(t, b.URL(), "plant/a/pump", rows(2, 2)...)
	var course string
	s.await("no sample", "/api/v1/models/wear", func(_ int, a string) bool {
		course = gjson.Get(a, "samples.0.signals.signals.0.values").Raw
		return gjson.Get(a, "samples.#").Int() == 1
	})
	if course != "[0,1,2,3]" {
		t.Errorf("the course is %q", course)
	}
}

// A stream without signals has neither.
func TestNoSignalsInTheAPI(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	s := serve(t, b.URL(), nil).ready()
	publish(t, b.URL(), "plant/a/pump", `{"id":"one","features":[1,2]}`)
	s.await("no sample", "/api/v1/models/wear", func(_ int, a string) bool {
		return gjson.Get(a, "samples.#").Int() == 1 && !gjson.Get(a, "windows").Exists() && !gjson.Get(a, "samples.0.signals").Exists()
	})
}

// seenSignals is the page as testdata/signals.js found it.
type seenSignals struct {
	Problems, Nameless         []string
	Asked, Courses             []string // labels of the plots
	Fills                      []string
	Ticks                      []string // of the first plot
	Points                     int      // of its path
	Filled                     float64  // part of the bar of the first window
	Offer, Over                string
	Overflow, WithoutDimension int
}

// In a real browser the page plots the signals beside the question and of the newest
// sample, and shows how full the windows are.
func TestPageOfSignalsInBrowser(t *testing.T) {
	if os.Getenv("PAGE_BROWSER") == "" {
		t.Skip("needs a browser: ci/page/run starts one and sets PAGE_BROWSER")
	}
	b := brokertest.New(t, brokertest.Embedded)
	s := serve(t, b.URL(), withSignals).ready()
	publish(t, b.URL(), "plant/a/pump", rows(0, 7)...)
	s.await("no question", "/api/v1/models/wear", func(_ int, a string) bool { return gjson.Get(a, "queries.open.#").Int() == 2 })
	cmd := exec.CommandContext(t.Context(), "node", "testdata/signals.js")
	cmd.Env = append(os.Environ(), "PAGE_URL="+s.url+"/")
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &errOut)
	}
	var saw struct{ Desk, Phone seenSignals }
	if err := json.Unmarshal(out.Bytes(), &saw); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	for name, v := range map[string]seenSignals{"desk": saw.Desk, "phone": saw.Phone} {
		if len(v.Problems) > 0 || len(v.Nameless) > 0 || v.Overflow > 0 || v.WithoutDimension > 0 {
			t.Errorf("%s: problems %q, without a name %q, %d px too wide, %d plots without a size", name, v.Problems, v.Nameless, v.Overflow, v.WithoutDimension)
		}
		if want := "x: from 0 to 3 over 3 s, y: from −3 to 0 over 3 s"; strings.Join(v.Asked, ", ") != want || v.Points != 4 {
			t.Errorf("%s: beside the question %q are plots %q of %d points, want %q", name, v.Offer, v.Asked, v.Points, want)
		}
		if want := "x: from 2 to 5 over 3 s, y: from −5 to −2 over 3 s"; strings.Join(v.Courses, ", ") != want || !strings.Contains(v.Over, "a#1700000005000") {
			t.Errorf("%s: of the newest sample (%s) are plots %q, want %q", name, v.Over, v.Courses, want)
		}
		if want := "0|2|0 s|1 s|2 s|3 s"; strings.Join(v.Ticks, "|") != want {
			t.Errorf("%s: the axes have %q, want %q", name, v.Ticks, want)
		}
		if len(v.Fills) != 1 || math.Abs(v.Filled-0.75) > 0.01 || !strings.HasPrefix(v.Fills[0], "a: next window 3 of 4 rows") {
			t.Errorf("%s: the windows are %q, filled %.3f", name, v.Fills, v.Filled)
		}
	}
}
