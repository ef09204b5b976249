package online

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"edge/online/fleet"
)

// mistaught returns a learner of random labels.
func mistaught(t *testing.T, cfg Config, seed uint64, n int, classes ...string) *Learner {
	t.Helper()
	l, err := NewLearner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	for range n {
		ev := ring(rng, classes)
		ev.Label = classes[rng.IntN(len(classes))]
		l.Add(&ev)
	}
	return l
}

// shifted returns a learner that takes each class for the next one.
func shifted(t *testing.T, cfg Config, seed uint64, n int, classes ...string) *Learner {
	t.Helper()
	l, err := NewLearner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range samples(seed, n, classes...) {
		ev.Label = classes[(slices.Index(classes, ev.Label)+1)%len(classes)]
		l.Add(&ev)
	}
	return l
}

// A newcomer, and a follower, leave out a member that the others contradict, as long as
// there are three; not members that know other classes, and none where nobody learns.
func TestNewcomerLeavesOutALiar(t *testing.T) {
	cfg, all := fleetConfig(), []string{"c0", "c1", "c2", "c3"}
	good := func(seed uint64) *Learner { return taught(t, cfg, seed, 300, all...) }
	bad := func(seed uint64) *Learner { return mistaught(t, cfg, seed, 300, all...) }
	for name, test := range map[string]struct {
		members []*Learner
		refused string // one letter for each member
	}{
		"one liar":         {[]*Learner{good(1), good(2), bad(3), good(4)}, "..x."},
		"one of three":     {[]*Learner{good(1), bad(2), good(3)}, ".x."},
		"one of two":       {[]*Learner{good(1), bad(2)}, ".."},
		"all good":         {[]*Learner{good(1), good(2), good(3), good(4)}, "...."},
		"all bad":          {[]*Learner{bad(1), bad(2), bad(3), bad(4)}, "...."},
		"other classes":    {[]*Learner{taught(t, cfg, 1, 300, all[:2]...), taught(t, cfg, 2, 300, all[1:3]...), taught(t, cfg, 3, 300, all[2:]...), good(4)}, "...."},
		"few labels":       {[]*Learner{good(1), good(2), taught(t, cfg, 3, 110, all...), good(4)}, "...."},
		"a liar with most": {[]*Learner{good(1), good(2), good(3), mistaught(t, cfg, 4, 500, all...)}, "...x"},
	} {
		set := fleet.NewSet(0)
		for i, l := range test.members {
			set.Put(contribution(t, l, fmt.Sprint("m", i), 1))
		}
		newcomer := taught(t, cfg, 9, 0)
		m, err := newcomer.Merge("own", set)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, v := range m.Members {
			got += map[fleet.Reason]string{fleet.None: ".", fleet.Contradicted: "x"}[v.Refused]
		}
		if got != test.refused {
			t.Errorf("%s: refused %q, want %q: %+v", name, got, test.refused, m.Members)
		}
		if _, followed, err := Follow(cfg, "own", set); err != nil || followed.Taken() != m.Taken() {
			t.Errorf("%s: a follower: %v", name, err)
		}
		trusting := cfg
		trusting.Fleet.Trust = math.Inf(-1)
		if m, err := taught(t, trusting, 9, 0).Merge("own", set); err != nil || m.Taken() != len(test.members) {
			t.Errorf("%s: %d members are taken without the test", name, m.Taken())
		}
	}
}

// Fifty labels of a warm-up test the forests of members: one that takes each class for the next one is
// left out, where there are too few members to be compared.
func TestWarmUpTestsForests(t *testing.T) {
	cfg, all := forestFleetConfig(), []string{"c0", "c1", "c2", "c3"}
	cfg.Warmup = 200
	set := fleetOf(t, cfg, 1, all...)
	set.Put(contribution(t, shifted(t, cfg, 20, 300, all...), "x", 1))
	for labels, want := range map[int]string{0: "[m0  x ]", 32: "[m0  x ]", 64: "[m0  x forest]"} {
		m, err := taught(t, cfg, 1, labels, all...).Merge("own", set)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range m.Members {
			got = append(got, v.Name+" "+string(v.Refused))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%d labels: %q, want %s", labels, got, want)
		}
	}
}

// A member whose labels are random is found by its forest where the labels are so noisy that
// its sites contradict them little, and so is none of the others.
func TestForestsOfNoisyLabels(t *testing.T) {
	cfg := fleetConfig()
	cfg.Experts.Forest = FullForest
	set := fleet.NewSet(0)
	for i, right := range []float64{0.5, 0.5, 0, 0.5} {
		set.Put(contribution(t, noisyRing(t, cfg, 800+uint64(i), right), fmt.Sprint("m", i), 1))
	}
	m, err := noisyRing(t, cfg, 9000, 0.5).Merge("own", set)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range m.Members {
		if (v.Refused != fleet.None) != (i == 2) {
			t.Errorf("%s: refused for %q, trust %.1f", v.Name, v.Refused, v.Trust)
		}
	}
	if v := m.Members[2]; v.Refused != fleet.Misleading || v.Trust < fleet.DefaultTrust {
		t.Errorf("random labels: refused for %q, trust %.1f", v.Refused, v.Trust)
	}
}

// A few random labels go with those of a receiver by chance, where samples of a class lie together. Beside
// a good member nearly all such members are found, and no good one is refused.
func TestFewRandomLabelsAreFound(t *testing.T) {
	cfg, all := fleetConfig(), []string{"c0", "c1"}
	cfg.Experts.Forest = FullForest
	good, found := 0, 0
	const fleets = 60
	for seed := range uint64(fleets) {
		set := fleet.NewSet(0)
		set.Put(contribution(t, taught(t, cfg, 100+seed, 100, all...), "good", 1))
		set.Put(contribution(t, mistaught(t, cfg, 1000+seed, 80, all...), "random", 1))
		m, err := taught(t, cfg, 2000+seed, 100, all...).Merge("own", set)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range m.Members {
			if v.Name == "good" && v.Refused != fleet.None {
				good++
			} else if v.Name == "random" && v.Refused != fleet.None {
				found++
			}
		}
	}
	t.Logf("random labels refused in %d of %d fleets, good ones in %d", found, fleets, good)
	if found < fleets*19/20 || good > 1 {
		t.Errorf("random labels refused in %d of %d fleets, good ones in %d", found, fleets, good)
	}
}

// Labels so noisy that a good forest answers worse than their frequencies, since it is sure of what it
// has learnt by chance, refuse few good members: their sites go with the labels. Members of random
// labels are found as before.
func TestNoisyLabelsRefuseFew(t *testing.T) {
	cfg := fleetConfig()
	cfg.Experts.Forest = FullForest
	var good, bad int
	for fleets := range uint64(10) {
		set := fleet.NewSet(0)
		for i, right := range []float64{0.5, 0.5, 0, 0.5} {
			set.Put(contribution(t, noisyRing(t, cfg, 100*fleets+uint64(i), right), fmt.Sprint("m", i), 1))
		}
		for seed := range uint64(4) {
			m, err := noisyRing(t, cfg, 1000*(fleets+1)+seed, 0.5).Merge("own", set)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range m.Members {
				switch {
				case v.Refused == fleet.None:
				case i == 2:
					bad++
				default:
					good++
				}
			}
		}
	}
	if good > 18 || bad < 26 { // 13 and 32
		t.Errorf("of 120 good members %d are refused, of 40 bad ones %d", good, bad)
	}
}

// noisyRing returns a learner of two classes of which this part of the labels is right, and the others
// are random.
func noisyRing(t *testing.T, cfg Config, seed uint64, right float64) *Learner {
	t.Helper()
	classes := []string{"c0", "c1"}
	l, err := NewLearner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	for range 300 {
		ev := ring(rng, classes)
		if rng.Float64() > right {
			ev.Label = classes[rng.IntN(len(classes))]
		}
		l.Add(&ev)
	}
	return l
}
