package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/test/files"
	"edge/test/harness"
)

// fleetNode is one daemon of a fleet that learns the waveform problem.
type fleetNode struct {
	*harness.Daemon
	t                   *testing.T
	b                   *brokertest.Broker
	name, config, store string
	sent                int
}

// startFleetNode starts a daemon with a role in the fleet wave.
func startFleetNode(t *testing.T, b *brokertest.Broker, name, role string) *fleetNode {
	t.Helper()
	n := &fleetNode{t: t, b: b, name: name, store: filepath.Join(t.TempDir(), "edge.db")}
	n.config = fleetConfig(t, b.URL(), name, n.store, role)
	n.Daemon = harness.Start(t, n.config)
	n.Await("connected to the broker")
	return n
}

func fleetConfig(t *testing.T, broker, name, store, role string) (path string) {
	t.Helper()
	return files.Write(t, name+".yaml", fmt.Sprintf(`
node: %[2]s
mqtt: {servers: ["%[1]s"], max_reconnect_interval: 200ms}
streams: {waveform: {topics: [%[2]s/waveform], features: [%[5]s]}}
models:
  waveform:
    streams: [waveform]
    inducing: 20
    window: 60
    batch: {max_size: 16, max_wait: 0s}
    fleet: {concept: wave, role: %[4]s, every: 50, interval: 1s, merge_every: 1s}
store: {path: "%[3]s", checkpoint: {every: 0s, samples: 150}}
metrics: {every: 1s, samples: 50}
control: {enabled: true}
http: {listen: ""}
`, broker, name, store, role, strings.Join(new(dataset.Waveform).Features(), ", ")))
}

// learn sends the node rows of a data file, each its own part of it.
func (n *fleetNode) learn(rows string) {
	n.t.Helper()
	n.sent++
	harness.Replay(n.t, rows, "--broker", n.b.URL(), "--topic", n.name+"/waveform", "--prefix", fmt.Sprint(n.name, n.sent))()
}

// awaitMerge waits until the node's newest merge is of that many members.
func (n *fleetNode) awaitMerge(members int) {
	n.t.Helper()
	if !brokertest.Eventually(func() bool { return n.merged() == members }) {
		n.t.Fatalf("%s merges %d members, want %d:\n%s", n.name, n.merged(), members, n.Log())
	}
}

// merged returns the members in the newest merge, −1 without one.
func (n *fleetNode) merged() int {
	newest := -1
	for line := range strings.Lines(n.Log()) {
		if strings.Contains(line, `"fleet merged"`) {
			fmt.Sscanf(line[strings.Index(line, `"members":`):], `"members":%d`, &newest)
		}
	}
	return newest
}

// TestFleet lets two daemons learn their own shares of a stream as one, with a follower
// beside them. The state is the same after a kill: the journal has the merges. A member
// whose retained message is removed leaves the sums of the others.
func TestFleet(t *testing.T) {
	data := harness.WaveformFile(t, 300)
	first, second := splitFile(t, data, 150)
	b := brokertest.New(t, brokertest.Mosquitto)
	one, two := startFleetNode(t, b, "one", "member"), startFleetNode(t, b, "two", "member")
	one.learn(first)
	two.learn(second)
	one.awaitMerge(1)
	two.awaitMerge(1)
	three := startFleetNode(t, b, "three", "follower")
	three.awaitMerge(2)

	copied := filepath.Join(t.TempDir(), "copy.db")
	if code, _, errOut := harness.Run(t, "backup", one.store, copied); code != exit.OK {
		t.Fatalf("edge backup: %s", errOut)
	}
	want := one.Stop().Get("digest").String()
	again := harness.Start(t, fleetConfig(t, "mqtt://"+brokertest.FreeAddress(t), "one", copied, "member"))
	if got := again.Await("model ready").Get("digest").String(); got != want {
		t.Errorf("the digest after recovery is %s, want %s", got, want)
	}
	if line := again.Await("model ready"); line.Get("replayed").Int() == 0 {
		t.Errorf("no record was replayed: %s", line)
	}
	if kept := brokertest.Retained(t, b.URL(), "edge/fleet/wave/three"); kept != "" {
		t.Errorf("a follower publishes %d bytes", len(kept))
	}
	pub := brokertest.Subscribe(t, b.URL(), nil, nil)
	defer pub.Close()
	if err := pub.Publish(t.Context(), "edge/two/request/fleet_forget", []byte(`{"data": {"member": "one"}}`)); err != nil {
		t.Fatal(err)
	}
	two.awaitMerge(0)
	three.awaitMerge(1)
}
