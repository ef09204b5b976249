package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/test/files"
	"edge/test/harness"
)

// TestSecretsStaySecret searches all output of a daemon for the password of the
// broker: log, topics, pages, metrics, state file, and the output of other commands.
// The run has samples, rejected messages, requests, a lost connection and a restart.
//
// Long: one run, observed in every place.
func TestSecretsStaySecret(t *testing.T) {
	const secret = "correct-horse-battery-staple"
	b := brokertest.New(t, brokertest.Mosquitto)
	tap := harness.NewTap(t, b.Addr)
	web := brokertest.FreeAddress(t)
	passwordFile := files.Write(t, "password", secret+"\n")
	config, store := harness.WaveformConfig(t, tap.URL())
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	open := strings.NewReplacer(
		`http: {listen: ""}`, fmt.Sprintf("http: {listen: %q, pprof: true}\ncontrol: {enabled: true}\nhomeassistant: {enabled: true}\nlog: {level: debug}", web),
		`mqtt: {`, fmt.Sprintf(`mqtt: {username: edge, password: {file: %q}, `, passwordFile),
	).Replace(string(text))
	if err := os.WriteFile(config, []byte(open), 0o600); err != nil {
		t.Fatal(err)
	}

	var mu sync.Mutex
	output := map[string]string{} // by its place
	note := func(place, text string) {
		mu.Lock()
		defer mu.Unlock()
		output[place] += text + "\n"
	}
	listener := brokertest.Subscribe(t, b.URL(), []string{"#"}, func(topic string, payload []byte) { note("topic "+topic, string(payload)) })
	defer listener.Close()

	d := harness.Start(t, config)
	d.Await("connected to the broker")
	harness.Replay(t, harness.WaveformFile(t, 200), "--broker", b.URL())()
	for topic, payload := range map[string]string{
		"sensors/waveform":                 `{"broken":`,
		"edge/test/request/health_check":   `{"transaction":"1"}`,
		"edge/test/request/ping":           `{"transaction":"2"}`,
		"edge/test/request/reload":         `{"transaction":"3"}`,
		"edge/test/request/set_log_level":  `{"data":{"level":"debug"}}`,
		"edge/test/request/nothing":        `{}`,
		"edge/test/request/class_add/none": `{"data":{"class":"x"}}`,
	} {
		if err := listener.Publish(t.Context(), topic, []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	harness.AwaitSamples(t, b, 200)
	for _, page := range []string{"/", "/metrics", "/healthz", "/readyz", "/api/v1/models", "/api/v1/models/waveform", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2", "/none"} {
		r, err := http.Get("http://" + web + page)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		note("page "+page, fmt.Sprint(r.Header, string(body)))
	}
	http.DefaultClient.CloseIdleConnections()
	tap.Cut()
	harness.Replay(t, harness.WaveformFile(t, 10), "--broker", b.URL())()
	d.Kill()
	note("log", d.Log())
	// The file of the password is removed: the error must not contain it either.
	again := harness.Start(t, config)
	again.Await("connected to the broker")
	if err := os.Remove(passwordFile); err != nil {
		t.Fatal(err)
	}
	tap.Cut()
	again.Await("cannot connect to the broker; will keep trying")
	again.Kill()
	note("log of another run", again.Log())
	if err := os.WriteFile(passwordFile, []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"config", "show", "-c", config}, {"check", "-c", config}, {"doctor", "-c", config}, {"check", "-c", config, "--connect"},
		{"inspect", store}, {"inspect", store, "--json"}, {"verify", store}, {"verify", store, "--json"}, {"version"},
	} {
		_, out, errOut := harness.Run(t, args...)
		note("edge "+args[0], out+errOut)
	}
	file, err := os.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	note("state file", string(file))

	used := tap.Password()
	if used != secret {
		t.Errorf("the broker got the password %q: the test proves nothing", used)
	}
	mu.Lock()
	defer mu.Unlock()
	bytes := 0
	for place, text := range output {
		bytes += len(text)
		if strings.Contains(text, secret) {
			at := strings.Index(text, secret)
			t.Errorf("%s contains the password: …%.120s", place, text[max(at-60, 0):])
		}
	}
	for _, place := range []string{"topic edge/test/waveform/prediction", "topic edge/test/info", "topic edge/test/response/health_check", "page /metrics", "log"} {
		if output[place] == "" {
			t.Errorf("no output from %s", place)
		}
	}
	t.Logf("%d bytes from %d places", bytes, len(output))
}
