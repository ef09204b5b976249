package main

import (
	"encoding/json"
	"strings"
	"testing"

	"edge/internal/exit"
	"edge/lab/federated"
	"edge/test/harness"
)

// Two nodes with few labels each answer better with the other's than alone, a newcomer
// does at once, and one that claims too much is refused.
func TestFleet(t *testing.T) {
	table := harness.WaveformFile(t, 1200)
	run := func(args ...string) (r federated.Result) {
		t.Helper()
		code, out, errOut := edge(t, append([]string{"fleet", table, "--inducing", "20", "--forest", "off", "--json"}, args...)...)
		if code != exit.OK || errOut != "" {
			t.Fatalf("fleet exits with %d: %s", code, errOut)
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := run("--nodes", "3", "--every", "50")
	if r.Merges == 0 || r.GoodTests == 0 || r.GoodRefused > 0 || !(r.Fleet.NLL < r.Alone.NLL) || !(r.One.NLL < r.Alone.NLL) || r.Rows != 900 || r.Judges != 300 {
		t.Errorf("%+v", r)
	}
	again := run("--nodes", "3", "--every", "50")
	if again.Fleet.NLL != r.Fleet.NLL || again.Bytes != r.Bytes {
		t.Errorf("nll %g, again %g", r.Fleet.NLL, again.Fleet.NLL)
	}
	often := run("--nodes", "3", "--every", "50", "--information", "5")
	if rare := run("--nodes", "3", "--every", "50", "--information", "1e9"); rare.Fleet.NLL != r.Fleet.NLL || rare.Merges != r.Merges || often.Merges < 2*r.Merges {
		t.Errorf("%d merges by count, %d by 5 nats, %d by 1e9", r.Merges, often.Merges, rare.Merges)
	}
	if late := run("--nodes", "3", "--every", "50", "--late"); late.Fleet.NLL == r.Fleet.NLL || !(late.Fleet.NLL < late.Alone.NLL) || late.Merges == 0 || late.Merges > r.Merges {
		t.Errorf("merging before the next label: %d merges, nll %g", late.Merges, late.Fleet.NLL)
	}
	if r := run("--nodes", "3", "--every", "50", "--bad", "huge"); r.BadTests == 0 || r.BadRefused != r.BadTests {
		t.Errorf("of %d merges %d refuse the bad member", r.BadTests, r.BadRefused)
	}
	if r := run("--nodes", "3", "--newcomer", "200", "--bad", "next", "--boast", "100", "--forest", "small"); r.Fleet.Newcomer.NLL[0] > r.Alone.Newcomer.NLL[0] || r.Fleet.Newcomer.NLL[0] < r.Alone.Newcomer.NLL[0]/2 {
		t.Errorf("newcomer with one of two that boasts: %+v, alone %+v", r.Fleet.Newcomer, r.Alone.Newcomer)
	}
	if late := run("--nodes", "3", "--every", "50", "--delay", "20"); late.Alone.NLL == r.Alone.NLL || !(late.Fleet.NLL < late.Alone.NLL) || late.One.NLL == r.One.NLL {
		t.Errorf("labels 20 rows late: %+v, alone %+v, one %+v", late.Fleet, late.Alone, late.One)
	}
	if r := run("--nodes", "3", "--newcomer", "200"); r.Fleet.Newcomer.NLL[0] > r.Alone.Newcomer.NLL[0]*2/3 {
		t.Errorf("newcomer: %+v, alone %+v", r.Fleet.Newcomer, r.Alone.Newcomer)
	}
	apart := run("--nodes", "3", "--every", "50", "--differ", "--shuffle", "1")
	if own := run("--nodes", "3", "--every", "50", "--differ", "--shuffle", "1", "--scale", "own"); !(own.Fleet.NLL < apart.Fleet.NLL) || own.One.NLL != apart.One.NLL {
		t.Errorf("devices that differ: nll %g with scales of their own, %g with a shared one", own.Fleet.NLL, apart.Fleet.NLL)
	}
	if r := run("--nodes", "5", "--newcomer", "150", "--bad", "labels"); r.BadRefused == 0 || r.BadRefused < r.BadTests-1 || r.GoodRefused > 0 || r.Fleet.Newcomer.NLL[0] > r.Alone.Newcomer.NLL[0]*2/3 {
		t.Errorf("a newcomer refuses %d of %d bad, %d good: %+v, alone %+v", r.BadRefused, r.BadTests, r.GoodRefused, r.Fleet.Newcomer, r.Alone.Newcomer)
	}
	if few := run("--nodes", "3", "--newcomer", "400"); few.Fleet.Newcomer.Labels != [...]int{50, 100, 0, 0} || few.Fleet.Newcomer.NLL[2] != 0 {
		t.Errorf("newcomer of 100 labels: %+v", few.Fleet.Newcomer)
	}
	if code, out, errOut := edge(t, "fleet", table, "--nodes", "3", "--newcomer", "450"); code != exit.Runtime || out != "" || !strings.Contains(errOut, "the 2 other nodes learn the first 900 rows, and there are 900") {
		t.Errorf("no row is left for the newcomer: exits with %d, prints %q and %q", code, out, errOut)
	}
	for _, args := range [][]string{{"--scale", "none"}, {"--nodes", "1"}, {"--bad", "good"}, {"--bad", "next", "--boast", "0.5"}, {"--delay", "-1"}, {"--bad", "huge", "--newcomer", "5", "--nodes", "2"}, {"--every", "0"}, {"--information", "-1"}, {"--information", "inf"}, {"--horizons", "short"}, {"--newcomer", "-1"}, {"--first", "-1"}, {"--shuffle-within", "1200"}, {"--shuffle", "1", "--shuffle-within=-100,1300"}} {
		if code, out, _ := edge(t, append([]string{"fleet", table}, args...)...); code != exit.Usage || out != "" {
			t.Errorf("edge-lab fleet %s exits with %d and prints %q", strings.Join(args, " "), code, out)
		}
	}
	for args, want := range map[string]string{"--differ --test-fraction 0.9999": "leaves 0 of 1200 rows to learn", "--first 4 --test-fraction 0.1": "4 rows leaves nothing to judge"} {
		if code, out, errOut := edge(t, append([]string{"fleet", table}, strings.Fields(args)...)...); code != exit.Runtime || out != "" || !strings.Contains(errOut, want) {
			t.Errorf("edge-lab fleet %s exits with %d, prints %q and %q", args, code, out, errOut)
		}
	}
}
