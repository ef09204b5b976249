package stream

import (
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/online"
	"edge/online/fleet"
	"edge/stream/membership"
	"edge/stream/mqtt"
)

// A node that ends after a second without a message publishes what it has learnt, although
// it has not waited for its own message of before as long as others do. After its next
// start that message is found.
func TestShortLivedNode(t *testing.T) {
	in("", t, func(t *testing.T) {
		s := newFleetSim(t, 1)
		n := s.add("a", membership.RoleMember)
		for epoch := range uint64(3) {
			for range 64 { // four minibatches
				n.learn("a", "b")
			}
			s.pass(2*time.Second, nil)
			n.end(true)
			c, err := fleet.Decode(s.kept["edge/fleet/c/a"])
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

// A model whose configuration names no fleet any more, and one that is rolled back to a state
// of then, answers without it. Its journal holds the end, once.
func TestFleetOff(t *testing.T) {
	in("", t, func(t *testing.T) {
		s := newFleetSim(t, 1)
		n, other := s.add("a", membership.RoleMember), s.add("b", membership.RoleMember)
		s.pass(3*time.Minute, func() {
			n.learn("a", "b")
			other.learn("a", "b")
		})
		n.end(true)
		joined, err := n.loop.Learner().AppendBinary(nil)
		if err != nil || n.loop.Posterior().Fleet == nil {
			t.Fatalf("no fleet to leave: %v", err)
		}
		n.role = ""
		n.start()
		answersAlone := func(when string) {
			t.Helper()
			s.pass(2*time.Second, nil)
			n.send(1, 0, "")
			s.pass(2*time.Second, nil)
			if n.loop.Posterior().Fleet != nil || n.answer == "" || gjson.Get(n.answer, "fleet").Exists() {
				t.Errorf("%s: the answer is %s", when, n.answer)
			}
		}
		answersAlone("after the start")
		n.node.commit(n.node.models[0], "rollback", func(c *committer) {
			c.group.record(n.node.models[0], online.Event{Kind: online.Replace, State: joined})
		}, func() {})
		answersAlone("after a rollback")
		n.end(true)
		records := len(n.journal.records())
		n.start()
		answersAlone("after another start")
		n.end(true)
		if more := len(n.journal.records()) - records; more != 0 {
			t.Errorf("another start has journalled %d records", more)
		}
		replayed, _ := n.recover()
		if got, want := replayed.Digest(), n.loop.Learner().Digest(); got != want {
			t.Errorf("the digest of the journal is %s, that of the loop %s", got, want)
		}
		other.end(true)
	})
}

// A reload that brings the fleet back, after one that took it away, begins another epoch.
func TestEpochAfterOff(t *testing.T) {
	in("", t, func(t *testing.T) {
		s := newFleetSim(t, 1)
		n := s.add("a", membership.RoleMember)
		s.pass(2*time.Minute, func() { n.learn("a", "b") })
		n.end(true)
		before, _ := n.node.Fleet("bearing")
		cfg, m := testConfig()
		cfg.Node, m.Model, m.Batch = "a", n.loop, simLearner().Batch
		node := n.node
		for _, m.Fleet = range []membership.Config{{}, n.node.models[0].Fleet} {
			node = newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: n.journal, After: node})
			node.Inherit()
			node.committer.group.reset()
			node.committer.resume()
		}
		again := node.fleets.members[0]
		again.Connected(time.Now())
		if got := again.Leave(time.Now().Add(time.Minute)); before.Epoch == 0 || got != before.Epoch+1 {
			t.Errorf("epoch %d, before %d", got, before.Epoch)
		}
	})
}

// A model whose configuration names another fleet, by a reload or a restart, does not answer by
// the sums of the former one. Those of the same fleet stay while the broker may have lost its messages.
func TestAnotherFleet(t *testing.T) {
	in("", t, func(t *testing.T) {
		s := newFleetSim(t, 1)
		n, other := s.add("a", membership.RoleMember), s.add("b", membership.RoleMember)
		s.pass(3*time.Minute, func() {
			n.learn("a", "b")
			other.learn("a", "b")
		})
		n.end(true)
		other.end(true)
		cfg, m := testConfig()
		cfg.Node, cfg.MQTT.PersistentSession, m.Model, m.Batch, m.Fleet = "a", false, n.loop, simLearner().Batch, n.node.models[0].Fleet
		known := []string{"edge/a/bearing/label/#", "edge/fleet/c/+"}
		for name, tc := range map[string]struct {
			concept string
			after   *Node
			known   []string
			ends    bool
		}{
			"reload":                {"d", n.node, known, true},
			"restart":               {"d", nil, known, true},
			"restart, not known":    {"d", nil, nil, false},
			"reload, the same one":  {"c", n.node, known, false},
			"restart, the same one": {"c", nil, known, false},
		} {
			m.Fleet.Concept = tc.concept
			node := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal(), After: tc.after, Subscriptions: &fakeMemory{filters: tc.known}})
			member, now, ends := node.fleets.members[0], time.Now(), false
			if tc.after != nil {
				node.fleets.inherit(tc.after.fleets)
			}
			for member.Connected(now); !ends && time.Since(now) < time.Minute; time.Sleep(time.Second) {
				todo := member.Step(time.Now(), membership.Learnt{Ready: true})
				member.EpochDurable(todo.Epoch)
				ends = todo.Merge != nil && len(todo.Merge.Members()) == 0
			}
			if ends != tc.ends {
				t.Errorf("%s: the sums end: %t, want %t", name, ends, tc.ends)
			}
		}
	})
}

// A topic of the fleet that names no member is refused as such, and goes to no stream.
func TestFleetTopicOfNobody(t *testing.T) {
	in("", t, func(t *testing.T) {
		s := newFleetSim(t, 1)
		n := s.add("a", membership.RoleMember)
		for topic, want := range map[string]bool{"edge/fleet/c/Bad Name": true, "edge/fleet/c/b/x": true, "edge/fleet/cc/b": false, "edge/fleet/c": false} {
			if got := n.node.fleets.aside()(&mqtt.Message{Topic: topic, From: n.conn}); got != want {
				t.Errorf("%s: taken %t, want %t", topic, got, want)
			}
		}
		s.pass(time.Second, nil)
		if v, _ := n.node.Fleet("bearing"); v.Refused[membership.BadName] != 2 {
			t.Errorf("refused: %v", v.Refused)
		}
		n.end(true)
	})
}

// The information of a model's labels is their number times their mean log loss, without
// that of the minibatch that is filling.
func TestLearntBy(t *testing.T) {
	s := &online.Status{Learned: 7, WarmedUp: true}
	s.Scores.N, s.Scores.NLL, s.OpenNLL = 9, 0.25, 0.25
	if got, want := learntBy(s), (membership.Learnt{Labels: 7, Nats: 2, Ready: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
