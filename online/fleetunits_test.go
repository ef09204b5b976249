package online

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"edge/online/fleet"
)

// teachDevice lets a learner learn samples as a device of that gain and offset measures
// them.
func teachDevice(l *Learner, seed uint64, n int, gain, offset float64, classes ...string) {
	for _, ev := range samples(seed, n, classes...) {
		for j := range ev.X {
			ev.X[j] = gain*ev.X[j] + offset*float64(j+1)
		}
		l.Add(&ev)
	}
}

// A merge in raw units notices that devices differ by gain and offset, one in standard
// units does not recommend the other.
func TestDevicesThatDifferAreNoticed(t *testing.T) {
	cfg, all := fleetConfig(), []string{"c0", "c1", "c2", "c3"}
	set := fleet.NewSet(0)
	for i := range 3 {
		l := taught(t, cfg, 0, 0)
		teachDevice(l, uint64(10+i), 300, 2, float64(i), all...)
		set.Put(contribution(t, l, fmt.Sprint("m", i), 1))
	}
	for units, better := range map[fleet.Units]bool{fleet.Raw: true, fleet.Standard: false} {
		cfg.Fleet.Units = units
		m, err := taught(t, cfg, 1, 304, all...).Merge("own", set)
		if err != nil {
			t.Fatal(err)
		}
		if c := m.Comparison; c.Members != 3 || (c.Other > c.Used) != better {
			t.Errorf("units %d: %+v", units, c)
		}
	}
}

// Devices that differ by gain and offset learn together in units of their own: a newcomer
// and a member answer as they do where all devices measure alike.
func TestDevicesThatDiffer(t *testing.T) {
	cfg, all := fleetConfig(), []string{"c0", "c1", "c2", "c3"}
	cfg.Fleet.Units = fleet.Standard
	fleetOfDevices := func(gain, offset float64) *fleet.Set {
		set := fleet.NewSet(0)
		for i := range 3 {
			l := taught(t, cfg, 0, 0)
			teachDevice(l, uint64(10+i), 300, math.Pow(gain, float64(i)), offset*float64(i), all...)
			set.Put(contribution(t, l, fmt.Sprint("m", i), 1))
		}
		return set
	}
	alike, differ := fleetOfDevices(1, 0), fleetOfDevices(5, 100)
	for _, labels := range []int{40, 144} { // a newcomer with a build, and a member
		of := func(set *fleet.Set, gain, offset float64) *Learner {
			l := taught(t, cfg, 0, 0)
			teachDevice(l, 1, labels, gain, offset, all...)
			if m := merged(t, l, set); m.Taken() == 0 {
				t.Fatalf("nobody was taken: %+v", m.Members)
			}
			teachDevice(l, 2, 16, gain, offset, all...)
			return l
		}
		want, got := of(alike, 1, 0), of(differ, 0.04, -3)
		for _, ev := range samples(9, 20, all...) {
			p, _ := want.Predict(ev.X)
			q, _ := got.Predict([]float64{0.04*ev.X[0] - 3, 0.04*ev.X[1] - 6})
			for k := range p.Probs {
				if math.Abs(p.Probs[k]-q.Probs[k]) > 1e-3 {
					t.Errorf("%d labels: probabilities %.4f, of devices that measure alike %.4f", labels, q.Probs, p.Probs)
					break
				}
			}
		}
		again, err := Restore(cfg, stateOf(got))
		if err != nil || again.Digest() != got.Digest() {
			t.Fatalf("%d labels: another state is restored: %v", labels, err)
		}
		for _, l := range []*Learner{got, again} {
			teachDevice(l, 3, 120, 0.04, -3, all...)
		}
		if got.Digest() != again.Digest() {
			t.Errorf("%d labels: the restored learner goes on to another state", labels)
		}
	}
}

// The forest of a member whose device has another gain and offset answers as that of one
// that measures alike, after a replay of the journal and after a restore as well.
func TestDevicesThatDifferShareForests(t *testing.T) {
	cfg, all := forestFleetConfig(), []string{"c0", "c1", "c2", "c3"}
	cfg.Fleet.Units = fleet.Standard
	device := func(seed uint64, n int, gain, offset float64) *Learner {
		l := taught(t, cfg, 0, 0)
		teachDevice(l, seed, n, gain, offset, all...)
		return l
	}
	const gain, offset = 0.04, -3.
	of := func(memberGain, memberOffset float64) *Learner {
		set := fleet.NewSet(0)
		set.Put(contribution(t, device(10, 300, memberGain, memberOffset), "m", 1))
		live, replayed := device(1, 144, gain, offset), device(1, 144, gain, offset)
		m, err := live.Merge("own", set)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Forests) != 1 {
			t.Fatalf("%d forests of a member", len(m.Forests))
		}
		ev := MergeEvent(m)
		live.Add(&ev)
		ev.forests = nil
		replayed.Add(&ev)
		teachDevice(live, 2, 40, gain, offset, all...)
		teachDevice(replayed, 2, 40, gain, offset, all...)
		if s := live.view.Pool.Stack.Members; s == nil || len(s.All) != 1 {
			t.Fatalf("members' forests: %+v", s)
		}
		if live.Digest() != replayed.Digest() || restored(t, cfg, live).Digest() != live.Digest() {
			t.Error("another state after a replay or a restore")
		}
		return live
	}
	want, got := of(gain, offset), of(5, 100)
	a, b := want.view.Pool.Stack.Members.All[0].Forest, got.view.Pool.Stack.Members.All[0].Forest
	differ := 0 // samples on other sides of a threshold, since thresholds are rounded in the member's unit
	for _, ev := range samples(9, 100, all...) {
		x := []float32{float32(gain*ev.X[0] + offset), float32(gain*ev.X[1] + 2*offset)}
		p, q := make([]float64, 4), make([]float64, 4)
		a.LogsTo(p, x)
		b.LogsTo(q, x)
		for k := range p {
			if math.Abs(math.Exp(p[k])-math.Exp(q[k])) > 1e-3 {
				differ++
				t.Logf("the forest answers %.4f, that of a device that measures alike %.4f", q, p)
				break
			}
		}
	}
	if differ > 2 {
		t.Errorf("%d answers of 100 differ", differ)
	}
	if !slices.Equal(a.Used, b.Used) || !slices.Equal(a.Weights, b.Weights) {
		t.Fatal("the forests have other leaves or weights")
	}
	for i, n := range a.Nodes {
		// Both are rounded by 2⁻¹² of the distance to the mean at most, of four standard deviations here.
		most := 2 * 4 * want.view.Scale.Sd[n.Feature] / (1 << 12)
		if o := b.Nodes[i]; n.Feature != o.Feature || n.Branch != o.Branch || math.Abs(float64(n.Threshold-o.Threshold)) > most {
			t.Fatalf("node %d is %+v, that of a device that measures alike %+v", i, o, n)
		}
	}
}
