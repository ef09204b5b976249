package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/config"
	"edge/internal/daemon"
	"edge/internal/exit"
	"edge/online"
	"edge/persist"
	"edge/test/files"
	"edge/test/harness"
)

// check refuses the configurations that run refuses, before it connects, and warns
// where the outcome depends on the daemon's user and environment.
func TestCheckLooksAtFiles(t *testing.T) {
	folder := t.TempDir()
	foreign := files.Write(t, "notes.txt", strings.Repeat("no state at all\n", 1000))
	noPEM := files.Write(t, "ca.pem", "no certificate")
	old, err := os.ReadFile(filepath.Join("..", "..", "persist", "testdata", "v1.state"))
	if err != nil {
		t.Fatal(err)
	}
	before := filepath.Join(folder, "v1.state")
	if err := os.WriteFile(before, old, 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(folder, "damaged.db")
	if err := os.WriteFile(damaged, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	learnt := filepath.Join(folder, "learnt.db")
	remember(t, learnt, "bearing", online.DefaultConfig().Shape())
	added, forgotten := filepath.Join(folder, "added.db"), filepath.Join(folder, "forgotten.db")
	remember(t, added, "pump", online.DefaultConfig().Shape())
	remember(t, forgotten, "bearing", online.DefaultConfig().Shape())
	if code, _, errOut := edge(t, "reset", "--state", forgotten, "--all", "--yes"); code != exit.OK {
		t.Fatalf("edge reset exits with %d: %s", code, errOut)
	}
	t.Setenv("EDGE_TEST_SECRET", "hunter2")
	for name, tc := range map[string]struct {
		more string // of the configuration
		code int
		want string
	}{
		"nothing yet":                           {fmt.Sprintf("store: {path: %q}", filepath.Join(folder, "edge.db")), exit.OK, "(will be created)"},
		"no folder":                             {fmt.Sprintf("store: {path: %q}", filepath.Join(folder, "none", "edge.db")), exit.OK, "warning  store.path: the folder " + filepath.Join(folder, "none") + " does not exist"},
		"a folder":                              {fmt.Sprintf("store: {path: %q}", folder), exit.Config, "is a folder: want the path of a file"},
		"below a file":                          {fmt.Sprintf("store: {path: %q}", filepath.Join(noPEM, "edge.db")), exit.OK, "warning  store.path"},
		"below a file, which is not there":      {fmt.Sprintf("store: {path: %q}", filepath.Join(noPEM, "edge.db")), exit.OK, "edge.db (cannot be looked at)"},
		"unset variable":                        {`store: {path: "${EDGE_NOT_SET}/edge.db"}`, exit.OK, "warning  store.path: ${EDGE_NOT_SET} is not set here"},
		"another file":                          {fmt.Sprintf("store: {path: %q}", foreign), exit.Store, "not a state file"},
		"another shape":                         {fmt.Sprintf("store: {path: %q}", learnt), exit.Store, "the state was learnt with"},
		"a damaged state":                       {fmt.Sprintf("store: {path: %q}", damaged), exit.OK, "edge verify lists them, edge run repairs them"},
		"a model added since":                   {fmt.Sprintf("store: {path: %q}", added), exit.OK, "is valid"},
		"the state of another name":             {fmt.Sprintf("store: {path: %q}", added), exit.OK, "warning  store.path: the state file also holds model pump"},
		"a model after its reset":               {fmt.Sprintf("store: {path: %q}", forgotten), exit.OK, "is valid"},
		"an older format, and no learner in it": {fmt.Sprintf("store: {path: %q}", before), exit.Store, "model bearing: online: state does not begin with its mark"},
		"no authority":                          {"mqtt: {servers: [mqtts://h], tls: {ca: /no/such/ca.pem}}", exit.Config, "/no/such/ca.pem: no such file"},
		"authority without PEM":                 {fmt.Sprintf("mqtt: {servers: [mqtts://h], tls: {ca: %q}}", noPEM), exit.Config, "mqtt.tls: "},
		"no certificate":                        {fmt.Sprintf("mqtt: {servers: [mqtts://h], tls: {cert: %q, key: %q}}", noPEM, noPEM), exit.Config, "mqtt.tls: "},
		"no password":                           {"mqtt: {username: u, password: {file: /no/such/password}}", exit.Config, "mqtt.password: read secret: open /no/such/password: no such file"},
		"password elsewhere":                    {`mqtt: {username: u, password: {file: "${EDGE_NOT_SET}/password"}}`, exit.OK, "warning  mqtt.password: ${EDGE_NOT_SET} is not set here"},
		"password not set":                      {"mqtt: {username: u, password: {env: EDGE_NOT_SET}}", exit.OK, "warning  mqtt.password: EDGE_NOT_SET is not set here"},
		"no password of HTTP":                   {"http: {password: {file: /no/such/password}}", exit.Config, "http.password: "},
		"no certificate there":                  {fmt.Sprintf("http: {tls: {cert: %q, key: %q}}", noPEM, noPEM), exit.Config, "http.tls: "},
		"HTTP's, elsewhere":                     {`http: {password: {file: "${EDGE_NOT_SET}/password"}}`, exit.OK, "warning  http.password: ${EDGE_NOT_SET} is not set here"},
		"a stream of no model":                  {"", exit.OK, "warning  streams.r: no model uses it, so that nothing subscribes to its topics"},
		"password set":                          {"mqtt: {username: u, password: {env: EDGE_TEST_SECRET}}", exit.OK, "is valid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			text := "streams: {vibration: {topics: [factory/+/vibration], features: [rms, kurtosis, peak_hz]}}\nmodels: {bearing: {streams: [vibration]}}\n" + tc.more + "\n"
			if strings.HasPrefix(name, "an older format") { // whose model has this shape
				text = strings.NewReplacer("[rms, kurtosis, peak_hz]", "[a, b, c]", "[vibration]}", "[vibration], horizons: [inf], window: 0}").Replace(text)
			}
			if name == "a stream of no model" {
				text = strings.Replace(text, "streams: {", "streams: {r: {topics: [r], features: [a]}, ", 1)
			}
			code, out, errOut := edge(t, "check", "-c", files.Write(t, "edge.yaml", text))
			if code != tc.code || !strings.Contains(out+errOut, tc.want) {
				t.Errorf("edge check exits with %d:\n%s%s\nwant %d and %q", code, out, errOut, tc.code, tc.want)
			}
			if strings.Contains(out+errOut, "hunter2") {
				t.Error("it gives a password away")
			}
		})
	}
}

// A variable of store.path that is not set is no part of a path: run would write /edge.db,
// and reset would look for it. check, which a person runs without the service's environment,
// warns.
func TestUnsetVariableOfTheState(t *testing.T) {
	path := files.Write(t, "edge.yaml", harness.Minimal+`store: {path: "${EDGE_NOT_SET}/edge.db"}`+"\n")
	for command, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"run":   {[]string{"--for", "1ms"}, exit.Config, "store.path: ${EDGE_NOT_SET} is not set here; set it as the service of the daemon does: EDGE_NOT_SET=/var/lib/edge"},
		"reset": {[]string{"--all", "--yes"}, exit.Config, "EDGE_NOT_SET=/var/lib/edge, or give --state FILE"},
		"check": {nil, exit.OK, "state    ${EDGE_NOT_SET}/edge.db (will be created)"},
	} {
		if code, out, errOut := edge(t, append([]string{command, "-c", path}, tc.args...)...); code != tc.code || !strings.Contains(out+errOut, tc.want) {
			t.Errorf("edge %s exits with %d, want %d and %q:\n%s%s", command, code, tc.code, tc.want, out, errOut)
		}
	}
	state := filepath.Join(t.TempDir(), "edge.db")
	remember(t, state, "bearing", online.DefaultConfig().Shape())
	t.Setenv("EDGE_NOT_SET", filepath.Dir(state))
	if code, out, errOut := edge(t, "reset", "-c", path, "--all", "--yes"); code != exit.OK {
		t.Errorf("with the variable edge reset exits with %d: %s%s", code, out, errOut)
	}
}

// Both check and run tell of devices that count as one.
func TestDevicesThatCountAsOne(t *testing.T) {
	path := files.Write(t, "edge.yaml", `
mqtt: {servers: [mqtt://127.0.0.1:1]}
http: {listen: ""}
streams: {s: {topics: [plant/+/acc], signals: [x], window: {length: 64}}}
models: {m: {streams: [s]}}
store: {path: `+filepath.Join(t.TempDir(), "edge.db")+`}
`)
	const want = "streams.s.topics: several devices on plant/+/acc would count as one"
	for _, args := range [][]string{{"check"}, {"run", "--for", "1ms"}} {
		if code, out, errOut := edge(t, append(args, "-c", path)...); code != exit.OK || !strings.Contains(out+errOut, want) {
			t.Errorf("edge %v exits with %d, want %q:\n%s%s", args, code, want, out, errOut)
		}
	}
}

// remember writes a state file in which a model has a shape.
func remember(t *testing.T, path, model, shape string) {
	t.Helper()
	store, err := persist.Open(path, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Load(model, shape); err != nil {
		t.Fatal(err)
	}
	if err := store.Checkpoint(model, 0, []byte("state")); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// A configuration that run refuses is refused by check and by config show.
func TestCheckRefusesWhatRunRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"all topics":          strings.Replace(harness.Minimal, "factory/+/vibration", `"#"`, 1),
		"own topics":          strings.Replace(harness.Minimal, "factory/+/vibration", `"edge/#"`, 1),
		"own topics of label": harness.Minimal + "labels: [{topics: ['+/+/bearing/prediction']}]\n",
		"Home Assistant's":    strings.Replace(harness.Minimal, "factory/+/vibration", `"homeassistant/#"`, 1) + "homeassistant: {enabled: true}\n",
		"model called state":  strings.Replace(harness.Minimal, "bearing", "state", 1),
		"stream twice":        strings.Replace(harness.Minimal, "[vibration]", "[vibration, vibration]", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			path := files.Write(t, "edge.yaml", text)
			for _, args := range [][]string{{"check", "-c", path}, {"config", "show", "-c", path}, {"run", "-c", path, "--for", "1ms"}} {
				if code, out, errOut := edge(t, args...); code != exit.Config || out != "" {
					t.Errorf("edge %s exits with %d, want %d\n%s%s", args[0], code, exit.Config, out, errOut)
				}
			}
			c, _ := config.Parse(path, []byte(text), nil) // invalid, yet complete
			if d, err := daemon.New(c, slog.New(slog.DiscardHandler), nil); err == nil {
				d.Close()
				t.Error("a daemon takes it")
			}
		})
	}
}

// check says that the next start converts a state file of an older format.
func TestCheckBeforeConversion(t *testing.T) {
	const build = "../../internal/statefile/testdata/65489e5d"
	packed, err := os.Open(build + ".db.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	state, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	path := files.Write(t, "edge.db", string(state))
	t.Setenv("EDGE_STORE_PATH", path)
	code, out, errOut := edge(t, "check", "-c", build+".yaml")
	if want := "the next start converts the state file from format 3 to 6, and keeps that of now as " + path + ".format-3\n"; code != exit.OK || !strings.Contains(out, want) {
		t.Errorf("check exits with %d and prints no %q:\n%s%s", code, want, out, errOut)
	}
}
