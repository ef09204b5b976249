package stream

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/online"
	"edge/online/active"
	"edge/online/fleet"
	"edge/stream/membership"
	"edge/stream/mqtt"
)

// TestFleetSimulation lets devices crash, lose their connection, come back with an old
// backup, and the broker forget its retained messages, at random. When it is over, each
// has merged what the broker keeps, and the state of each is that of its journal.
//
// Long: one history and its checks.
func TestFleetSimulation(t *testing.T) {
	seeds := uint64(6)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		in(fmt.Sprint(seed), t, func(t *testing.T) {
			s := newFleetSim(t, seed)
			for i := range 2 + int(seed)%3 {
				s.add(fmt.Sprint("n", i), membership.RoleMember)
			}
			follower := s.add("f", membership.RoleFollower)
			members := s.nodes[:len(s.nodes)-1]
			crashes := 0
			s.pass(12*time.Minute, func() {
				for _, n := range members {
					n.learn("a", "b")
				}
				n := members[s.rng.IntN(len(members))]
				if s.trouble(n) {
					crashes++
				}
			})
			s.connect()
			s.pass(5*time.Minute, nil)
			if crashes == 0 {
				t.Error("nothing crashes")
			}
			versions := map[string]string{}
			for _, n := range members {
				c, err := fleet.Decode(s.kept["edge/fleet/c/"+n.name])
				if err != nil {
					t.Fatalf("the broker keeps nothing of %s: %v", n.name, err)
				}
				if n.loop.Status().Learned-c.N >= 30 {
					t.Errorf("%s has learnt %d labels, the broker keeps %d", n.name, n.loop.Status().Learned, c.N)
				}
				versions[n.name] = fmt.Sprint(n.name, c.Epoch, ".", c.Sequence)
			}
			for _, n := range members {
				others := maps.Clone(versions)
				delete(others, n.name)
				equal(t, n.name+" has merged", n.merged(), slices.Sorted(maps.Values(others)))
				n.end(true)
				replayed, _ := n.recover()
				if got, want := replayed.Digest(), n.loop.Learner().Digest(); got != want {
					t.Errorf("%s: the digest of its journal is %s, its own %s", n.name, got, want)
				}
			}
			if v, _ := follower.node.Fleet("bearing"); len(v.Members) != len(members) || v.State != membership.Follower {
				t.Errorf("the follower knows %+v", v)
			}
			if _, records := follower.journal.committed(); records > 0 {
				t.Errorf("the journal of a follower has %d records", records)
			}
			follower.end(true)
		})
	}
}

// A prediction has the fleet's answer beside the model's, an event reports a class that it
// hardly knows, and requests describe and change the fleet. A follower answers without a
// label of its own.
func TestFleetAnswers(t *testing.T) {
	in("", t, func(t *testing.T) {
		s := newFleetSim(t, 1)
		one, two, follower := s.add("one", membership.RoleMember), s.add("two", membership.RoleMember), s.add("three", membership.RoleFollower)
		s.pass(6*time.Minute, func() {
			one.learn("a", "b")
			two.learn("a", "b", "c")
			follower.learn("a")
		})
		s.pass(90*time.Second, nil)
		one.send(0, 2, "")
		follower.send(0, 2, "")
		s.pass(2*time.Second, nil)
		if got := gjson.Get(one.answer, "fleet"); got.Get("class").Str != "c" || got.Get("members").Int() != 1 {
			t.Errorf("the prediction is %s", one.answer)
		}
		if !slices.ContainsFunc(one.events, func(e string) bool { return strings.HasPrefix(e, "foreign_class c: ") }) {
			t.Errorf("the events are %q; %s", one.events, one.answer)
		}
		if got := gjson.Get(follower.answer, "class").Str; got != "c" {
			t.Errorf("the follower answers %s", follower.answer)
		}
		if st := follower.node.Stats().Models["bearing"]; st.Learned > 0 || st.Frozen == 0 || st.Learning {
			t.Errorf("the follower's counters are %+v", st)
		}
		follower.request("unfreeze", "")
		follower.request("learning/bearing", "ON")
		follower.send(0, 2, "a")
		s.pass(time.Second, nil)
		if st := follower.node.Stats().Models["bearing"]; st.Learned > 0 || st.Learning {
			t.Errorf("asked to learn, the follower has counters %+v", st)
		}
		for _, command := range []string{"unfreeze", "learning/bearing"} {
			if got := gjson.Get(follower.responses[command], "error").Str; got != "model bearing only follows its fleet: it learns with fleet.role: member" {
				t.Errorf("%s: the follower answers %q", command, follower.responses)
			}
		}
		v, ok := one.node.Fleet("bearing")
		if !ok || v.State != membership.Joined || v.Weight <= 0 || len(v.Members) != 1 || !v.Members[0].Taken || !v.Kept {
			t.Errorf("the view is %+v", v)
		}
		if _, ok := one.node.Fleet("other"); ok || !strings.Contains(fmt.Sprint(one.node.forgetMember("other", "two")), "no fleet.concept") {
			t.Error("a model that does not exist is in a fleet")
		}

		one.request("reset/bearing", "")
		s.pass(3*time.Second, nil)
		if v, _ := one.node.Fleet("bearing"); v.State != membership.Newcomer || v.MergeAge == nil || *v.MergeAge > 3 {
			t.Errorf("after a reset the view is %+v", v)
		}
		one.request("fleet", "")
		one.request("fleet_forget", `{"data":{"member":"A b"}}`)
		s.pass(time.Second, nil)
		if got := one.responses; gjson.Get(got["fleet"], "data.members.0.name").Str != "two" || gjson.Get(got["fleet_forget"], "status").Str != "error" {
			t.Errorf("the responses are %q", got)
		}

		if one.node.forgetMember("bearing", "one") == nil || one.node.forgetMember("bearing", membership.BasisName) == nil {
			t.Error("a node forgets itself, or the common basis as a member")
		}
		if err := one.node.forgetMember("bearing", "two"); err != nil {
			t.Error(err)
		}
		two.end(false)
		s.pass(2*time.Minute, nil)
		if s.kept["edge/fleet/c/two"] != nil || len(one.merged()) > 0 {
			t.Errorf("the broker keeps %d bytes, the merge has %q", len(s.kept["edge/fleet/c/two"]), one.merged())
		}
		one.end(true)
		follower.end(true)
	})
}

// A contribution that is on its way for long is neither asked for nor divided.
func TestFleetOverSlowConnection(t *testing.T) {
	in("", t, func(t *testing.T) {
		s := newFleetSim(t, 1)
		one := s.add("one", membership.RoleMember)
		one.slow = true
		published := func() bool {
			v, _ := one.node.Fleet("bearing")
			return v.Sequence > 0
		}
		for i := 0; i < 120 && !published(); i++ {
			s.pass(time.Second, func() { one.learn("a", "b") })
		}
		s.pass(25*time.Second, nil)
		one.slow = false
		s.pass(5*time.Second, nil)
		if v, _ := one.node.Fleet("bearing"); v.Sequence != 1 || !v.Kept || slices.ContainsFunc(one.events, func(e string) bool { return strings.HasPrefix(e, "fleet_not_kept") }) {
			t.Errorf("the view is %+v, the events are %q", v, one.events)
		}
		one.end(true)
	})
}

// A reload goes on with what the former node knew; one that leaves the fleet removes the
// node's message.
func TestFleetHandover(t *testing.T) {
	in("", t, func(t *testing.T) {
		s := newFleetSim(t, 1)
		one, two := s.add("one", membership.RoleMember), s.add("two", membership.RoleMember)
		s.pass(2*time.Minute, func() {
			one.learn("a", "b")
			two.learn("a", "b")
		})
		before, _ := one.node.Fleet("bearing")
		cfg, m := testConfig()
		m.Model, m.Batch = one.loop, simLearner().Batch
		m.Fleet = one.node.models[0].Fleet
		m.Fleet.Every = 1000
		cfg.Node = "one"
		again := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: one.journal, After: one.node})
		m.Fleet.Concept = ""
		one.end(false)
		again.Inherit()
		after, _ := again.Fleet("bearing")
		if after.Epoch != before.Epoch || after.Sequence != before.Sequence || len(after.Members) != 1 || after.Merges != before.Merges {
			t.Errorf("after a reload the view is %+v, before %+v", after, before)
		}
		for _, p := range drainOutbox(again.outbox) {
			if p.Topic == "edge/fleet/c/one" && len(p.Payload) == 0 {
				t.Error("a reload removes the contribution")
			}
		}
		alone := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: one.journal, After: again})
		alone.Inherit()
		removed := slices.ContainsFunc(drainOutbox(alone.outbox), func(p *mqtt.Publication) bool {
			return p.Topic == "edge/fleet/c/one" && len(p.Payload) == 0 && p.Retained
		})
		if !removed {
			t.Error("the contribution stays at the broker")
		}
		for _, role := range []membership.Role{membership.RoleFollower, membership.RoleMember} {
			m.Fleet.Concept, m.Fleet.Role = "c", role
			alone = newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: one.journal, After: alone})
			alone.Inherit()
			if got := alone.models[0].learning.Load(); got != (role == membership.RoleMember) || got == alone.models[0].expectedOff() {
				t.Errorf("a %s learns: %t", role, got)
			}
		}
		two.end(true)
	})
}

// recoveringModel is one that learns the journal of the earlier run.
type recoveringModel struct{ *fakeModel }

func (recoveringModel) Contribution(context.Context, string) (*fleet.Contribution, error) {
	return nil, online.ErrRecovering
}

func (recoveringModel) Merge(context.Context, string, *fleet.Set) (*fleet.Merge, error) {
	return nil, online.ErrRecovering
}

// Nothing is warned of while a model recovers: its merge and its contribution follow afterwards.
func TestFleetAwaitsRecovery(t *testing.T) {
	cfg, m := testConfig()
	m.Model, m.Fleet = recoveringModel{newFakeModel(2)}, membership.Default()
	m.Fleet.Concept = "c"
	var log strings.Builder
	node := newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	one := node.fleets.member(m.Name)
	node.fleets.merge(t.Context(), one, &fleet.Set{})
	node.fleets.publish(t.Context(), one)
	if log.Len() > 0 {
		t.Errorf("the log has %q", log.String())
	}
}

// Configurations that are refused.
func TestFleetConfig(t *testing.T) {
	for want, change := range map[string]func(*Config, *ModelConfig, *ModelConfig){
		"node fleet: want":                    func(c *Config, _, _ *ModelConfig) { c.Node = "fleet" },
		"model bearing has it as well":        func(_ *Config, a, b *ModelConfig) { a.Fleet.Concept, b.Fleet.Concept = "c", "c" },
		"models.bearing.fleet.information -1": func(_ *Config, a, _ *ModelConfig) { a.Fleet.Concept, a.Fleet.Information = "c", -1 },
		"models.bearing.fleet.every 0: want":  func(_ *Config, a, _ *ModelConfig) { a.Fleet.Concept, a.Fleet.Every = "c", 0 },
		"would receive the node's own output": func(c *Config, a, _ *ModelConfig) { a.Fleet.Concept = "c"; subscribe(c, "edge/fleet/c/+") },
		"models.bearing.active: a follower": func(_ *Config, a, _ *ModelConfig) {
			a.Fleet.Concept, a.Fleet.Role, a.Active = "c", "follower", active.Default()
			a.Active.Strategy = "margin"
		},
		"models.bearing.fleet.role follower: want a fleet.concept with it": func(_ *Config, a, _ *ModelConfig) { a.Fleet.Role = "follower" },
		"fleet.basis common: want own or shared":                           func(_ *Config, a, _ *ModelConfig) { a.Fleet.Concept, a.Fleet.Basis = "c", "common" },
		": want at most 256 bytes in a fleet":                              func(c *Config, a, _ *ModelConfig) { c.Node, a.Fleet.Concept = strings.Repeat("n", 257), "c" },
		"node basis: want another name":                                    func(c *Config, a, _ *ModelConfig) { c.Node, a.Fleet.Concept = "basis", "c" },
	} {
		cfg, a := testConfig()
		a.Fleet = membership.Default()
		b := a
		b.Name = "other"
		change(&cfg, &a, &b)
		if err := Check(cfg, []ModelConfig{a, b}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func subscribe(c *Config, topic string) {
	s := c.Streams["vibration"]
	s.Topics, s.TopicTemplate = []string{topic}, ""
	c.Streams["vibration"] = s
}
