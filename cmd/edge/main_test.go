package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"edge/cmd/internal/cli"
	"edge/internal/config"
	"edge/internal/exit"
	"edge/internal/process"
	"edge/test/files"
	"edge/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// execute runs a command line in this process.
func execute(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) (code int) {
	return cli.Execute(ctx, newRoot(), args, in, out, errOut)
}

// edge is execute without a standard input, for a test.
func edge(t testing.TB, args ...string) (code int, out, errOut string) {
	t.Helper()
	return edgeWith(t, "", args...)
}

// edgeWith runs a command line with a standard input.
func edgeWith(t testing.TB, in string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = execute(t.Context(), args, strings.NewReader(in), &o, &e)
	return code, o.String(), e.String()
}

// The help of every command is in testdata; -update writes it.
func TestHelp(t *testing.T) {
	var b strings.Builder
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		line := strings.Fields(cmd.CommandPath())
		code, out, errOut := edge(t, append(line[1:], "--help")...)
		if code != exit.OK || errOut != "" {
			t.Errorf("%s --help exits with %d and prints %q", cmd.CommandPath(), code, errOut)
		}
		b.WriteString("$ " + cmd.CommandPath() + " --help\n" + out + "\n")
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot())
	files.Golden(t, filepath.Join("testdata", "help.txt"), b.String())
}

// Every command without subcommands has an example, its text fits a terminal, the value of each
// flag is named in capitals, and no flag takes a secret.
func TestCommandsAreExplained(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Short == "" || cmd.Runnable() && cmd.Example == "" {
			t.Errorf("%s has no short description, or no example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Long) {
			if n := utf8.RuneCountInString(line); n > 88 {
				t.Errorf("%s: a line of %d characters: %s", cmd.CommandPath(), n, line)
			}
		}
		if f := cmd.Flags().Lookup("password"); f != nil {
			t.Errorf("%s takes a password on the command line", cmd.CommandPath())
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if value, _ := pflag.UnquoteUsage(f); value != strings.ToUpper(value) {
				t.Errorf("%s --%s %s: want a name in capitals", cmd.CommandPath(), f.Name, value)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRoot())
}

// Commands that fail say why, and what to do. Long: they are one table.
func TestExitCodes(t *testing.T) {
	table := harness.TableFile(t, "table.csv", 40)
	valid := files.Write(t, "edge.yaml", harness.Minimal)
	missing := filepath.Join(t.TempDir(), "none")
	for name, tc := range map[string]struct {
		args []string
		code int
		want string // in its output
	}{
		"no such command":           {[]string{"runn"}, exit.Usage, `unknown command "runn" for "edge"; did you mean run?`},
		"nothing like a command":    {[]string{"xylophone"}, exit.Usage, "unknown command \"xylophone\" for \"edge\"\nTry `edge --help`."},
		"no such command below":     {[]string{"config", "smaple"}, exit.Usage, `unknown command "smaple" for "edge config"; did you mean sample?`},
		"none, with a flag":         {[]string{"chek", "-c", valid}, exit.Usage, "unknown command \"chek\" for \"edge\"; did you mean check?\nTry `edge --help`."},
		"none below, with a flag":   {[]string{"fleet", "lss", "--config", valid}, exit.Usage, `unknown command "lss" for "edge fleet"; did you mean ls?`},
		"no help of it":             {[]string{"help", "runn"}, exit.Usage, `unknown command "runn" for "edge"; did you mean run?`},
		"no help below":             {[]string{"help", "config", "smaple"}, exit.Usage, `unknown command "smaple" for "edge config"; did you mean sample?`},
		"no help of a file":         {[]string{"help", "run", "x"}, exit.Usage, `edge: run takes no argument, not "x"`},
		"configuration as argument": {[]string{"check", valid}, exit.Usage, "; a configuration is given by -c FILE\nTry `edge check --help`."},
		"data file as argument":     {[]string{"config", "sample", "x.csv"}, exit.Usage, "; a data file is given by --from FILE\nTry `edge config sample --help`."},
		"no such shell":             {[]string{"completion", "fihs"}, exit.Usage, `unknown command "fihs" for "edge completion"; did you mean fish?`},
		"no such flag":              {[]string{"run", "--fast"}, exit.Usage, "unknown flag: --fast\nTry `edge run --help`."},
		"nearly a flag":             {[]string{"run", "--confg", "x"}, exit.Usage, "unknown flag: --confg; did you mean --config?"},
		"a broker, of no flag":      {[]string{"fleet", "ls", "--broker", "mqtt://x"}, exit.Usage, "unknown flag: --broker; the broker is that of the configuration, -c FILE\n"},
		"no configuration":          {[]string{"request", "ping", "--node", "hall"}, exit.Config, "prints one to begin with; --broker URL does without"},
		"a broker without a node":   {[]string{"request", "ping", "--broker", "mqtt://x"}, exit.Usage, "--broker needs --node NAME: edge top --broker URL finds the nodes"},
		"a node of no name":         {[]string{"request", "ping", "--broker", "mqtt://x", "--node", "Hall 1"}, exit.Usage, "--node Hall 1: want a name of [a-z0-9_-]"},
		"a name with - at its end":  {[]string{"request", "reset", "--broker", "mqtt://x", "--node", "hall-"}, exit.Usage, "name the model, as edge request reset MODEL"},
		"data without quotes":       {[]string{"request", "learning", "--broker", "mqtt://x", "--node", "hall", "--data", "OFF"}, exit.Usage, `--data "OFF" is not JSON: want an object in single quotes, such as '{"class": "worn"}'`},
		"a reset of no model":       {[]string{"request", "reset", "--broker", "mqtt://x", "--node", "hall"}, exit.Usage, "name the model, as edge request reset MODEL"},
		"no such letter":            {[]string{"run", "-x"}, exit.Usage, "unknown shorthand flag: 'x'"},
		"too few arguments":         {[]string{"eval"}, exit.Usage, "requires at least 1 arg(s), only received 0\nUsage: edge eval FILE... [flags]\nTry `edge eval --help`."},
		"too many arguments":        {[]string{"inspect", "a", "b"}, exit.Usage, "accepts 1 arg"},
		"folds out of range":        {[]string{"eval", "split", table, "--folds", "1"}, exit.Usage, "want 2 to 40"},
		"strategy of no kind":       {[]string{"eval", "ask", table, "--query", "often"}, exit.Usage, "want off, margin, entropy, bald or random"},
		"a flag alone":              {[]string{"eval", "--linear"}, exit.Usage, "unknown flag: --linear"},
		"flag of the laboratory":    {[]string{"eval", table, "--linear"}, exit.Usage, "unknown flag: --linear"},
		"flag out of range":         {[]string{"eval", table, "--batch", "-1"}, exit.Usage, "edge: --batch: want 0 or more\n"},
		"no whole number":           {[]string{"eval", table, "--first", "x"}, exit.Usage, "edge: --first \"x\": want a whole number\nTry `edge eval --help`."},
		"no duration":               {[]string{"run", "--for", "10"}, exit.Usage, `edge: --for "10": want a time such as 30s or 5m`},
		"no fraction":               {[]string{"eval", table, "--label-fraction", "1,5"}, exit.Usage, `edge: --label-fraction "1,5": want a number`},
		"backup over a file":        {[]string{"backup", valid, table}, exit.Store, table + ": file already exists; give another name, or remove it"},
		"rows out of range":         {[]string{"eval", table, "--first", "-1"}, exit.Usage, "edge: --first: want 0 or more\n"},
		"delay out of range":        {[]string{"eval", table, "--delay", "-1"}, exit.Usage, "edge: --delay: want 0 or more\n"},
		"no coverage":               {[]string{"eval", table, "--coverage", "NaN"}, exit.Usage, "coverage: NaN"},
		"fraction out of range":     {[]string{"eval", table, "--label-fraction", "NaN"}, exit.Usage, "edge: --label-fraction: want 0 to 1\n"},
		"repeats out of range":      {[]string{"eval", "split", table, "--repeats", "0"}, exit.Usage, "edge: --repeats: want 1 or more\n"},
		"no pass":                   {[]string{"eval", "split", table, "--passes", "0"}, exit.Usage, "edge: --passes: 0: want 1 to"},
		"late labels held out":      {[]string{"eval", table, "--split", "device", "--delay", "2"}, exit.Usage, "edge: late or missing labels and features are for scores over the stream, not for held-out rows\n"},
		"model without config":      {[]string{"eval", table, "--model", "m"}, exit.Usage, "give -c FILE"},
		"no such data file":         {[]string{"eval", missing}, exit.Runtime, "no such file"},
		"no such label":             {[]string{"eval", table, "--label", "z"}, exit.Runtime, `no column is called "z"`},
		"no such configuration":     {[]string{"run", "-c", missing}, exit.Config, "`edge config sample` prints one"},
		"folder as configuration":   {[]string{"run", "-c", t.TempDir()}, exit.Config, "is a directory\n"},
		"configuration is wrong":    {[]string{"check", "-c", table}, exit.Config, "table.csv:1:1"},
		"learner out of range":      {[]string{"eval", table, "--inducing", "1"}, exit.Usage, "inducing"},
		"features of other names":   {[]string{"eval", table, "-c", valid}, exit.Runtime, "no columns of the file: rms, kurtosis, peak_hz; the columns are x, y"},
		"no such model":             {[]string{"eval", table, "-c", valid, "--model", "m"}, exit.Config, `no model is called "m"; the configuration has bearing`},
		"no broker":                 {[]string{"replay", table, "--broker", "mqtt://127.0.0.1:1"}, exit.Broker, "connect to the broker"},
		"no broker to check":        {[]string{"check", "-c", files.Write(t, "e.yaml", strings.Replace(harness.Minimal, "mqtt://broker.lan", `"mqtt://127.0.0.1:1"`, 1)), "--connect"}, exit.Broker, "connect to the broker"},
		"address with a password":   {[]string{"replay", table, "--broker", "mqtt://u:hunter2@127.0.0.1:1"}, exit.Usage, "want username and password as keys"},
		"password file is missing":  {[]string{"replay", table, "--broker", "mqtt://127.0.0.1:1", "--username", "u", "--password-file", missing}, exit.Config, "no such file"},
		"labels of no kind":         {[]string{"replay", table, "--labels", "late"}, exit.Usage, "want inline, delayed, asked or none"},
		"delay of no kind":          {[]string{"replay", table, "--delay", "soon"}, exit.Usage, "want a number of rows, such as 50, or a duration, such as 5s"},
		"fraction above 1":          {[]string{"replay", table, "--label-fraction", "2"}, exit.Usage, "want 0 to 1"},
		"time of a run backwards":   {[]string{"run", "-c", valid, "--for", "-1s"}, exit.Usage, "--for -1s: want 0s or more"},
		"backup to a pipe":          {[]string{"backup", table, "-"}, exit.Usage, "the copy has to be a file"},
		"no such state file":        {[]string{"inspect", missing}, exit.Store, "no such file or directory; `edge run` makes it"},
		"backup of no file":         {[]string{"backup", missing, missing + "2"}, exit.Store, "no such file or directory; give the path of a backup, or"},
		"restore of no backup":      {[]string{"restore", missing, missing + "2"}, exit.Store, "no such file or directory; give the path of a backup, or"},
		"not a state file":          {[]string{"inspect", table}, exit.Store, "not a state file"},
		"reset of nothing":          {[]string{"reset"}, exit.Usage, "either --model NAME or --all"},
		"reset of no file":          {[]string{"reset", "--all", "--state", missing}, exit.Store, "reset: nothing is learnt: state file: stat " + missing + ": no such file"},
		"demo backwards":            {[]string{"demo", "--rate", "-1"}, exit.Usage, "want 0 or more"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := edge(t, tc.args...)
			if code != tc.code || !strings.Contains(errOut, tc.want) {
				t.Errorf("edge %s\nexits with %d and prints %q\nwant %d and %q", strings.Join(tc.args, " "), code, errOut, tc.code, tc.want)
			}
			if out != "" && tc.args[0] != "check" { // which prints before it connects
				t.Errorf("it prints on the standard output: %q", out)
			}
			if strings.Contains(errOut, "hunter2") {
				t.Errorf("it gives a password away: %s", errOut)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	code, out, _ := edge(t, "version", "--json")
	var v process.Version
	if err := json.Unmarshal([]byte(out), &v); code != exit.OK || err != nil || v.Go == "" || v.Arch == "" {
		t.Errorf("edge version --json exits with %d and prints %q (%v)", code, out, err)
	}
	for _, word := range []string{"version", "--version", "-v"} {
		if code, out, _ := edge(t, word); code != exit.OK || !strings.HasPrefix(out, "edge ") || !strings.Contains(out, v.Go) {
			t.Errorf("edge %s exits with %d and prints %q", word, code, out)
		}
	}
}

func TestCheckSaysWhatItWouldDo(t *testing.T) {
	code, out, errOut := edge(t, "check", "-c", filepath.Join("..", "..", "configs", "edge.yaml"))
	if code != exit.OK || errOut != "" {
		t.Fatalf("exits with %d and prints %q", code, errOut)
	}
	node := config.Default().Node // that of the host
	for _, want := range []string{
		"node     " + node + ": state, info and events on edge/" + node + "/…",
		"stream   vibration: 3 features from factory/+/vibration",
		"labels   for every model from factory/+/vibration/label",
		"model    bearing: learns vibration in minibatches of 16, or after 50ms; predicts on edge/" + node + "/bearing/prediction",
		"forest on: state of 176.7 KiB with 2 classes",
		"edge.db (will be created), at most 256MiB; checkpoint every 5m0s or after 5000 samples",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("edge check prints\n%swithout %q", out, want)
		}
	}
}

func TestConfigCommands(t *testing.T) {
	code, sample, _ := edge(t, "config", "sample")
	if code != exit.OK {
		t.Fatalf("config sample exits with %d", code)
	}
	if code, out, errOut := edge(t, "check", "-c", files.Write(t, "edge.yaml", sample)); code != exit.OK {
		t.Errorf("the sample is not valid: %s%s", out, errOut)
	}
	code, forFile, errOut := edge(t, "config", "sample", "--from", harness.TableFile(t, "room.csv", 20))
	if code != exit.OK {
		t.Fatalf("config sample --from exits with %d: %s", code, errOut)
	}
	t.Setenv("EDGE_MQTT_SERVERS", "mqtts://other.lan")
	t.Setenv("EDGE_MQTT_PASSWORD_FILE", "/run/secret")
	t.Setenv("EDGE_MQTT_USERNAME", "sensor")
	code, shown, errOut := edge(t, "config", "show", "-c", files.Write(t, "edge.yaml", forFile))
	if code != exit.OK || !strings.Contains(shown, "mqtts://other.lan") || !strings.Contains(shown, "/run/secret") || !strings.Contains(shown, "sensors/room") {
		t.Errorf("config show exits with %d: %s%s", code, shown, errOut)
	}
	code, schema, errOut := edge(t, "config", "schema")
	var object struct {
		Properties map[string]any `json:"properties"`
	}
	if err := json.Unmarshal([]byte(schema), &object); code != exit.OK || err != nil || len(object.Properties) != 13 {
		t.Errorf("config schema exits with %d, %d properties, %v: %s", code, len(object.Properties), err, errOut)
	}
}

// The lines of check about the sections that a configuration may have.
func TestCheckSaysWhatWouldBeDone(t *testing.T) {
	config := files.Write(t, "edge.yaml", `
mqtt: {servers: [mqtt://broker.lan]}
node: pi4
streams:
  climate: {topics: [home/+/+], topic_template: "home/{room}/{feature}", format: value, features: [temp, hum], join: {window: 90s}}
  waves: {topics: [waves], format: float32, compression: zstd, features: [temp, hum]}
  plug: {topics: ["plug/+"], topic_template: "plug/{signal}", format: value, signals: [power, on], hold: {on: any}}
models:
  plugs: {streams: [plug]}
  rooms: {streams: [climate, waves], output: cbor}
  halls: {streams: [climate], fleet: {concept: hall}}
  attics: {streams: [climate], fleet: {concept: attic, role: follower}}
homeassistant: {enabled: true}
control: {enabled: true}
`)
	code, out, errOut := edge(t, "check", "-c", config)
	if code != exit.OK {
		t.Fatalf("edge check exits with %d: %s", code, errOut)
	}
	for _, want := range []string{
		"stream   climate: 2 features from home/+/+, as values that are joined within 1m30s (at most 62.5 KiB wait)\n",
		"stream   waves: 2 features from waves, as float32, compression zstd\n",
		"stream   plug: 2 signals from plug/+, as value\n",
		"predicts on edge/pi4/rooms/prediction, as cbor\n",
		"in fleet hall: reads edge/fleet/hall/+; publishes on edge/fleet/hall/pi4 after 100 labels or fewer, or 1h0m0s after they came, at most once in 1m0s; basis own, scale shared\n",
		"model    attics: predicts climate on edge/pi4/attics/prediction, as json\n",
		"follows fleet attic by edge/fleet/attic/+: it neither learns nor publishes there\n",
		"home     each model is a device of Home Assistant, announced on homeassistant/device/…\n",
		"control  any client that may publish on edge/pi4/request/# changes classes, switches learning off and resets models\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("edge check prints\n%s\nwant %q", out, want)
		}
	}
}

// The page takes labels of a model that learns, and none of a follower. Requests change the former alone.
func TestCheckOfFollowersAlone(t *testing.T) {
	const follower = "mqtt: {servers: [mqtt://broker.lan]}\ncontrol: {enabled: true}\nstreams:\n  s: {topics: [s], dimension: 2}\nmodels:\n  f: {streams: [s], fleet: {concept: c, role: follower}}\n"
	for text, want := range map[string]bool{follower: false, follower + "  m: {streams: [s]}\n": true} {
		if code, out, errOut := edge(t, "check", "-c", files.Write(t, "edge.yaml", text)); code != exit.OK || strings.Contains(out, "labels are taken there") != want || strings.Contains(out, "/request/# changes classes") != want || strings.Contains(out, "/request/# removes members of the fleets that are followed, and reads the configuration again\n") == want {
			t.Errorf("of\n%sexits with %d: %s%s", text, code, out, errOut)
		}
	}
}
