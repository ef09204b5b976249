package doctor

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/doctor/diagnosis"
	"edge/test/files"
	"edge/test/harness"
)

// The stage of each stream with signals is measured at its rate.
func TestStageIsMeasured(t *testing.T) {
	for name, tc := range map[string]struct {
		stream        string
		rows, samples float64 // a second
		assumed       bool
		want          string
	}{
		"by time": {
			`{topics: [a], signals: [x, y, z], rate: 300, window: {length: 2s, hop: 1s}}`, 300, 1, false,
			"ok signals of s: 300 rows/s → 1 samples/s, ",
		},
		"by count": {
			`{topics: [a], signals: [x], window: {length: 50, hop: 25}}`, 100, 4, true,
			"the rate is assumed, as the configuration does not have it",
		},
		"message": {
			`{topics: [a], signals: [x], rate: 512, window: {length: message, features: [spectrum]}}`, 512, 2, false,
			"→ 2 samples/s, ",
		},
		"more than a processor": {
			`{topics: [a], signals: [x], rate: 10000000, window: {length: 64, hop: 1}}`, 1e7, 1e7, false,
			"warn signals of s: 1e+07 rows/s → 1e+07 samples/s, ",
		},
		"held values": {
			`{inputs: {a: {topics: [a]}, b: {topics: [b]}}, hold: {every: 30s}, derive: {quiet: since(a)}, window: {length: 10m, hop: 5m}}`, 1. / 30, 1. / 300, false,
			"0.03333 rows/s → 0.00333 samples/s, less than 0.01 %",
		},
		"on change, without windows": {
			`{inputs: {a: {topics: [a]}, b: {topics: [b]}}, hold: {on: any}}`, 100, 100, true,
			"100 rows/s → 100 samples/s, ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := harness.Parsed(t, "mqtt: {servers: [mqtt://broker.lan]}\nstreams: {s: "+tc.stream+"}\nmodels: {m: {streams: [s]}}\n")
			v, err := measureStage(t.Context(), cfg.Streams["s"], time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			if v.RowsASecond != tc.rows || v.SamplesASecond < 0.95*tc.samples || v.SamplesASecond > 1.05*tc.samples || v.Assumed != tc.assumed || v.RowMicros <= 0 || v.Processor <= 0 || v.Rows == 0 {
				t.Errorf("measured %+v, want %v rows and %v samples a second", v, tc.rows, tc.samples)
			}
			d := diagnosis.New()
			examineStage(t.Context(), d, cfg, "s", time.Millisecond)
			expect(t, d, tc.want)
			if text, err := json.Marshal(d); err != nil || gjson.GetBytes(text, "findings.0.figure.rows_per_second").Float() != tc.rows {
				t.Errorf("JSON is %s, %v", text, err)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			d = diagnosis.New()
			if examineStage(ended, d, cfg, "s", time.Millisecond); len(d.Findings) > 0 {
				t.Errorf("after its end it finds %s", d)
			}
		})
	}
}

// Streams of finished samples have no such line.
func TestNoStageIsMeasured(t *testing.T) {
	cfg := harness.Parsed(t, harness.Minimal)
	cfg.Store.Path = t.TempDir() + "/edge.db"
	d := diagnosis.New()
	examine(t.Context(), d, cfg, fakeHost(t, nil), Options{Path: files.Write(t, "edge.yaml", harness.Minimal), Rate: 1, Offline: true, Progress: func(string) {}}, patient(1))
	if strings.Contains(d.String(), "signals") {
		t.Errorf("it finds\n%s", d)
	}
}

func TestPercent(t *testing.T) {
	for v, want := range map[float64]string{0: "less than 0.01 %", 0.00009: "less than 0.01 %", 0.0004: "0.04 %", 0.0041: "0.41 %", 0.00414: "0.41 %", 0.01: "1 %", 0.1234: "12.3 %", 1.5: "150 %"} {
		if got := percent(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}
