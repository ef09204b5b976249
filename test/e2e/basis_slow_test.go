//go:build slow

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/exit"
	"edge/test/files"
	"edge/test/harness"
)

// TestSharedBasis lets two daemons average the parameters of a common basis, and adopt
// another one that a command proposes. After a kill the journal has it all.
func TestSharedBasis(t *testing.T) {
	data := harness.WaveformFile(t, 600)
	first, second := splitFile(t, data, 300)
	b := brokertest.New(t, brokertest.Mosquitto)
	start := func(name string) *fleetNode {
		n := &fleetNode{t: t, b: b, name: name, store: filepath.Join(t.TempDir(), "edge.db")}
		n.config = n.sharing(b.URL(), n.store)
		n.Daemon = harness.Start(t, n.config)
		n.Await("connected to the broker")
		return n
	}
	one, two := start("one"), start("two")
	one.learn(first)
	two.learn(second)
	for _, n := range []*fleetNode{one, two} {
		n.awaitBasis(1, 1)
	}
	if kept := brokertest.Retained(t, b.URL(), "edge/fleet/wave/basis"); !strings.HasPrefix(kept, "EFB1") {
		t.Errorf("the broker keeps %d bytes of a common basis", len(kept))
	}
	one.learn(harness.WaveformFile(t, 120)) // contributions of the basis
	two.learn(harness.WaveformFile(t, 120))
	for _, n := range []*fleetNode{one, two} {
		n.awaitBasis(1, 2)
	}
	if code, out, errOut := harness.Run(t, "fleet", "rebase", "pooled", "-c", two.config); code != exit.OK || !strings.Contains(out, "two proposes a new basis") {
		t.Fatalf("edge fleet rebase: %s%s", out, errOut)
	}
	for _, n := range []*fleetNode{one, two} {
		n.awaitBasis(2, 1)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	if code, _, errOut := harness.Run(t, "backup", one.store, copied); code != exit.OK {
		t.Fatalf("edge backup: %s", errOut)
	}
	want := one.Stop().Get("digest").String()
	again := harness.Start(t, one.sharing("mqtt://"+brokertest.FreeAddress(t), copied))
	if got := again.Await("model ready").Get("digest").String(); got != want {
		t.Errorf("the digest after recovery is %s, want %s", got, want)
	}
}

// sharing writes a configuration with basis: shared.
func (n *fleetNode) sharing(broker, store string) (path string) {
	n.t.Helper()
	path = fleetConfig(n.t, broker, n.name, store, "member")
	text, err := os.ReadFile(path)
	if err != nil {
		n.t.Fatal(err)
	}
	return files.Write(n.t, n.name+".yaml", strings.Replace(string(text), "concept: wave,", "concept: wave, basis: shared,", 1))
}

// awaitBasis waits until the node has the common basis of a number, and its latest merge
// has averaged that many members or more.
func (n *fleetNode) awaitBasis(number, averaged int64) {
	n.t.Helper()
	var out string
	if !brokertest.Eventually(func() bool {
		_, out, _ = harness.Run(n.t, "fleet", "ls", "--json", "-c", n.config)
		basis := gjson.Get(out, "basis")
		return basis.Get("number").Int() == number && basis.Get("averaged").Int() >= averaged
	}) {
		n.t.Fatalf("%s has the basis %s, want number %d with %d members:\n%s", n.name, gjson.Get(out, "basis"), number, averaged, n.Log())
	}
}
