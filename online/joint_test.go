package online

import (
	"bytes"
	"fmt"
	"testing"

	"edge/online/fleet"
	"edge/test/fleettest"
)

// Factors of exponents go through contribution, merge and state; a newcomer begins with them
// when its warm-up ends, and they end with the fleet.
func TestExponentsAreExchanged(t *testing.T) {
	cfg, all := forestFleetConfig(), []string{"c0", "c1", "c2", "c3"}
	set := fleetOf(t, cfg, 2, all...)
	publish := func(l *Learner, name string, sequence uint64) *fleet.Contribution {
		c, err := fleet.Decode(fleettest.Encode(t, contribution(t, l, name, sequence)))
		if err != nil {
			t.Fatal(err)
		}
		set.Put(c)
		return c
	}
	var members []*Learner
	for i := range 2 {
		l := taught(t, cfg, uint64(10+i), 300, all...)
		if m := merged(t, l, set); i == 0 && m.Exponents != nil {
			t.Error("exponents in a first merge")
		}
		teach(l, uint64(20+i), 100, all...)
		if c := publish(l, fmt.Sprint("m", i), 2); c.Exponents() == nil {
			t.Fatal("a contribution without exponents")
		}
		members = append(members, l)
	}
	l := members[0]
	set.Remove("m0")
	before := l.view.Pool.Stack.Plain.Exponents[0]
	if m := merged(t, l, set); m.Exponents == nil || l.view.Pool.Stack.Plain.Exponents[0] == before {
		t.Errorf("no exponents in a merge, or no change by them: %v", m.Exponents)
	}
	teach(l, 30, 40, all...)
	again, err := Restore(cfg, stateOf(l))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []*Learner{l, again} {
		teach(l, 31, 60, all...)
		merged(t, l, set)
		teach(l, 32, 40, all...)
	}
	if !bytes.Equal(stateOf(l), stateOf(again)) {
		t.Error("a restored learner continues to another state")
	}
	newcomer := taught(t, cfg, 3, 20, all...)
	merged(t, newcomer, set)
	late := taught(t, cfg, 3, 20, all...)
	without := set.Get("m1")
	without.SetExponents(nil)
	merged(t, late, set)
	for _, l := range []*Learner{newcomer, late} {
		teach(l, 4, 300, all...)
	}
	if !newcomer.WarmedUp() || newcomer.view.Pool.Stack.Plain.Weight == late.view.Pool.Stack.Plain.Weight {
		t.Error("a newcomer does not begin with the exponents of the fleet")
	}
	set.Remove("m1")
	merged(t, l, set)
	if l.mix.OwnFactors() != nil {
		t.Error("exponents are taught without a fleet")
	}
}
