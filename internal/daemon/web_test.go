package daemon

import (
	"bufio"
	"context"
	"maps"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/web"
)

// Readiness follows the broker, liveness does not.
func TestReadiness(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	b.Stop()
	s := serve(t, b.URL(), nil)
	s.await("the store is not looked at", "/readyz", func(code int, a string) bool {
		return code == http.StatusServiceUnavailable && gjson.Get(a, `checks.#(name=="store").ok`).Bool()
	})
	_, a := s.get("/readyz")
	if gjson.Get(a, "status").String() != "failing" || gjson.Get(a, `checks.#(name=="broker").ok`).Bool() || gjson.Get(a, `checks.#(name=="subscriptions").ok`).Bool() {
		t.Errorf("without a broker: %s", a)
	}
	if code, a := s.get("/healthz"); code != http.StatusOK || gjson.Get(a, `checks.#(name=="model wear").ok`).Raw != "true" {
		t.Errorf("without a broker it is not alive: %d %s", code, a)
	}
	b.Stop = b.Start(t, b.Addr)
	s.ready()
	_, a = s.get("/readyz")
	if got := gjson.Get(a, `checks.#(name=="last message").detail`).String(); got != "none yet" {
		t.Errorf("before the first message: %s", a)
	}
	publish(t, b.URL(), "plant/a/pump", `{"id":"u","features":[1,2]}`)
	s.await("the last message is not reported", "/readyz", func(code int, a string) bool {
		return code == http.StatusOK && strings.HasSuffix(gjson.Get(a, `checks.#(name=="last message").detail`).String(), " ago")
	})
	b.Stop()
	s.await("it is ready without a broker", "/readyz", func(code int, _ string) bool { return code == http.StatusServiceUnavailable })
}

// Requests from another origin, too large ones and unknown paths are refused.
func TestRequestsRefused(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	s := serve(t, b.URL(), nil)
	for name, tc := range map[string]struct {
		method, path string
		header       map[string]string
		body         string
		want         int
	}{
		"another site's name":       {"GET", "/api/v1/models", map[string]string{"Host": "evil.example"}, "", http.StatusForbidden},
		"name without a port":       {"GET", "/healthz", map[string]string{"Host": "localhost"}, "", http.StatusOK},
		"IPv6 address":              {"GET", "/healthz", map[string]string{"Host": "[::1]:9107"}, "", http.StatusOK},
		"no such path":              {"GET", "/etc/passwd", nil, "", http.StatusNotFound},
		"path with dots":            {"GET", "/../edge.db", nil, "", http.StatusNotFound},
		"no such model":             {"GET", "/api/v1/models/pump", nil, "", http.StatusNotFound},
		"events of no such model":   {"GET", "/api/v1/events?model=pump", nil, "", http.StatusNotFound},
		"another method":            {"DELETE", "/api/v1/models/wear", nil, "", http.StatusMethodNotAllowed},
		"metrics by another method": {"POST", "/metrics", nil, "", http.StatusMethodNotAllowed},
		"events by another method":  {"POST", "/api/v1/events", nil, "", http.StatusMethodNotAllowed},
		"health by another method":  {"POST", "/healthz", nil, "", http.StatusMethodNotAllowed},
		"ready by another method":   {"PUT", "/readyz", nil, "", http.StatusMethodNotAllowed},
		"labels without permission": {"POST", "/api/v1/models/wear/label", map[string]string{"Content-Type": "application/json"}, `{}`, http.StatusForbidden},
		"profiles, not asked for":   {"GET", "/debug/pprof/", nil, "", http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			if code, answer := s.do(tc.method, tc.path, tc.body, tc.header); code != tc.want {
				t.Errorf("%s %s answers %d, want %d: %.200s", tc.method, tc.path, code, tc.want, answer)
			}
		})
	}
	t.Run("large header", func(t *testing.T) {
		r, err := http.NewRequest("GET", s.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X", strings.Repeat("x", 64<<10))
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return // the server hangs up before it has read all
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("answers %d", resp.StatusCode)
		}
	})
	t.Run("profiles", func(t *testing.T) {
		s := serve(t, b.URL(), func(c *config.Config) { c.HTTP.Pprof, c.Node = true, "other" })
		const packed = "\x1f\x8b" // gzip, which profiles come in
		for path, want := range map[string]struct {
			code int
			has  string
		}{
			"":                   {http.StatusOK, "goroutine?debug=1"},
			"heap?debug=1":       {http.StatusOK, "heap profile"},
			"heap?gc=1":          {http.StatusOK, packed},
			"goroutine?debug=2":  {http.StatusOK, "goroutine "},
			"cmdline":            {http.StatusOK, os.Args[0]},
			"profile?seconds=1":  {http.StatusOK, packed},
			"trace?seconds=0.01": {http.StatusOK, "go 1."},
			"none":               {http.StatusNotFound, ""},
		} {
			if code, answer := s.get("/debug/pprof/" + path); code != want.code || !strings.Contains(answer, want.has) {
				t.Errorf("%s answers %d: %.200q", path, code, answer)
			}
		}
	})
}

// A label from the page is learnt as one from the broker is.
func TestLabelOnThePage(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	s := serve(t, b.URL(), func(c *config.Config) { c.Control.Enabled = true }).ready()
	publish(t, b.URL(), "plant/a/pump", `{"id":"one","features":[1,2]}`, `{"id":"two","features":[2,2]}`, `{"features":[3,2]}`)
	s.await("no samples", "/api/v1/models/wear", func(_ int, a string) bool { return len(gjson.Get(a, "samples").Array()) == 3 })
	if _, a := s.get("/api/v1/models"); !gjson.Get(a, "control").Bool() {
		t.Errorf("control is not shown as enabled: %s", a)
	}
	asJSON := map[string]string{"Content-Type": "application/json"}
	with := func(more map[string]string) map[string]string {
		h := maps.Clone(asJSON)
		maps.Copy(h, more)
		return h
	}
	const path = "/api/v1/models/wear/label"
	for _, tc := range []struct {
		name, path, body string
		header           map[string]string
		want             int
		learned          uint64
	}{
		{"another site", path, `{"id":"one","device":"a","seq":1,"label":"ok"}`, with(map[string]string{"Origin": "https://evil.example"}), http.StatusForbidden, 0},
		{"another site, by its fetch", path, `{"id":"one","device":"a","seq":1,"label":"ok"}`, with(map[string]string{"Sec-Fetch-Site": "cross-site"}), http.StatusForbidden, 0},
		{"another site's name", path, `{"id":"one","device":"a","seq":1,"label":"ok"}`, with(map[string]string{"Host": "evil.example"}), http.StatusForbidden, 0},
		{"a form of another site", path, `{"id":"one","device":"a","seq":1,"label":"ok"}`, map[string]string{"Content-Type": "text/plain"}, http.StatusUnsupportedMediaType, 0},
		{"no JSON", path, `id=one`, asJSON, http.StatusBadRequest, 0},
		{"unknown key", path, `{"sample":"one"}`, asJSON, http.StatusBadRequest, 0},
		{"too large", path, `{"id":"` + strings.Repeat("x", 8<<10) + `"}`, asJSON, http.StatusBadRequest, 0},
		{"no such model", "/api/v1/models/pump/label", `{"id":"one","label":"ok"}`, asJSON, http.StatusNotFound, 0},
		{"no such sample", path, `{"id":"three","device":"a","label":"ok"}`, asJSON, http.StatusUnprocessableEntity, 0},
		{"another device", path, `{"id":"one","device":"b","label":"ok"}`, asJSON, http.StatusUnprocessableEntity, 0},
		{"two objects", path, `{"id":"one","device":"a","label":"ok"} {}`, asJSON, http.StatusBadRequest, 0},
		{"a bracket too many", path, `{"id":"one","device":"a","label":"ok"}}`, asJSON, http.StatusBadRequest, 0},
		{"no label", path, `{"id":"one","device":"a"}`, asJSON, http.StatusUnprocessableEntity, 0},
		{"an old sample without id", path, `{"seq":2,"device":"a","label":"ok"}`, asJSON, http.StatusConflict, 0},
		{"the newest, without id", path, `{"seq":3,"device":"a","label":"worn"}`, asJSON, http.StatusOK, 1},
		{"by id", path, `{"id":"one","device":"a","seq":1,"label":"ok"}`, with(map[string]string{"Origin": s.url, "Sec-Fetch-Site": "same-origin"}), http.StatusOK, 2},
		{"again", path, `{"id":"one","device":"a","seq":1,"label":"ok"}`, asJSON, http.StatusOK, 2},
	} {
		code, answer := s.do("POST", tc.path, tc.body, tc.header)
		if code != tc.want {
			t.Errorf("%s: answers %d, want %d: %s", tc.name, code, tc.want, answer)
		}
		if code != http.StatusOK && gjson.Get(answer, "error").String() == "" {
			t.Errorf("%s: no reason: %s", tc.name, answer)
		}
		if !brokertest.Eventually(func() bool { return s.current().Node.Stats().Learned == tc.learned }) {
			t.Fatalf("%s: %d labels were learnt, want %d", tc.name, s.current().Node.Stats().Learned, tc.learned)
		}
	}
	_, a := s.get("/api/v1/models/wear")
	if got := gjson.Get(a, `samples.#(seq==1)`); got.Get("label").String() != "ok" || !got.Get("learned").Bool() {
		t.Errorf("the sample does not show its label: %s", got)
	}
	publish(t, b.URL(), "edge/test/request/learning/wear", "OFF")
	s.await("learning is not off", "/api/v1/models", func(_ int, a string) bool { return gjson.Get(a, "models.0.learning").Raw == "false" })
	if code, answer := s.do("POST", path, `{"id":"two","device":"a","seq":2,"label":"ok"}`, asJSON); code != http.StatusConflict || !strings.Contains(answer, "switched off") {
		t.Errorf("while learning is off: answers %d %s", code, answer)
	}
	if got := gjson.Get(a, `samples.#(seq==2)`); got.Get("learned").Bool() {
		t.Errorf("an unlabelled sample shows: %s", got)
	}
}

// A label over HTTP is read as one over MQTT: numbers, booleans and weights. A refusal says
// what is wanted.
func TestLabelsOfAllKinds(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	s := serve(t, b.URL(), func(c *config.Config) { c.Control.Enabled = true }).ready()
	publish(t, b.URL(), "plant/a/pump", `{"id":"one","features":[1,2]}`, `{"id":2,"features":[2,2]}`, `{"id":"three","features":[3,2]}`)
	s.await("no samples", "/api/v1/models/wear", func(_ int, a string) bool { return len(gjson.Get(a, "samples").Array()) == 3 })
	for _, tc := range []struct {
		body string
		want int
		says string
	}{
		{`{"id":"one","device":"a","label":1.0}`, http.StatusOK, ""},
		{`{"id":2,"device":"a","seq":null,"label":true,"weight":2.5}`, http.StatusOK, ""},
		{`{"id":"three","device":"a","label":0.5}`, http.StatusUnprocessableEntity, "label is the number 0.5: want a text, a whole number"},
		{`{"id":"three","device":"a","label":["ok"]}`, http.StatusUnprocessableEntity, "label is an array: want a text"},
		{`{"id":"three","device":"a","label":null}`, http.StatusUnprocessableEntity, "label is missing"},
		{`{"id":"three","device":"a","label":"ok","weight":1000}`, http.StatusUnprocessableEntity, "weight is 1000: want a number above 0"},
		{`{"id":["three"],"device":"a","label":"ok"}`, http.StatusBadRequest, `id is ["three"]: want a text or a number`},
		{`{"device":"a","label":"ok"}`, http.StatusBadRequest, "id is missing: want that of the sample"},
		{`{"id":"three","class":"ok"}`, http.StatusBadRequest, `want {"id": …, "device": …, "label": …}: unknown key "class": there are id, device, seq, label and weight`},
		{`{"id":"three","label":"a\ud83d"}`, http.StatusBadRequest, `label is "a\ud83d", which has half of a surrogate pair without the other half`},
		{`{"ID":"three","device":"a","label":"ok"}`, http.StatusBadRequest, `unknown key "ID": there are id,`},
		{`{"id":"three","device":"a","label":"ok","Label":"worn"}`, http.StatusBadRequest, `unknown key "Label"`},
		{`{"id":"three","device":4,"label":"ok"}`, http.StatusBadRequest, "device is 4: want a text"},
		{`{"id":"three","seq":-1,"label":"ok"}`, http.StatusBadRequest, "seq is -1: want a whole number"},
		{`{"id":"three","label":"ok","weight":"2"}`, http.StatusBadRequest, `weight is "2": want a number`},
		{`"three"`, http.StatusBadRequest, "the body is no object"},
		{``, http.StatusBadRequest, `want {"id": …, "device": …, "label": …}: byte 0: unexpected end of JSON input`},
		{`{"id":"three","label":"ok","label":"worn"}`, http.StatusBadRequest, `want {"id": …, "device": …, "label": …}: key "label" occurs twice`},
	} {
		code, answer := s.do("POST", "/api/v1/models/wear/label", tc.body, map[string]string{"Content-Type": "application/json"})
		if code != tc.want || !strings.Contains(gjson.Get(answer, "error").String(), tc.says) {
			t.Errorf("%s: answers %d %s, want %d %s", tc.body, code, answer, tc.want, tc.says)
		}
	}
	s.await("no classes", "/api/v1/models/wear", func(_ int, a string) bool { return gjson.Get(a, "classes").Raw == `["1","true"]` })
}

// A viewer receives the present state, then its changes, until the daemon stops.
// Long: one stream, event by event.
func TestEventStream(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	s := serveTuned(t, b.URL(), nil, func(w *web.Server) { w.Timeouts.ViewerStays = time.Hour }).ready()
	follow := func() (events <-chan [2]string, code int, leave func()) {
		ctx, cancel := context.WithCancel(t.Context())
		resp := s.events(ctx)
		if got := resp.Header.Get("X-Accel-Buffering"); resp.StatusCode == http.StatusOK && got != "no" {
			t.Errorf("a proxy may keep events back: X-Accel-Buffering is %q", got)
		}
		ch := make(chan [2]string, 1000)
		go func() {
			defer close(ch)
			defer resp.Body.Close()
			lines := bufio.NewScanner(resp.Body)
			lines.Buffer(nil, 1<<20)
			kind := ""
			for lines.Scan() {
				if v, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
					kind = v
				}
				if v, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					ch <- [2]string{kind, v}
				}
			}
		}()
		return ch, resp.StatusCode, cancel
	}
	events, _, _ := follow()
	newest := map[string]string{} // by kind
	next := func(kind string, good func(gjson.Result) bool) {
		t.Helper()
		for limit := time.After(brokertest.Patience); newest[kind] == "" || !good(gjson.Parse(newest[kind])); {
			select {
			case e, ok := <-events:
				if !ok {
					t.Fatalf("the stream ends before %s comes", kind)
				}
				newest[e[0]] = e[1]
			case <-limit:
				t.Fatalf("the newest %s is %s", kind, newest[kind])
			}
		}
	}
	next("node", func(v gjson.Result) bool { return v.Get("node").String() == "test" && v.Get("connected").Bool() })
	next("model", func(v gjson.Result) bool { return v.Get("n").Uint() == 0 && v.Get("error").Type == gjson.Null })
	publish(t, b.URL(), "plant/a/pump", pumpSamples(40)...)
	next("model", func(v gjson.Result) bool {
		return v.Get("n").Uint() == 40 && len(v.Get("relevance").Array()) == 2 && len(v.Get("reliability").Array()) == 15 &&
			len(v.Get("samples").Array()) == 24 && v.Get("samples.0.id").String() == "p-39"
	})
	next("node", func(v gjson.Result) bool { return v.Get(`events.#(event=="class_added").detail`).String() != "" })

	var leaves []func()
	for range web.MaxViewers - 1 {
		_, code, leave := follow()
		if code != http.StatusOK {
			t.Fatalf("a viewer within the limit is answered %d", code)
		}
		leaves = append(leaves, leave)
	}
	if code, answer := s.get("/api/v1/events"); code != http.StatusServiceUnavailable {
		t.Errorf("one viewer too many is answered %d: %.100s", code, answer)
	}
	for _, leave := range leaves {
		leave()
	}
	for range leaves {
		if !brokertest.Eventually(func() bool { _, code, _ := follow(); return code == http.StatusOK }) {
			t.Fatal("a viewer that has left keeps its place")
		}
	}
	s.stop()
	for limit := time.After(brokertest.Patience); ; {
		select {
		case _, ok := <-events:
			if !ok {
				return
			}
		case <-limit:
			t.Fatal("the stream does not end with the daemon")
		}
	}
}

// If another program has the page's port, the daemon learns without the page.
func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b := brokertest.New(t, brokertest.Embedded)
	s := serve(t, b.URL(), func(c *config.Config) { c.HTTP.Listen = l.Addr().String() })
	publishUntil := func() bool { return s.current().Node.Stats().Subscribed }
	if !brokertest.Eventually(publishUntil) {
		t.Fatal("the daemon does not subscribe")
	}
	publish(t, b.URL(), "plant/a/pump", pumpSamples(10)...)
	if !brokertest.Eventually(func() bool { return s.current().Models[0].Loop.Status().Scores.N == 10 }) {
		t.Error("nothing is learnt")
	}
	if !strings.Contains(s.log.String(), "will keep trying") {
		t.Error("the log does not have it")
	}
}

// The page is one small file that requests only from its own server.
func TestPage(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	s := serve(t, b.URL(), nil)
	code, text := s.get("/")
	if code != http.StatusOK || len(text) > 150<<10 {
		t.Errorf("answers %d with %d bytes", code, len(text))
	}
	for _, banned := range []string{"http:", "https:", "//cdn", "@import", "innerHTML", "eval("} {
		if strings.Contains(strings.ReplaceAll(text, "http://www.w3.org/2000/svg", ""), banned) {
			t.Errorf("the page has %q in it", banned)
		}
	}
	if strings.Count(text, "<script>") != 1 || strings.Count(text, "<style>") != 1 || strings.Contains(text, " style=") || regexp.MustCompile(`\son[a-z]+=`).MatchString(text) {
		t.Error("the page has a style or a program that its policy does not let run")
	}
	resp, err := http.Get(s.url + "/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'; script-src 'sha256-") {
		t.Errorf("the policy is %s", policy)
	}
	if resp.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Error("a browser may guess the type")
	}
}
