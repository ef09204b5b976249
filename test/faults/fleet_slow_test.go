//go:build slow && linux && (amd64 || arm64 || arm)

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/internal/dataset"
	"edge/online"
	"edge/online/fleet"
	"edge/stream/membership"
	"edge/test/files"
	"edge/test/fleettest"
	"edge/test/harness"
)

// TestFleetFailpoints lets a daemon panic or fail between any two steps of the record of
// a merge: the journal, the commit, learning. After the next start, and another merge,
// the state is that of a daemon that was not disturbed; where the record was committed,
// of one that was started twice.
func TestFleetFailpoints(t *testing.T) { fleetFailpoints(t, membership.BasisOwn) }

// TestBasisFailpoints does it with a merge that adopts a common basis.
func TestBasisFailpoints(t *testing.T) { fleetFailpoints(t, membership.BasisShared) }

// Long: its cases share the learnt state and the two references.
func fleetFailpoints(t *testing.T, basis string) {
	binary := edgeWithFailpoints(t)
	b := brokertest.New(t, brokertest.Mosquitto)
	folder := t.TempDir()
	configure := func(t *testing.T, name, store, concept string) string {
		return files.Write(t, "edge.yaml", fmt.Sprintf(`
node: %[2]s
mqtt: {servers: ["%[1]s"], max_reconnect_interval: 200ms}
streams: {waveform: {topics: [sensors/%[2]s], features: [%[5]s]}}
models:
  waveform:
    streams: [waveform]
    inducing: 10
    window: 60
    horizons: [inf, 100]
    experts: {forest: off}
    batch: {max_size: 16, max_wait: 0s}
    fleet: {concept: "%[4]s", merge_every: 1h, basis: %[6]s}
store: {path: "%[3]s", checkpoint: {every: 0s, samples: 1000}}
http: {listen: ""}
`, b.URL(), name, store, concept, strings.Join(new(dataset.Waveform).Features(), ", "), basis))
	}

	base := filepath.Join(folder, "base.db")
	plain := configure(t, "base", base, "")
	d := harness.Start(t, plain)
	d.Await("connected to the broker")
	const rows = 100 // the last minibatch is open, and stays open with a merge in an own basis
	harness.Replay(t, harness.WaveformFile(t, rows), "--broker", b.URL(), "--topic", "sensors/base")()
	d.Stop()
	learnt, err := os.ReadFile(base)
	if err != nil {
		t.Fatal(err)
	}
	peer := peerOf(t, plain)
	messages := map[string][]byte{"peer": contributionOf(t, peer), membership.BasisName: basisOf(t, peer)}
	client, err := broker.Dial(t.Context(), brokertest.Config(b.URL()), broker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)

	// run starts a daemon with the learnt state, and again if ends says that it ends,
	// until it has merged, and returns its final digest.
	run := func(t *testing.T, number int, failing string, ends func(*harness.Daemon) bool) (digest string) {
		name := fmt.Sprintf("case%d", number)
		for topic, message := range messages {
			if err := client.Publish(t.Context(), "edge/fleet/"+name+"/"+topic, 1, true, message); err != nil {
				t.Fatal(err)
			}
		}
		store := filepath.Join(t.TempDir(), "edge.db")
		if err := os.WriteFile(store, learnt, 0o600); err != nil {
			t.Fatal(err)
		}
		file := configure(t, name, store, name)
		d := startWithFailpoint(t, binary, file, failpointVariable+"="+failing)
		if ends(d) {
			d = startWithFailpoint(t, binary, file)
		}
		d.Await("fleet merged")
		if adopted := strings.Contains(d.Log(), "is adopted"); adopted && basis == membership.BasisOwn {
			t.Error("a common basis is adopted with a basis of its own")
		}
		return d.Stop().Get("digest").String()
	}
	goesOn := func(*harness.Daemon) bool { return false }
	once := run(t, 0, "none=none", goesOn)
	twice := run(t, 1, "none=none", func(d *harness.Daemon) bool {
		d.Await("fleet merged")
		d.Stop()
		return true
	})
	// In an own basis a second merge of the same contributions leaves all as it is.
	if ready := harness.Start(t, plain).Await("model ready"); ready.Get("digest").String() == once || once != twice && basis == membership.BasisOwn {
		t.Error("a merge changes nothing, or a second one something")
	}
	for i, c := range []struct{ failing, want string }{
		{"before the journal write=panic", once}, {"before the journal write=fail", once}, {"after the journal write=panic", once},
		{"before the commit=panic@2", once}, {"before the commit=fail@2", once}, // the first commit is of the epoch
		{"after the commit=panic@2", twice}, {"before learning=panic", twice}, {"after learning=panic", twice}, {"after the snapshot=panic", twice},
	} {
		t.Run(c.failing, func(t *testing.T) {
			t.Parallel()
			ends := goesOn
			if strings.Contains(c.failing, "panic") {
				ends = func(d *harness.Daemon) bool { <-d.Ended; return true }
			}
			if got := run(t, i+2, c.failing, ends); got != c.want {
				t.Errorf("the digest is %s, want %s", got, c.want)
			}
		})
	}
}

// peerOf returns the learner of another device with a configuration.
func peerOf(t *testing.T, path string) *online.Learner {
	t.Helper()
	from, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := from.Learner("")
	if err != nil {
		t.Fatal(err)
	}
	learner, err := online.NewLearner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w := dataset.NewWaveform(99)
	var row dataset.Row
	for range 300 {
		w.Next(&row)
		learner.Add(&online.Event{Kind: online.Observe, X: row.X, Label: row.Label})
	}
	return learner
}

// basisOf returns the common basis that a learner proposes.
func basisOf(t *testing.T, l *online.Learner) []byte {
	t.Helper()
	cfg := l.Config()
	cfg.Fleet.Shared = true
	state, _ := l.AppendBinary(nil)
	sharing, err := online.Restore(cfg, state)
	if err != nil {
		t.Fatal(err)
	}
	set := fleet.NewSet(0)
	set.Vacant = true
	m, err := sharing.Merge("peer", set)
	if err != nil {
		t.Fatal(err)
	}
	data, err := m.Announce.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// contributionOf returns the contribution of a learner.
func contributionOf(t *testing.T, l *online.Learner) []byte {
	t.Helper()
	c, err := l.Contribution("peer")
	if err != nil {
		t.Fatal(err)
	}
	c.Epoch, c.Sequence = 1, 1
	return fleettest.Encode(t, c)
}
