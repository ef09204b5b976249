//go:build slow

package e2e

import (
	"strings"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/test/harness"
)

// TestFleetBrokers: a broker that restarts without its retained messages gets them again,
// and one that drops large messages without a word gets parts.
func TestFleetBrokers(t *testing.T) {
	data := harness.WaveformFile(t, 300)
	first, second := splitFile(t, data, 150)
	brokertest.ForEach(t, func(t *testing.T, b *brokertest.Broker) {
		one, two := startFleetNode(t, b, "one", "member"), startFleetNode(t, b, "two", "member")
		one.learn(first)
		two.learn(second)
		one.awaitMerge(1)
		two.awaitMerge(1)
		b.Restart(t)
		for _, name := range []string{"one", "two"} {
			if _, ok := brokertest.Await(t, b, "edge/fleet/wave/"+name, func(payload string) bool { return strings.HasPrefix(payload, "EFC") }); !ok {
				t.Errorf("%s does not publish again", name)
			}
		}
		one.learn(second)
		two.awaitMerge(1)
	})
	t.Run("limited", func(t *testing.T) {
		limited := func(t *testing.T, addr string) func() {
			return brokertest.MosquittoWith(t, addr, "message_size_limit 5000\n")
		}
		b := brokertest.New(t, limited)
		one, two := startFleetNode(t, b, "one", "member"), startFleetNode(t, b, "two", "follower")
		one.learn(first)
		two.awaitMerge(1)
		if !strings.Contains(one.Log(), "fleet: fleet_not_kept") {
			t.Error("nothing says that the broker drops messages")
		}
		if kept := brokertest.Retained(t, b.URL(), "edge/fleet/wave/one"); !strings.HasPrefix(kept, "EFP1") {
			t.Errorf("the broker keeps %.4q, not a list of parts", kept)
		}
	})
}
