package stream

import (
	"math/rand/v2"
	"testing"
	"time"

	"edge/online"
	core "edge/online/fleet"
	"edge/stream/fleet"
)

// A node that ends after a second without a message publishes what it has learnt, although
// it has not waited for its own message of before as long as others do. After its next
// start that message is found.
func TestShortLivedNode(t *testing.T) {
	in("", t, func(t *testing.T) {
		s := &fleetSim{t: t, rng: rand.New(rand.NewPCG(1, 3)), kept: map[string][]byte{}}
		n := s.add("a", fleet.RoleMember)
		for epoch := range uint64(3) {
			for range 64 { // four minibatches
				n.learn("a", "b")
			}
			s.pass(2*time.Second, nil)
			n.end(true)
			c, err := core.Decode(s.kept["edge/fleet/c/a"])
			if err != nil {
				t.Fatalf("start %d: the broker keeps nothing: %v", epoch+1, err)
			}
			if c.Epoch != epoch+1 || c.Sequence != 1 || c.N != 64*c.Epoch || n.journal.mark("bearing")>>markEpoch != c.Epoch {
				t.Errorf("start %d: the broker keeps version %v with %d labels, the journal has the mark %x", epoch+1, c.Version, c.N, n.journal.mark("bearing"))
			}
			n.start()
		}
		clear(s.kept)
		n.end(true) // at once: what the broker keeps is not known
		if len(s.kept) > 0 {
			t.Error("a node that ends at once publishes")
		}
	})
}

// The information of a model's labels is their number times their mean log loss, without
// that of the minibatch that is filling.
func TestLearntBy(t *testing.T) {
	s := &online.Status{Learned: 7, WarmedUp: true}
	s.Scores.N, s.Scores.NLL, s.OpenNLL = 9, 0.25, 0.25
	if got, want := learntBy(s), (fleet.Learnt{Labels: 7, Nats: 2, Ready: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
