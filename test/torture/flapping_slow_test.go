//go:build slow

package torture

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"edge/internal/broker/brokertest"
	"edge/test/harness"
)

// TestFleetOnFlappingBroker lets three daemons learn as one while their mosquitto, which keeps its
// sessions, stops and starts again for EDGE_FLAPPING seconds (default 12), each 5 to 20 seconds
// where that is a minute or more. What the broker has confirmed is learnt, once; each daemon has merged the
// newest contribution of each other in the end, and its state is that of a learner that was fed
// its journal.
func TestFleetOnFlappingBroker(t *testing.T) {
	length := time.Duration(harness.Number(t, "EDGE_FLAPPING", 12)) * time.Second
	seed := harness.Number(t, "EDGE_TORTURE_SEED", rand.Uint64())
	t.Logf("%v, EDGE_TORTURE_SEED=%d", length, seed)
	rng, least := rand.New(rand.NewPCG(seed, 0)), min(length/12, 5*time.Second)
	b := brokertest.New(t, brokertest.Keeping(t.TempDir()))
	nodes := make([]*clustered, 3)
	stop := make(chan struct{})
	for i := range nodes {
		nodes[i] = startClustered(t, []string{b.Addr}, i)
	}
	for _, n := range nodes {
		if !brokertest.Eventually(n.taps[0].Subscribed) {
			t.Fatalf("%s does not subscribe:\n%s", n.name, n.Log())
		}
		n.pause = 15 * time.Millisecond
		go func() { n.sent <- n.publish([]string{b.URL()}, stop) }()
	}
	if !brokertest.Eventually(func() bool { return strings.Contains(nodes[0].Log(), `"fleet merged"`) }) {
		t.Fatalf("%s merges nothing before the broker stops:\n%s", nodes[0].name, nodes[0].Log())
	}
	stops := 0
	for began := time.Now(); time.Since(began) < length; stops++ {
		time.Sleep(least + time.Duration(rng.Int64N(int64(3*least))))
		b.Stop()
		time.Sleep(time.Duration(rng.Int64N(int64(least))))
		b.Stop = b.Start(t, b.Addr)
	}
	close(stop)
	for _, n := range nodes {
		if err := <-n.sent; err != nil {
			t.Fatal(err)
		}
		if !brokertest.Progress(n.taps[0].Acknowledged, n.published) {
			t.Fatalf("%s acknowledges %d of %d messages:\n%s", n.name, n.taps[0].Acknowledged(), n.published, n.Log())
		}
	}
	newest := awaitNewest(t, nodes, func(int) []string { return []string{b.URL()} })
	lost, all, merges, acknowledged := 0, 0, 0, 0
	for _, n := range nodes {
		m, unsent := n.check(newest)
		lost, all = lost+strings.Count(n.Log(), "connection to the broker lost"), all+n.published
		if unsent > 0 {
			t.Errorf("%s: %d messages that the broker has confirmed were not learnt", n.name, unsent)
		}
		if err := n.taps[0].Err(); err != nil {
			t.Error(err)
		}
		merges, acknowledged = merges+m, acknowledged+n.taps[0].Acks()
	}
	if lost < len(nodes)*stops {
		t.Errorf("the broker stopped %d times, %d connections were lost", stops, lost)
	}
	t.Logf("%d stops, %d connections lost; %d messages, each learnt once, %d acknowledgements; %d merges", stops, lost, all, acknowledged, merges)
}
