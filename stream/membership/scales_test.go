package membership

import (
	"strings"
	"testing"
	"time"

	"edge/online/fleet"
)

// The event comes when the other scale has been better by three standard errors in five
// merges running, once, and again only after it was not.
func TestScaleEvent(t *testing.T) {
	w := newWorld(t)
	n := w.start("a", 1, plain)
	said := func() (times int) {
		for _, e := range n.events {
			if strings.HasPrefix(e, "fleet_scale ") && strings.Contains(e, "set fleet.scale to own") {
				times++
			}
		}
		return times
	}
	merge := func(members int, other float64) {
		n.Merged(w.now.Add(time.Minute), &fleet.Merge{Comparison: fleet.Comparison{Members: members, Used: 1, Other: other}})
	}
	if n.View(w.now, Model{}).Scales != nil {
		t.Error("there are scales before a comparison")
	}
	for range 4 {
		merge(3, 4.5)
	}
	merge(3, 3.9) // better by less
	for range 2 {
		merge(1, 4.5)
	}
	merge(0, 9) // not compared
	for range 2 {
		merge(3, 4.5)
	}
	equal(t, "events after four merges running", said(), 0)
	merge(3, 4)
	equal(t, "events after five", said(), 1)
	for range 9 {
		merge(3, 8)
	}
	equal(t, "events after fourteen", said(), 1)
	equal(t, "scales", n.View(w.now, Model{}).Scales, map[string]float64{ScaleShared: 1, ScaleOwn: 8})
	merge(3, 1)
	for range 5 {
		merge(3, 8)
	}
	equal(t, "events after another five", said(), 2)
	cfg := *n.Config()
	cfg.Scale = ScaleOwn
	n.Continue(cfg, n.event)
	if n.View(w.now, Model{}).Scales != nil {
		t.Error("the figures of another scale are still there")
	}
}
