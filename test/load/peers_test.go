package load

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/test/files"
)

// nodeRed is a flow: JSON is parsed, a function takes the largest feature as the class,
// and an object is published. The values are port, topic of the questions and topic of
// the answers.
const nodeRed = `[
{"id": "flow", "type": "tab", "label": "flow"},
{"id": "broker", "type": "mqtt-broker", "broker": "127.0.0.1", "port": "%s", "clientid": "nodered", "autoConnect": true,
 "usetls": false, "protocolVersion": "4", "keepalive": "60", "cleansession": true},
{"id": "in", "type": "mqtt in", "z": "flow", "topic": "%s", "qos": "1", "datatype": "json", "broker": "broker", "wires": [["rule"]]},
{"id": "rule", "type": "function", "z": "flow", "outputs": 1, "wires": [["out"]],
 "func": "const x = msg.payload.features; let best = 0; for (let i = 1; i < x.length; i++) if (x[i] > x[best]) best = i; return { payload: { prediction: 'gas' + best, value: x[best] } };"},
{"id": "out", "type": "mqtt out", "z": "flow", "topic": "%s", "qos": "1", "retain": "false", "broker": "broker", "wires": []}
]
`

const nodeRedSettings = `module.exports = { httpAdminRoot: false, httpNodeRoot: false, telemetry: { enabled: false } };
`

// telegraf is a configuration: JSON is parsed to fields, which are published as JSON.
// The values are broker, topic of the questions, and broker and topic of the answers.
// A batch is one message, because larger ones wait for the flush interval.
const telegraf = `[agent]
  metric_batch_size = 1
  flush_interval = "1s"
  omit_hostname = true
[[inputs.mqtt_consumer]]
  servers = ["tcp://%s"]
  topics = ["%s"]
  qos = 1
  data_format = "json"
[[outputs.mqtt]]
  servers = ["mqtt://%s"]
  topic = "%s"
  qos = 1
  data_format = "json"
`

// kuiper is a set of rules of eKuiper: JSON is parsed, the largest feature's place is the class, and
// an object is published. The values are topic of the questions, and broker and topic of the answers.
const kuiper = `{
"streams": {"questions": "CREATE STREAM questions () WITH (TYPE=\"mqtt\", DATASOURCE=\"%s\", FORMAT=\"json\")"},
"tables": {},
"rules": {"answers": "{\"id\": \"answers\", \"sql\": \"SELECT array_position(features, array_max(features)) AS prediction, array_max(features) AS value FROM questions\", \"actions\": [{\"mqtt\": {\"server\": \"tcp://%s\", \"topic\": \"%s\", \"qos\": 1, \"sendSingle\": true}}]}"}
}
`

// kuiperFolder makes the folder of an eKuiper that runs the rules with the broker at addr.
func (s *answerers) kuiperFolder(addr string) string {
	base := s.b.TempDir()
	for _, folder := range []string{"etc/sources", "etc/sinks", "etc/functions", "etc/services/schemas", "etc/connections", "etc/ops", "etc/multilingual", "data", "log", "plugins/sources", "plugins/sinks", "plugins/functions", "plugins/portable", "plugins/wasm"} {
		if err := os.MkdirAll(filepath.Join(base, folder), 0o700); err != nil {
			s.b.Fatal(err)
		}
	}
	_, rest, _ := net.SplitHostPort(brokertest.FreeAddress(s.b))
	_, service, _ := net.SplitHostPort(brokertest.FreeAddress(s.b))
	for name, text := range map[string]string{
		"kuiper.yaml":      fmt.Sprintf("basic: {consoleLog: true, fileLog: false, ip: 127.0.0.1, port: %s, restIp: 127.0.0.1, restPort: %s}\nstore: {type: sqlite, extStateType: sqlite}\n", service, rest),
		"mqtt_source.yaml": fmt.Sprintf("default: {qos: 1, server: \"tcp://%s\", protocolVersion: \"3.1.1\"}\n", addr),
		"init.json":        fmt.Sprintf(kuiper, questionsTopic, addr, answersTopic),
	} {
		if err := os.WriteFile(filepath.Join(base, "etc", name), []byte(text), 0o600); err != nil {
			s.b.Fatal(err)
		}
	}
	return base
}

// beside runs f with a program of somebody else, once its output contains ready.
func (s *answerers) beside(cmd *exec.Cmd, ready string, f func(*answerer)) {
	name := filepath.Join(s.b.TempDir(), "output")
	output, err := os.Create(name)
	if err != nil {
		s.b.Fatal(err)
	}
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		s.b.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	if !brokertest.Eventually(func() bool {
		text, _ := os.ReadFile(name)
		return bytes.Contains(text, []byte(ready))
	}) {
		text, _ := os.ReadFile(name)
		s.b.Fatalf("%s does not print %q:\n%s", cmd.Path, ready, text)
	}
	s.with(cmd.Process.Pid, f)
}

// peer is a program of the comparison.
type peer struct {
	name string
	run  func(func(*answerer))
}

// peers are echo and daemon, and those of Node-RED, Telegraf and eKuiper that are in the PATH.
func (s *answerers) peers(addr string, labelled [][]byte) (found []peer, missing []string) {
	found = []peer{
		{"echo", s.echoing},
		{"edge", func(f func(*answerer)) {
			s.predicting(func(p *answerer) {
				p.ask(labelled, 1000, 0) // until hyper-parameters are learnt
				p.settle()
				f(p)
			})
		}},
	}
	port := addr[len("127.0.0.1:"):]
	folder := filepath.Dir(files.Write(s.b, "settings.js", nodeRedSettings))
	flow := files.Write(s.b, "flow.json", fmt.Sprintf(nodeRed, port, questionsTopic, answersTopic))
	config := files.Write(s.b, "telegraf.conf", fmt.Sprintf(telegraf, addr, questionsTopic, addr, answersTopic))
	for _, p := range []struct {
		name, ready string
		command     func(path string) *exec.Cmd
	}{
		{"node-red", "Connected to broker", func(path string) *exec.Cmd { return exec.Command(path, "--userDir", folder, flow) }},
		{"telegraf", "Connected [tcp://", func(path string) *exec.Cmd { return exec.Command(path, "--config", config) }},
		{"kuiperd", "mqtt sink client ready", func(path string) *exec.Cmd {
			cmd := exec.Command(path)
			cmd.Env = append(os.Environ(), "KuiperBaseKey="+s.kuiperFolder(addr))
			return cmd
		}},
	} {
		path, err := exec.LookPath(p.name)
		if err != nil {
			missing = append(missing, p.name)
			continue
		}
		found = append(found, peer{p.name, func(f func(*answerer)) { s.beside(p.command(path), p.ready, f) }})
	}
	return found, missing
}

// BenchmarkPeers carries JSON objects of 33 features through mosquitto with QoS 1 to an
// echo on paho, to a daemon that predicts, and to the programs that a user would take
// in its place and that are installed. -benchtime 20000x is the number of messages of
// a flood; a quarter of them follows at 1000 a second. The table has medians of five
// rounds, in each of which every program runs; processor time and memory are those of
// the program. Quotients are of the echo's figure in the same round.
func BenchmarkPeers(b *testing.B) {
	const rounds, features, classes = 5, 33, 6
	if b.N < 1000 { // Go's first run has one message
		return
	}
	addr := brokertest.FreeAddress(b)
	b.Cleanup(brokertest.MosquittoWith(b, addr, "set_tcp_nodelay true\nmax_queued_messages 0\n"))
	s := &answerers{b: b, broker: "mqtt://" + addr}
	s.config = files.Write(b, "edge.yaml", fmt.Sprintf(`
node: test
mqtt: {servers: ["%s"], persistent_session: false}
streams: {gas: {topics: [%s], dimension: %d}}
models: {gas: {streams: [gas], inducing: 50, classes: {open: true, max: %d}}}
store: {path: "%s"}
http: {listen: ""}
`, s.broker, questionsTopic, features, classes, filepath.Join(b.TempDir(), "edge.db")))
	plain, labelled := gasPayloads(2000, classes, features, false), gasPayloads(2000, classes, features, true)
	found, missing := s.peers(addr, labelled)
	f := figures{}
	for round := range rounds {
		for i := range found {
			p := found[(i+round)%len(found)] // none is always the first
			p.run(func(a *answerer) {
				a.ask(plain, 2000, 0) // until a just-in-time compiler has seen the code
				f.flood(a, p.name, plain, b.N)
				f.pace(a, p.name, plain, b.N/4)
				f.add(p.name+"-MB", a.resident())
			})
		}
		for _, p := range found {
			for _, unit := range []string{"-msg/s", "-cpu-µs", "-paced-cpu-µs"} {
				f.ratio(p.name+"/echo"+unit, p.name+unit, "echo"+unit)
			}
		}
	}
	table := fmt.Sprintf("\n%-10s %19s %19s %22s %8s %8s %8s\n", "", "messages a second", "processor µs each", "the same, 1000/s", "p50 ms", "p99 ms", "MB")
	for _, p := range found {
		get := func(unit string) float64 { return median(f[p.name+unit]) }
		relative := func(unit string) float64 { return median(f[p.name+"/echo"+unit]) }
		table += fmt.Sprintf("%-10s %10.0f ×%6.2f  %10.1f ×%6.2f  %13.0f ×%6.2f  %8.2f %8.2f %8.0f\n", p.name, get("-msg/s"), relative("-msg/s"),
			get("-cpu-µs"), relative("-cpu-µs"), get("-paced-cpu-µs"), relative("-paced-cpu-µs"), get("-p50-ms"), get("-p99-ms"), get("-MB"))
	}
	for _, name := range missing {
		table += fmt.Sprintf("%-10s is not installed\n", name)
	}
	fmt.Print(table) // a benchmark's log is cut after a few lines
	b.ReportMetric(0, "ns/op")
}
