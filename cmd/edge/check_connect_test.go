package main

import (
	"fmt"
	"strings"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/internal/exit"
	"edge/test/files"
	"edge/test/harness"
)

// Each address of the broker is tried; one that does not answer is told beside one that does.
func TestCheckConnectsToEach(t *testing.T) {
	const dead = "mqtt://127.0.0.1:1"
	live := brokertest.New(t, brokertest.Embedded).URL()
	for name, tc := range map[string]struct {
		servers [2]string
		code    int
		says    []string
	}{
		"the first is dead": {[2]string{dead, live}, exit.OK, []string{"broker   " + live + ": connected\n", "warning  connect to the broker at " + dead + ": "}},
		"both answer":       {[2]string{live, live + "/"}, exit.OK, []string{"broker   " + live + ": connected\nbroker   " + live + "/: connected\n"}},
		"both are dead":     {[2]string{dead, dead + "/"}, exit.Broker, []string{"connect to the broker at " + dead + ": ", "connect to the broker at " + dead + "/: "}},
	} {
		config := files.Write(t, "edge.yaml", strings.Replace(harness.Minimal, "mqtt://broker.lan", fmt.Sprintf("%q, %q", tc.servers[0], tc.servers[1]), 1))
		code, out, errOut := edge(t, "check", "-c", config, "--connect")
		if code != tc.code {
			t.Errorf("%s: exit %d, want %d: %s%s", name, code, tc.code, out, errOut)
		}
		for _, want := range tc.says {
			if !strings.Contains(out+errOut, want) {
				t.Errorf("%s: want %q in %s%s", name, want, out, errOut)
			}
		}
	}
}
