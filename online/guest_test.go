package online

import (
	"errors"
	"slices"
	"testing"
)

// A class that only members know is reported, and with unseen: mix it is answered. After a few own
// labels it is still reported, and the own answer is that of own labels.
func TestUnseenClasses(t *testing.T) {
	cfg := fleetConfig()
	all := []string{"c0", "c1", "c2", "c3"}
	set := fleetOf(t, cfg, 2, all...)
	x := circle[3]
	l := taught(t, cfg, 1, 144, all[:3]...)
	merged(t, l, set)
	p, _ := l.Predict(x[:])
	r, ok := l.view.Report(&l.ws)
	if !ok || r.Class != "c3" || r.Confidence < 0.8 || r.Unseen != r.Confidence || r.Members != 2 {
		t.Errorf("report %+v", r)
	}
	if len(p.Classes) != 3 {
		t.Errorf("report: the model's classes are %q", p.Classes)
	}
	threeLabels := func(l *Learner) Prediction {
		for range 3 {
			l.Add(&Event{Kind: Observe, X: []float64{x[0] + 0.1, x[1]}, Label: "c3"})
		}
		l.Add(&Event{Kind: Boundary})
		p, _ := l.Predict(x[:])
		return p
	}
	few := threeLabels(l)
	if len(l.fleet.foreign) != 0 {
		t.Errorf("after three labels foreign %q", l.fleet.foreign)
	}
	if _, ok := l.view.Report(&l.ws); !ok {
		t.Error("no report any more")
	}
	cfg.Fleet.Unseen = MixUnseen
	mixed := taught(t, cfg, 1, 144, all[:3]...)
	merged(t, mixed, set)
	if p, _ := mixed.Predict(x[:]); p.Class != "c3" || !slices.Contains(p.Classes, "c3") {
		t.Errorf("mix: the answer is %s of %q", p.Class, p.Classes)
	}
	if got := correctly(t, mixed, all[:3]...); got < 0.7 {
		t.Errorf("mix: right for %g of the own samples", got)
	}
	if n := testing.AllocsPerRun(20, func() { mixed.probs, _, _ = mixed.view.PredictTo(mixed.probs, x[:], &mixed.ws) }); n > 0 {
		t.Errorf("mix: %v allocations for a prediction", n)
	}
	if answer := threeLabels(mixed); answer.Class != "c3" || answer.Probs[3] < few.Probs[3]+0.02 {
		t.Errorf("after three labels c3 has %g, and %g by the answer of the fleet", few.Probs[3], answer.Probs[3])
	}
}

// Sums for unseen classes of which no posterior can be made are refused, and the others of the
// merge are taken.
func TestUnseenSumsAreRefused(t *testing.T) {
	cfg, all := fleetConfig(), []string{"c0", "c1", "c2", "c3"}
	cfg.Fleet.Unseen = MixUnseen
	l := taught(t, cfg, 1, 144, all[:3]...)
	m, err := l.Merge("own", fleetOf(t, cfg, 2, all...))
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Unseen.Classes {
		m.Unseen.Classes[i] += " of others"
	}
	ev := MergeEvent(m)
	if out := l.Add(&ev); !errors.Is(out.Refused, ErrShape) || out.Change != NoticeMerged || len(l.fleet.own) == 0 || l.fleet.unseen != nil {
		t.Errorf("refused %v, change %q, the fleet has %d horizons", out.Refused, out.Change, len(l.fleet.own))
	}
	restored, err := Restore(cfg, stateOf(l))
	if err != nil || restored.Digest() != l.Digest() {
		t.Errorf("restored: %v", err)
	}
}

// Own labels learn the exponent of the answer for classes that only members know, late labels as
// well. It goes on after a restart and a further merge.
func TestUnseenExponent(t *testing.T) {
	cfg, all := fleetConfig(), []string{"c0", "c1", "c2", "c3"}
	cfg.Fleet.Unseen = MixUnseen
	set := fleetOf(t, cfg, 2, all...)
	l := taught(t, cfg, 1, 144, all[:3]...)
	merged(t, l, set)
	exponent := func() float64 { return l.view.Fleet.Exponent }
	if got := exponent(); got != 1 {
		t.Errorf("the exponent begins with %g", got)
	}
	teach(l, 2, 40, all[:3]...)
	first := exponent()
	if first == 1 {
		t.Error("labels have not taught the exponent")
	}
	if got := l.Posterior().Fleet.Exponent; got != first {
		t.Errorf("a snapshot has the exponent %g in place of %g", got, first)
	}
	for _, ev := range samples(3, 40, all[:3]...) {
		p, _ := l.Predict(ev.X)
		ev.Probs, ev.Epoch = slices.Clone(p.Probs), l.classes.epoch
		l.Add(&ev)
	}
	late := exponent()
	if late == first {
		t.Error("late labels have not taught the exponent")
	}
	l = again(t, l)
	if merged(t, l, set); exponent() != late {
		t.Errorf("the exponent is %g after a restart and a merge, before %g", exponent(), late)
	}
}
