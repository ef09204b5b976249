//go:build slow

package torture

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/dataset"
	"edge/internal/replay"
	"edge/online"
	"edge/online/fleet"
	"edge/stream/membership"
	"edge/stream/mqtt"
	"edge/test/files"
	"edge/test/harness"
)

// TestFleetOnCluster lets four daemons learn as one on a cluster of three servers (NATS, EMQX), of
// which one after the other is killed and started again: for EDGE_CLUSTER seconds (default
// 30), one in each minute, or two in all. Every message that a daemon has
// acknowledged is learnt, once, and no other waits for its acknowledgement; those that the
// cluster has confirmed and does not send are counted. In the end each daemon has merged the newest contribution of each other,
// and its state is that of a learner that was fed its journal.
func TestFleetOnCluster(t *testing.T) {
	for name, start := range brokertest.Clusters {
		t.Run(name, func(t *testing.T) { fleetOn(t, start(t)) })
	}
}

func fleetOn(t *testing.T, cluster *brokertest.Cluster) {
	length := time.Duration(harness.Number(t, "EDGE_CLUSTER", 30)) * time.Second
	period := min(length/2, time.Minute)
	nodes := make([]*clustered, 4)
	stop := make(chan struct{})
	for i := range nodes {
		nodes[i] = startClustered(t, cluster.Addrs(), i)
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
	for _, n := range nodes {
		n.end()
	}
	newest := awaitNewest(t, nodes, func(i int) []string { return cluster.URLs(i + 1) })
	lost, all, merges, unsent := 0, 0, 0, 0
	for _, n := range nodes {
		m, u := n.check(newest)
		lost += strings.Count(n.Log(), "connection to the broker lost")
		all, merges, unsent = all+n.published, merges+m, unsent+u
	}
	if lost == 0 || kills < 2 {
		t.Errorf("%d servers were killed, %d connections were lost: nothing disturbed the fleet", kills, lost)
	}
	t.Logf("%v, %d servers killed, %d connections lost; %d messages, %d of them confirmed by the cluster and not sent, the others learnt once; %d merges", length, kills, lost, all, unsent, merges)
}

// minibatch is the size of the daemons' minibatches.
const minibatch = 16

// clustered is a daemon of a fleet on a cluster, or on a broker that comes and goes.
type clustered struct {
	*harness.Daemon
	t                         *testing.T
	name, config, store, page string
	taps                      []*harness.Tap // one for each server
	rows                      *dataset.Waveform
	sent                      chan error
	pause                     time.Duration // between two rows
	published                 int           // to be read after sent
}

// startClustered starts a daemon that connects to the servers at some addresses, first to the one of
// its number.
func startClustered(t *testing.T, addrs []string, number int) *clustered {
	t.Helper()
	n := &clustered{
		t: t, name: fmt.Sprint("node", number), store: filepath.Join(t.TempDir(), "edge.db"), page: brokertest.FreeAddress(t), sent: make(chan error, 1), pause: 50 * time.Millisecond,
	}
	var servers []string
	for i := range addrs {
		n.taps = append(n.taps, harness.NewTap(t, addrs[(number+i)%len(addrs)]))
		n.taps[i].Record()
		servers = append(servers, n.taps[i].URL())
	}
	n.rows = dataset.NewWaveform(n.seed())
	n.config = files.Write(t, n.name+".yaml", fmt.Sprintf(`
node: %[1]s
log: {level: debug}
mqtt: {servers: ["%[2]s"], max_reconnect_interval: 1s}
streams: {waveform: {topics: [sensors/%[1]s], features: [%[3]s]}}
models:
  waveform:
    streams: [waveform]
    inducing: 8
    window: 60
    horizons: [inf, 100]
    classes: {names: ["0", "1", "2"]}
    batch: {max_size: %[6]d, max_wait: 0s}
    fleet: {concept: wave, every: 20, interval: 1s, merge_every: 2s}
store: {path: "%[4]s", journal_flush: 5ms, checkpoint: {every: 0s, samples: 1000000, size: 200MiB}}
http: {listen: "%[5]s"}
`, n.name, strings.Join(servers, `", "`), strings.Join(new(dataset.Waveform).Features(), ", "), n.store, n.page, minibatch))
	n.Daemon = harness.Start(t, n.config)
	return n
}

// publish publishes a row after each pause until stop is closed.
func (n *clustered) publish(servers []string, stop chan struct{}) error {
	cfg := mqtt.DefaultConfig()
	cfg.Servers = servers
	pub, err := broker.NewPublisher(n.t.Context(), cfg, 1, broker.Listener{})
	if err != nil {
		return err
	}
	defer pub.Close()
	var (
		p   replay.Player
		row dataset.Row
	)
	for {
		select {
		case <-stop:
			return pub.Drain(n.t.Context())
		case <-n.t.Context().Done():
			return n.t.Context().Err()
		case <-time.After(n.pause):
		}
		n.rows.Next(&row)
		if err := pub.Publish(n.t.Context(), "sensors/"+n.name, p.Sample(fmt.Sprint(n.published+1), row.X, row.Label)); err != nil {
			return err
		}
		n.published++
	}
}

func (n *clustered) seed() uint64 { return uint64(n.name[len(n.name)-1]) }

// end waits for the end of the publisher, and until the daemon is at rest.
func (n *clustered) end() {
	n.t.Helper()
	if err := <-n.sent; err != nil {
		n.t.Fatal(err)
	}
	n.rest()
}

// rest waits until the daemon has learnt all messages, but for an open minibatch, or nothing
// for half a minute: the cluster sends a message again that is not acknowledged within five seconds.
func (n *clustered) rest() {
	n.t.Helper()
	for last, since := -1, time.Now(); time.Since(since) < 30*time.Second; time.Sleep(100 * time.Millisecond) {
		learnt := metric(n.t, n.page, "edge_learned_samples")
		if learnt > n.published-minibatch {
			break
		}
		if learnt != last {
			last, since = learnt, time.Now()
		}
	}
	if !brokertest.Eventually(func() bool { return metric(n.t, n.page, "edge_unacked_messages") == 0 }) {
		n.t.Errorf("%s does not acknowledge all messages:\n%s", n.name, n.Log())
	}
}

// view returns the daemon's part in the fleet.
func (n *clustered) view() (v membership.View) {
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
// returns these versions. A server that was killed may lack a retained message of the others
// for good, until a newer one replaces it; node i therefore publishes more rows to servers(i)
// while one lacks.
func awaitNewest(t *testing.T, nodes []*clustered, servers func(i int) []string) map[string]fleet.Version {
	t.Helper()
	const rounds = 6
	var newest map[string]fleet.Version
	missing := ""
	for round := range rounds {
		for end := time.Now().Add(brokertest.Patience / rounds); time.Now().Before(end); time.Sleep(time.Second / 2) {
			if newest, missing = lacking(nodes); missing == "" {
				return newest
			}
		}
		t.Logf("round %d: of %+v:\n%s", round, newest, missing)
		for i, n := range nodes {
			stop := make(chan struct{})
			time.AfterFunc(2*time.Second, func() { close(stop) }) // 40 rows, two contributions
			go func() { n.sent <- n.publish(servers(i), stop) }()
		}
		for _, n := range nodes {
			n.end()
		}
	}
	t.Fatalf("of %+v:\n%s", newest, missing)
	return nil
}

// lacking returns the latest version of each daemon, and a text of those that did not come back
// and of the daemons that do not know the latest of each other.
func lacking(nodes []*clustered) (newest map[string]fleet.Version, missing string) {
	newest = map[string]fleet.Version{}
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
			if newest[m.Name] == (fleet.Version{Epoch: m.Epoch, Sequence: m.Sequence}) && !m.Waiting {
				known++
			}
		}
		if known < len(nodes)-1 {
			missing += fmt.Sprintf("%s: %+v\n", n.name, v.Members)
		}
	}
	return newest, missing
}

// check stops the daemon, and compares its journal with the published rows, with the
// merged versions, and with its state. It returns the number of merges, and of the messages
// that the cluster does not send.
func (n *clustered) check(newest map[string]fleet.Version) (merges, unsent int) {
	n.t.Helper()
	final := n.Stop()
	var row dataset.Row
	rows, number := dataset.NewWaveform(n.seed()), map[string]int{} // 1, 2, 3, … by row
	for i := range n.published {
		rows.Next(&row)
		number[fmt.Sprint(row.X, row.Label)] = i + 1
	}
	learnt := map[int]int{}
	truth := harness.NewTruth(n.t, n.config).Learner
	last := &fleet.Merge{}
	for _, r := range journalOf(n.t, n.store, "waveform") {
		switch r.Kind {
		case online.Observe:
			learnt[number[fmt.Sprint(r.X, r.Label)]]++
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
	for i := range n.published + 1 {
		acknowledged := slices.ContainsFunc(n.taps, func(tap *harness.Tap) bool { return tap.WasAcknowledged(i) })
		switch times := learnt[i]; {
		case i > 0 && !acknowledged && times == 0:
			unsent++
			n.t.Logf("%s: message %d was confirmed, and is not sent", n.name, i)
		case times > 1 || i > 0 && times == 0 || i == 0 && times > 0: // 0: no row
			n.t.Errorf("%s: message %d was learnt %d times", n.name, i, times)
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
	return merges, unsent
}
