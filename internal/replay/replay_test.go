package replay

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/config"
)

func TestSampleMessages(t *testing.T) {
	p := Player{Features: []string{"a b", "c"}}
	for _, tc := range []struct {
		named bool
		label string
		want  string
	}{
		{false, "", `{"id":"r-1","features":[0.1,1e+21]}`},
		{false, `wo"rn`, `{"id":"r-1","features":[0.1,1e+21],"label":"wo\"rn"}`},
		{true, "ok", `{"id":"r-1","features":{"a b":0.1,"c":1e+21},"label":"ok"}`},
	} {
		p.Named = tc.named
		got := string(p.AppendSample(nil, "r-1", []float64{0.1, 1e21}, tc.label))
		if got != tc.want || !json.Valid([]byte(got)) {
			t.Errorf("named %v, label %q: %s, want %s", tc.named, tc.label, got, tc.want)
		}
	}
	gaps := Player{Features: []string{"a", "b"}, Named: true}
	if got := string(gaps.AppendSample(nil, "r-1", []float64{math.NaN(), 2}, "")); got != `{"id":"r-1","features":{"a":null,"b":2}}` {
		t.Errorf("published as %s", got)
	}
}

func TestPacerStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := pacer{rate: 1e-3}
	if err := p.wait(ctx); err != nil {
		t.Fatalf("the first event waits: %v", err)
	}
	cancel()
	if err := p.wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the second event, after the end: %v", err)
	}
}

// Rows go to a topic of a stream of the configuration, or replay refuses to start.
func TestTopicOfAReplay(t *testing.T) {
	stream := func(topics string) *config.Config {
		return parsed(t, strings.Replace(minimal, "topics: [factory/+/vibration]", "topics: "+topics, 1))
	}
	for name, tc := range map[string]struct {
		cfg        *config.Config
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

const minimal = `
mqtt: {servers: [mqtt://broker.lan]}
streams: {vibration: {topics: [factory/+/vibration], features: [rms, kurtosis, peak_hz]}}
models: {bearing: {streams: [vibration]}}
`

// parsed returns a configuration whose state is in a folder of its own.
func parsed(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("edge.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Store.Path = filepath.Join(t.TempDir(), "edge.db")
	return cfg
}
