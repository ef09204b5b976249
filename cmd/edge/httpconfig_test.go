package main

import (
	"os"
	"strings"
	"testing"

	"edge/internal/exit"
	"edge/test/harness"
)

// `edge check` refuses and warns as `edge run` does.
func TestCheckHTTP(t *testing.T) {
	config, _ := harness.WaveformConfig(t, "mqtt://127.0.0.1:1")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		keys string
		code int
		want string
	}{
		"open":              {"http: {listen: 0.0.0.0:0}", 0, "warning  http.listen 0.0.0.0:0: the page, the API and the metrics can be reached"},
		"open, with labels": {"http: {listen: 0.0.0.0:0}\ncontrol: {enabled: true}", exit.Config, "http.control_without_password: true"},
	} {
		if err := os.WriteFile(config, []byte(strings.ReplaceAll(string(text), `http: {listen: ""}`, tc.keys)), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"check", "run"} {
			if command == "run" && tc.code == 0 {
				continue // it would go on
			}
			code, out, errOut := edge(t, command, "-c", config)
			if code != tc.code || !strings.Contains(out+errOut, tc.want) {
				t.Errorf("%s: edge %s ends with %d, want %d and %q: %s%s", name, command, code, tc.code, tc.want, out, errOut)
			}
		}
	}
}
