package stream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/online"
	"edge/online/fleet"
	"edge/stream/membership"
)

// learner is the configuration of the nodes' learners.
func (s *fleetSim) learner() online.Config {
	cfg := simLearner()
	cfg.Fleet.Shared = s.basis == membership.BasisShared
	return cfg
}

// Devices with a common basis crash, lose their connection, come back with an old backup,
// and the broker forgets its retained messages, at random; in between one asks for a new
// basis. When it is over, all have the same basis, and the state of each is that of its
// journal.
func TestBasisSimulation(t *testing.T) { simulateBasis(t, 1) }

// Long: one history and its checks.
func simulateBasis(t *testing.T, seeds uint64) {
	averaged := 0
	for seed := range seeds {
		in(fmt.Sprint(seed), t, func(t *testing.T) {
			s := newFleetSim(t, seed)
			s.basis = membership.BasisShared
			for i := range 2 + int(seed)%3 {
				s.add(fmt.Sprint("n", i), membership.RoleMember)
			}
			second := 0
			s.pass(14*time.Minute, func() {
				second++
				for _, n := range s.nodes {
					n.learn("a", "b")
				}
				n := s.nodes[s.rng.IntN(len(s.nodes))]
				if second == 400 && seed%2 == 0 {
					s.nodes[0].connect()
					s.nodes[0].request("fleet_rebase/bearing", `{"data":{"basis":"pooled"}}`)
				}
				s.trouble(n)
			})
			s.connect()
			s.pass(6*time.Minute, nil)
			common, err := fleet.DecodeCommon(s.kept["edge/fleet/c/basis"])
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range s.nodes {
				c, err := fleet.Decode(s.kept["edge/fleet/c/"+n.name])
				if err != nil || c.BasisEpoch != common.ID() {
					t.Errorf("%s contributes to basis %x, the broker keeps %x (%v)", n.name, c.BasisEpoch, common.ID(), err)
				}
				if v, _ := n.node.Fleet("bearing"); v.Basis == nil || v.Basis.Number != common.Number {
					t.Errorf("%s says of its basis %+v", n.name, v.Basis)
				} else if v.Basis.Averaged > 1 {
					averaged++
				}
				n.end(true)
				replayed, _ := n.recover()
				if got, want := replayed.Digest(), n.loop.Learner().Digest(); got != want {
					t.Errorf("%s: the digest of its journal is %s, its own %s", n.name, got, want)
				}
			}
		})
	}
	if averaged == 0 {
		t.Error("nobody averages its parameters")
	}
}

// The request for a new basis: who may ask, and what follows.
func TestRebaseRequest(t *testing.T) {
	in("", t, func(t *testing.T) {
		s := newFleetSim(t, 1)
		s.basis = membership.BasisShared
		one, two := s.add("one", membership.RoleMember), s.add("two", membership.RoleMember)
		ask := func(data string) gjson.Result {
			one.request("fleet_rebase/bearing", data)
			s.pass(2*time.Second, nil)
			return gjson.Parse(one.responses["fleet_rebase/bearing"])
		}
		if got := ask(`{"data":{"basis":"first"}}`); !strings.Contains(got.Get("error").Str, "warm-up") {
			t.Errorf("before the warm-up is over: %s", got)
		}
		learn := func() {
			one.learn("a", "b")
			two.learn("a", "b")
		}
		s.pass(3*time.Minute, learn)
		for data, want := range map[string]string{`{"data":{"basis":"newest"}}`: "first or pooled", `{}`: "basis"} {
			if got := ask(data); !strings.Contains(got.Get("error").Str, want) {
				t.Errorf("%s: %s", data, got)
			}
		}
		if got := ask(`{"data":{"basis":"first"}}`); got.Get("status").Str != "ok" {
			t.Errorf("first: %s", got)
		}
		s.pass(4*time.Minute, learn)
		for _, n := range s.nodes {
			if v, _ := n.node.Fleet("bearing"); v.Basis == nil || v.Basis.Number != 2 || v.Basis.Author != "one" || v.Basis.Averaged != 2 {
				t.Errorf("%s has basis %+v", n.name, v.Basis)
			}
			n.end(true)
		}
	})
}

// A new contribution takes the place of one that waits for room in the outbox, and of no
// announcement of a basis.
func TestAnnouncementWaitsOn(t *testing.T) {
	cfg := membership.Default()
	cfg.Concept = "pumps"
	m := &fleetMember{Member: membership.New(cfg, membership.Identity{Base: "edge", Node: "n1"}, func(kind, detail string) {})}
	of := func(text string, names ...string) (all []membership.Publication) {
		for _, name := range names {
			all = append(all, membership.Publication{Topic: name, Payload: []byte(text)})
		}
		return all
	}
	topics := m.Topics()
	m.waiting = of("old", topics.Part(membership.BasisName, 0), topics.Part("n1", 1), topics.Contribution("n1"), topics.Contribution(membership.BasisName))
	m.replace(of("new", topics.Part("n1", 0), topics.Contribution("n1")))
	got := ""
	for _, p := range m.waiting {
		got += fmt.Sprintf("%s %s\n", strings.TrimPrefix(p.Topic, "edge/fleet/pumps/"), p.Payload)
	}
	if want := "basis/0 old\nbasis old\nn1/0 new\nn1 new\n"; got != want {
		t.Errorf("waiting:\n%s\nwant:\n%s", got, want)
	}
}
