//go:build slow

package torture

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/dataset"
	"edge/internal/replay"
	"edge/online"
	"edge/online/fleet"
	member "edge/stream/fleet"
	"edge/stream/mqtt"
	"edge/test/harness"
)

// TestFleetOnCluster lets four daemons learn as one on a NATS cluster of three servers, of
// which one after the other is killed and started again: for EDGE_CLUSTER seconds (default
// 30), one in each minute, or two in all. Every message that the cluster has confirmed is
// learnt, once. In the end each daemon has merged the newest contribution of each other,
// and its state is that of a learner that was fed its journal.
func TestFleetOnCluster(t *testing.T) {
	length := time.Duration(harness.Number(t, "EDGE_CLUSTER", 30)) * time.Second
	period := min(length/2, time.Minute)
	cluster := brokertest.NewCluster(t)
	nodes := make([]*clustered, 4)
	stop := make(chan struct{})
	for i := range nodes {
		nodes[i] = startClustered(t, cluster, i)
	}
	for i, n := range nodes {
		n.Await("connected to the broker")
		if !brokertest.Progress(func() int { return metric(t, n.page, "edge_subscribed") }, 1) {
			t.Fatalf("%s does not subscribe:\n%s", n.name, n.Log())
		}
		go func() { n.sent <- n.publish(cluster.URLs(i+1), stop) }()
	}
	kills := 0
	for began := time.Now(); time.Since(began)+period/2 < length; kills++ {
		time.Sleep(period / 3)
		i := kills % cluster.Size()
		cluster.Kill(i)
		time.Sleep(period / 3)
		cluster.Start(t, i)
		time.Sleep(period / 3)
	}
	close(stop)
	lost, all := 0, 0
	for _, n := range nodes {
		if err := <-n.sent; err != nil {
			t.Fatal(err)
		}
		if !brokertest.Progress(func() int { return metric(t, n.page, "edge_learned_total") }, n.published) {
			t.Fatalf("%s: the cluster has confirmed %d messages, %d are learnt:\n%s", n.name, n.published, metric(t, n.page, "edge_learned_total"), n.Log())
		}
		lost += strings.Count(n.Log(), "connection to the broker lost")
		all += n.published
	}
	newest := awaitNewest(t, nodes)
	merges := 0
	for _, n := range nodes {
		merges += n.check(newest)
	}
	if lost == 0 || kills < 2 {
		t.Errorf("%d servers were killed, %d connections were lost: nothing disturbed the fleet", kills, lost)
	}
	t.Logf("%v, %d servers killed, %d connections lost; %d messages, each learnt once; %d merges", length, kills, lost, all, merges)
}

// clustered is a daemon of a fleet on a cluster.
type clustered struct {
	*harness.Daemon
	t                         *testing.T
	name, config, store, page string
	sent                      chan error
	published                 int // to be read after sent
}

func startClustered(t *testing.T, cluster *brokertest.Cluster, number int) *clustered {
	t.Helper()
	n := &clustered{
		t: t, name: fmt.Sprint("node", number), store: filepath.Join(t.TempDir(), "edge.db"), page: brokertest.FreeAddress(t), sent: make(chan error, 1),
	}
	n.config = harness.WriteFile(t, n.name+".yaml", fmt.Sprintf(`
node: %[1]s
mqtt: {servers: ["%[2]s"], max_reconnect_interval: 1s}
streams: {waveform: {topics: [sensors/%[1]s], features: [%[3]s]}}
models:
  waveform:
    streams: [waveform]
    inducing: 8
    window: 60
    horizons: [inf, 100]
    classes: {names: ["0", "1", "2"]}
    batch: {max_size: 16, max_wait: 0s}
    fleet: {concept: wave, every: 20, interval: 1s, merge_every: 2s}
store: {path: "%[4]s", journal_flush: 5ms, checkpoint: {every: 0s, samples: 1000000, size: 200MiB}}
http: {listen: "%[5]s"}
`, n.name, strings.Join(cluster.URLs(number), `", "`), strings.Join(new(dataset.Waveform).Features(), ", "), n.store, n.page))
	n.Daemon = harness.Start(t, n.config)
	return n
}

// publish publishes some 20 rows a second until stop is closed.
func (n *clustered) publish(servers []string, stop chan struct{}) error {
	cfg := mqtt.DefaultConfig()
	cfg.Servers = servers
	pub, err := broker.NewPublisher(n.t.Context(), cfg, 1, nil, nil, func() {})
	if err != nil {
		return err
	}
	defer pub.Close()
	var (
		p    replay.Player
		row  dataset.Row
		rows = dataset.NewWaveform(n.seed())
	)
	for {
		select {
		case <-stop:
			return pub.Drain(n.t.Context())
		case <-n.t.Context().Done():
			return n.t.Context().Err()
		case <-time.After(50 * time.Millisecond):
		}
		rows.Next(&row)
		if err := pub.Publish(n.t.Context(), "sensors/"+n.name, p.AppendSample(nil, fmt.Sprint(n.published+1), row.X, row.Label)); err != nil {
			return err
		}
		n.published++
	}
}

func (n *clustered) seed() uint64 { return uint64(n.name[len(n.name)-1]) }

// view returns the daemon's part in the fleet.
func (n *clustered) view() (v member.View) {
	n.t.Helper()
	answer, err := http.Get("http://" + n.page + "/api/v1/models/waveform/fleet")
	if err != nil {
		n.t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&v); err != nil {
		n.t.Fatal(err)
	}
	return v
}

// awaitNewest waits until each daemon knows what each other has published last, and
// returns these versions.
func awaitNewest(t *testing.T, nodes []*clustered) map[string]fleet.Version {
	t.Helper()
	newest := map[string]fleet.Version{}
	missing := ""
	if !brokertest.Eventually(func() bool {
		missing = ""
		for _, n := range nodes {
			v := n.view()
			if newest[n.name] = (fleet.Version{Epoch: v.Epoch, Sequence: v.Sequence}); !v.Kept || v.Sequence == 0 {
				missing += fmt.Sprintf("the message of %s did not come back: %+v\n", n.name, v)
			}
		}
		for _, n := range nodes {
			v := n.view()
			known := 0
			for _, m := range v.Members {
				if newest[m.Name] == (fleet.Version{Epoch: m.Epoch, Sequence: m.Sequence}) && (m.Taken || m.Refused != "") {
					known++
				}
			}
			if known < len(nodes)-1 {
				missing += fmt.Sprintf("%s: %+v\n", n.name, v.Members)
			}
		}
		time.Sleep(time.Second / 2)
		return missing == ""
	}) {
		t.Fatalf("of %+v:\n%s", newest, missing)
	}
	return newest
}

// check stops the daemon, and compares its journal with the published rows, with the
// merged versions, and with its state. It returns the number of merges.
func (n *clustered) check(newest map[string]fleet.Version) (merges int) {
	n.t.Helper()
	final := n.Stop()
	var row dataset.Row
	rows, count := dataset.NewWaveform(n.seed()), map[string]int{}
	for range n.published {
		rows.Next(&row)
		count[fmt.Sprint(row.X, row.Label)]++
	}
	truth := harness.NewTruth(n.t, n.config).Learner
	last := &fleet.Merge{}
	for _, r := range journalOf(n.t, n.store, "waveform") {
		switch r.Kind {
		case online.Observe:
			count[fmt.Sprint(r.X, r.Label)]--
		case online.Merge:
			var err error
			if last, err = fleet.DecodeMerge(r.State); err != nil {
				n.t.Fatal(err)
			}
			merges++
		}
		if out := truth.Add(&r.Event); out.Refused != nil {
			n.t.Fatal(out.Refused)
		}
	}
	for row, left := range count {
		if left != 0 {
			n.t.Errorf("%s: the row %s was learnt %d times too few", n.name, row, left)
		}
	}
	for name, version := range newest {
		found := name == n.name
		for _, m := range last.Members {
			found = found || m.Name == name && !version.Newer(m.Version)
		}
		if !found {
			n.t.Errorf("%s: the last merge is of %+v, %s has published %+v", n.name, last.Members, name, version)
		}
	}
	if got, want := final.Get("digest").String(), truth.Digest(); got != want {
		n.t.Errorf("%s: the digest is %s, that of a learner of its journal %s", n.name, got, want)
	}
	return merges
}
