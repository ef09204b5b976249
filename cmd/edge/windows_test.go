package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"edge/internal/exit"
	"edge/test/files"
)

// shaken is a file of signals of a sensor that rests, walks and runs: rows at 50 Hz of two
// devices, in recordings of six seconds.
func shaken(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("t,device,x,y,label\n")
	kinds := []string{"rest", "walk", "run"}
	at := 1_700_000_000.0
	for piece := range 24 {
		device, kind := []string{"left", "right"}[piece%2], piece%3
		for i := range 300 {
			s := float64(i) / 50
			x := float64(kind)*math.Sin(2*math.Pi*(1+float64(kind))*s+float64(piece)) + 0.1*math.Sin(37*s*float64(piece+1))
			fmt.Fprintf(&b, "%.2f,%s,%.4f,%.4f,%s\n", at+s, device, x, 0.5*x*x+float64(piece%5)/10, kinds[kind])
		}
		at += 60
	}
	return files.Write(t, "shaken.csv", b.String())
}

// shakenConfig is a configuration for shaken.
func shakenConfig(t testing.TB, window string) string {
	t.Helper()
	return files.Write(t, "edge.yaml", `mqtt: {servers: [mqtt://broker.lan]}
streams:
  hip:
    topics: [lab/+/hip]
    topic_template: "lab/{device}/hip"
    signals: [x, y]
    time: t
    window: {`+window+`}
models: {gait: {streams: [hip], inducing: 20}}
store: {path: `+filepath.Join(t.TempDir(), "edge.db")+`}
`)
}

// The samples that windows prints are data of other commands without a flag: id, time and device are no
// features, and the device can be held out.
func TestWindowsAreData(t *testing.T) {
	made := filepath.Join(t.TempDir(), "windows.csv")
	if code, _, errOut := edge(t, "windows", shaken(t), "--signals", "x,y", "--length", "50", "-o", made); code != exit.OK {
		t.Fatal(errOut)
	}
	r := evalJSON(t, made)[0]
	if by := evalJSON(t, made, "--ignore", "id,time,device")[0]; r.Digest == "" || r.Digest != by.Digest {
		t.Errorf("digest %q, and %q with --ignore", r.Digest, by.Digest)
	}
	if code, _, errOut := edge(t, "eval", "split", made, "--split", "device"); code != exit.OK {
		t.Errorf("--split device: %s", errOut)
	}
	if code, out, errOut := edge(t, "config", "sample", "--from", made); code != exit.OK || strings.Contains(out, "signals:") || !strings.Contains(out, "features: [x.mean") {
		t.Errorf("the configuration is %s%s", out, errOut)
	}
}

// A number or a time below 0 is refused, as one that is none.
func TestWindowsRefusesFlagsBelowZero(t *testing.T) {
	data := shaken(t)
	for flags, want := range map[string]string{"--length 50 --max-gap -1s": "window.max_gap", "--lengths 50 --most -1": "--most: want 0 or more"} {
		code, _, errOut := edge(t, append([]string{"windows", data, "--signals", "x"}, strings.Fields(flags)...)...)
		if code != exit.Usage || !strings.Contains(errOut, want) {
			t.Errorf("%s: exit %d: %q, want %q", flags, code, errOut, want)
		}
	}
}

// The samples of a small file are in testdata; -update writes them.
func TestWindows(t *testing.T) {
	data, config := shaken(t), shakenConfig(t, "length: 200, hop: 100, max_gap: 1s, features: [mean, log_sd, acf1], correlations: true")
	code, out, errOut := edge(t, "windows", data, "-c", config)
	const shares = "a window of 200 rows begins every 100 rows: it shares rows with the one before"
	if want := "\n7200 rows, 2 devices: 48 windows (0 late, 22 gaps, 0 thin, 0 mixed)\n"; code != exit.OK || !strings.HasPrefix(errOut, shares) || !strings.HasSuffix(errOut, want) {
		t.Fatalf("exits with %d and %q, want %q…%q", code, errOut, shares, want)
	}
	var short strings.Builder // ARM may round the last digits otherwise
	for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
		cells := strings.Split(line, ",")
		for j := 3; i > 0 && j < len(cells)-1; j++ {
			var v float64
			if _, err := fmt.Sscan(cells[j], &v); err != nil {
				t.Fatalf("%q: %v", cells[j], err)
			}
			cells[j] = fmt.Sprintf("%.6f", v)
		}
		short.WriteString(strings.Join(cells, ",") + "\n")
	}
	files.Golden(t, filepath.Join("testdata", "windows.csv"), short.String())

	// Flags describe the same stream, standard input is the same file, and -o writes it.
	text, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "out.csv")
	code, _, errOut = edgeWith(t, string(text), "windows", "-", "-c", config, "-o", path)
	if written, err := os.ReadFile(path); err != nil || code != exit.OK || string(written) != out {
		t.Errorf("-o exits with %d, %v: %s", code, err, errOut)
	}
	_, all, errOut := edge(t, "windows", data, "--signals", "x,y", "--length", "4s", "--hop", "4s", "--max-gap", "1s", "--derive", "m=hypot(x, y)")
	if !strings.HasPrefix(all, "id,time,device,m.mean,m.log_sd,") || !strings.HasPrefix(errOut, "7200 rows, 2 devices: 24 windows") {
		t.Errorf("%.100s\n%s", all, errOut)
	}
}

// Windows of several lengths have scores.
func TestWindowLengths(t *testing.T) {
	data, config := shaken(t), shakenConfig(t, "length: 200, hop: 50, max_gap: 1s")
	code, out, errOut := edge(t, "windows", data, "-c", config, "--lengths", "100,2s,500")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != exit.OK || len(lines) != 4 {
		t.Fatalf("exits with %d:\n%s%s", code, out, errOut)
	}
	for i, want := range [][]string{{"100", "25", "216"}, {"2s", "500ms", "192"}, {"500", "125", "0", "–"}} {
		got := strings.Fields(lines[i+1])
		if strings.Join(got[:len(want)], " ") != strings.Join(want, " ") {
			t.Errorf("%s, want %v", lines[i+1], want)
		}
	}
	if code, _, errOut := edge(t, "windows", data, "-c", config, "--lengths", "soon"); code != exit.Usage || !strings.Contains(errOut, "want numbers of rows or times") {
		t.Errorf("exits with %d: %s", code, errOut)
	}
}

// A model learns a file of signals as the file of its samples, by one pass, by many, and
// for predictions.
func TestSignalsAndSamplesAreTheSame(t *testing.T) {
	data, config := shaken(t), shakenConfig(t, "length: 100, max_gap: 1s")
	samples := filepath.Join(t.TempDir(), "shaken.csv")
	if code, _, errOut := edge(t, "windows", data, "-c", config, "-o", samples); code != exit.OK {
		t.Fatal(errOut)
	}
	a, b := evalJSON(t, data, "-c", config)[0], evalJSON(t, samples, "-c", config)[0]
	if a.Digest != b.Digest || a.Samples != 120 || a.Error != b.Error {
		t.Errorf("%d signals give %s, %d samples %s", a.Samples, a.Digest, b.Samples, b.Digest)
	}
	state := filepath.Join(t.TempDir(), "learnt.db")
	if code, _, errOut := edge(t, "train", data, "-c", config, "-o", state, "--passes", "2"); code != exit.OK {
		t.Fatal(errOut)
	}
	_, fromSignals, errOut := edge(t, "predict", "--state", state, "-c", config, data)
	_, fromSamples, _ := edge(t, "predict", "--state", state, "-c", config, samples, "--label", "label")
	first, _, _ := strings.Cut(fromSignals, "\n")
	if !strings.HasPrefix(first, `{"row":1,"id":"left#1700000001980","device":"left","label":"rest","class":`) {
		t.Errorf("the first answer is %.200s %s", first, errOut)
	}
	signals, samplesOf := strings.Split(fromSignals, "\n"), strings.Split(fromSamples, "\n")
	if len(signals) != 121 || len(samplesOf) != 121 {
		t.Fatalf("%d answers from signals, %d from samples", len(signals)-1, len(samplesOf)-1)
	}
	for i := range signals[:120] {
		if p, q := gjson.Get(signals[i], "probs").Raw, gjson.Get(samplesOf[i], "probs").Raw; p != q {
			t.Fatalf("sample %d: %s from signals, %s from samples", i+1, p, q)
		}
	}
	// The state file says which model it is where the configuration has several.
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	two := files.Write(t, "two.yaml", strings.Replace(string(text), "models: {", "models: {run: {streams: [hip]}, ", 1))
	if _, got, errOut := edge(t, "predict", "--state", state, "-c", two, data); got != fromSignals {
		t.Errorf("beside another model the answers are %.200s %s", got, errOut)
	}
}

// Windows that overlap are not split at random unless it is demanded; devices and
// recordings are held out as a whole.
func TestEvalSplitsOfSignals(t *testing.T) {
	data, config := shaken(t), shakenConfig(t, "length: 100, max_gap: 1s")
	_, _, errOut := edge(t, "eval", data, "-c", config)
	if !strings.Contains(errOut, "a window of 100 rows begins every 50 rows: it shares rows with the one before") {
		t.Errorf("eval says %s", errOut)
	}
	if code, _, errOut := edge(t, "eval", "split", data, "-c", config, "--folds", "3"); code != exit.Usage || !strings.Contains(errOut, "--split device or --split block hold out whole devices or recordings, --force") {
		t.Errorf("random folds exit with %d: %s", code, errOut)
	}
	if code, _, errOut := edge(t, "eval", "split", data, "-c", config, "--folds", "3", "--force"); code != exit.OK || !strings.Contains(errOut, "so that the scores are too good") {
		t.Errorf("--force exits with %d: %s", code, errOut)
	}
	apart := shakenConfig(t, "length: 100, hop: 100, max_gap: 1s")
	if code, _, errOut := edge(t, "eval", "split", data, "-c", apart, "--folds", "3"); code != exit.OK || strings.Contains(errOut, "too good") {
		t.Errorf("windows that share nothing exit with %d: %s", code, errOut)
	}

	_, out, errOut := edge(t, "eval", data, "-c", config, "--split", "device")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if last := lines[len(lines)-2:]; !strings.HasPrefix(strings.TrimSpace(last[0]), "left  ") || strings.Fields(last[0])[1] != "60" || strings.Fields(last[1])[0] != "right" {
		t.Errorf("--split device prints\n%s%s", out, errOut)
	}
	_, out, _ = edge(t, "eval", "split", data, "-c", config, "--split", "block", "--folds", "4")
	if n := strings.Count(out, "recordings, fold"); n != 4 {
		t.Errorf("%d folds of recordings:\n%s", n, out)
	}

	samples := filepath.Join(t.TempDir(), "samples.csv")
	edge(t, "windows", data, "-c", config, "-o", samples)
	if _, _, errOut := edge(t, "eval", samples, "-c", config); !strings.Contains(errOut, "it shares rows with the one before") {
		t.Errorf("of the windows that edge windows has printed eval says %s", errOut)
	}
	if code, _, errOut := edge(t, "eval", "split", samples, "-c", config, "--folds", "3"); code != exit.Usage || !strings.Contains(errOut, "--force") {
		t.Errorf("random folds of them exit with %d: %s", code, errOut)
	}
	if code, _, errOut := edge(t, "eval", "split", samples, "-c", config, "--split", "device"); code != exit.Usage || !strings.Contains(errOut, "--device NAME") {
		t.Errorf("samples without a device exit with %d: %s", code, errOut)
	}
	if code, out, errOut := edge(t, "eval", "split", samples, "-c", config, "--split", "device", "--device", "device"); code != exit.OK || !strings.Contains(out, "right") {
		t.Errorf("samples with a device exit with %d: %s%s", code, out, errOut)
	}
}

// check describes a stage and warns of what is hardly meant.
func TestCheckOfSignals(t *testing.T) {
	config := shakenConfig(t, "length: 256, hop: 128")
	_, out, _ := edge(t, "check", "-c", config)
	for _, want := range []string{
		"stream   hip: 2 signals from lab/+/hip, as json\n", "19 features: x.mean, x.log_sd, x.min, x.max, … (-v lists them)",
		"windows of 256 rows every 128 rows, which begin anew after a silence of 1m", "memory: at most 256 rows of 2 signals, 4.0 KiB a device, 3.9 MiB with 1000 devices, and 10.0 KiB to compute the features",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "warning  streams") {
		t.Errorf("it warns:\n%s", out)
	}
	if _, out, _ := edge(t, "check", "-v", "-c", config); !strings.Contains(out, "y.acf8, corr.x.y") {
		t.Errorf("no names in\n%s", out)
	}
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	questionable := strings.NewReplacer("[x, y]", "[a, b, c, d, e, f, g]", "time: t", `time: ""`, "length: 256, hop: 128", "length: 1s, hop: 200ms").Replace(string(text))
	code, out, errOut := edge(t, "check", "-c", files.Write(t, "questionable.yaml", questionable))
	for _, want := range []string{
		"18000 samples an hour of each device", "warning  streams.hip.window: 5 samples a second of each device",
		"warning  streams.hip.window: the payloads have no time", "warning  streams.hip.window: correlations are no features, as 7 signals have windows",
	} {
		if code != exit.OK || !strings.Contains(out, want) {
			t.Errorf("exits with %d: no %q in\n%s%s", code, want, out, errOut)
		}
	}
	thin := strings.NewReplacer("window: {length: 256, hop: 128}", "hold: {every: 10s}\n    window: {length: 1m}").Replace(string(text))
	if _, out, errOut := edge(t, "check", "-c", files.Write(t, "thin.yaml", thin)); !strings.Contains(out, "warning  streams.hip.window: no sample is made: 1m0s has 6 rows, and min_rows is 8") || strings.Contains(out, "samples an hour") {
		t.Errorf("windows that are never made are not told in\n%s%s", out, errOut)
	}
	_, tail, _ := strings.Cut(string(text), "window: {length: 256, hop: 128}")
	for stage, warns := range map[string]bool{
		"": true, "window: {length: 256}": true, "window: {length: 256, correlations: false}": false,
		"hold: {on: any}": false, "on_missing: marginalise": false, "window: {length: 256, of: [x]}": false,
	} {
		inputs := "streams:\n  hip:\n    inputs: {x: {topics: [lab/x]}, \"y\": {topics: [lab/y]}}\n    " + stage + tail
		code, out, errOut := edge(t, "check", "-c", files.Write(t, "inputs.yaml", inputs))
		if code != exit.OK || strings.Contains(out, "warning  streams.hip: samples that need the signals of two inputs") != warns {
			t.Errorf("%q of two inputs exits with %d; want a warning: %v\n%s%s", stage, code, warns, out, errOut)
		}
	}
	rows := strings.Replace(string(text), "window: {length: 256, hop: 128}", "hold: {every: 100ms}", 1)
	if _, out, errOut := edge(t, "check", "-c", files.Write(t, "rows.yaml", rows)); !strings.Contains(out, "warning  streams.hip: 10 samples a second of each device; a window or a longer hold.every") {
		t.Errorf("the hint for rows is not in\n%s%s", out, errOut)
	}
}

// A sample for a file of signals has them, their rate and a window, and loads.
func TestConfigSampleOfSignals(t *testing.T) {
	data := shaken(t)
	code, out, errOut := edge(t, "config", "sample", "--from", data)
	if code != exit.OK {
		t.Fatalf("exits with %d: %s", code, errOut)
	}
	for _, want := range []string{"topics: [sensors/shaken/+]", `topic_template: "sensors/shaken/{device}"`, `signals: [x, "y"]`, "time: t\n", "rate: 50 # rows a second", "# error by length: 32 ", "window: {length: 32} #"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	config := files.Write(t, "sample.yaml", out)
	if code, _, errOut := edge(t, "windows", data, "-c", config); code != exit.OK || !strings.Contains(errOut, "\n7200 rows, 2 devices: ") {
		t.Errorf("windows exits with %d: %s", code, errOut)
	}
}

// Windows that share rows are not to be shuffled, also where the rows are sorted by their labels.
func TestEvalOfSortedWindows(t *testing.T) {
	var b strings.Builder
	b.WriteString("t,device,x,y,label\n")
	for i := range 800 {
		fmt.Fprintf(&b, "%.2f,left,%d,%d,%s\n", 1_700_000_000+float64(i)/50, i%7, i%5, []string{"rest", "walk"}[i/400])
	}
	data := files.Write(t, "sorted.csv", b.String())
	const sorted, shuffle = "the rows are sorted by their labels", "--shuffle 1"
	for _, hop := range []string{"10", "20"} {
		code, _, errOut := edge(t, "eval", data, "-c", shakenConfig(t, "length: 20, hop: "+hop))
		if shuffled := strings.Contains(errOut, shuffle); code != exit.OK || !strings.Contains(errOut, sorted) || shuffled != (hop == "20") {
			t.Errorf("hop %s exits with %d: %s", hop, code, errOut)
		}
	}
}
