package membership

import (
	"math"
	"testing"
	"time"
)

// A contribution is due by the number of labels or by their information, and not before
// the interval.
func TestDue(t *testing.T) {
	for name, test := range map[string]struct {
		information float64
		after       time.Duration
		labels      uint64    // since the publication of 200 labels and 40 nats
		nats        []float64 // totals of the steps since then
		want        bool
	}{
		"nothing new":                       {5, time.Hour, 0, []float64{40}, false},
		"99 labels":                         {5, time.Minute, 99, []float64{44.9}, false},
		"100 labels":                        {5, time.Minute, 100, []float64{41}, true},
		"information":                       {5, time.Minute, 3, []float64{45}, true},
		"just below":                        {5, time.Hour, 3, []float64{44.99}, false},
		"another threshold":                 {2.5, time.Minute, 1, []float64{42.5}, true},
		"within the interval":               {5, 59 * time.Second, 99, []float64{500}, false},
		"off":                               {0, time.Hour, 99, []float64{500}, false},
		"off, 100 labels":                   {0, time.Minute, 100, []float64{500}, true},
		"corrections of known labels":       {5, time.Hour, 0, []float64{60}, false},
		"a correction, then information":    {5, time.Hour, 9, []float64{43, 41, 45}, true},
		"the total fell":                    {5, time.Hour, 9, []float64{30, 34.9}, false},
		"the total fell, then information":  {5, time.Hour, 9, []float64{30, 35}, true},
		"another model":                     {5, time.Hour, 9, []float64{0, 5}, true},
		"undefined scores, then new ones":   {5, time.Hour, 9, []float64{math.NaN(), 40, 44}, false},
		"undefined scores, and information": {5, time.Hour, 9, []float64{math.NaN(), 40, 45}, true},
	} {
		w := newWorld(t)
		a := w.start("a", 0, func(c *Config) { c.Information = test.information })
		a.labels, a.nats = 200, 40
		w.pass(10 * time.Second)
		if a.published != 1 {
			t.Fatalf("%s: %d publications at the begin", name, a.published)
		}
		labels := a.labels + test.labels
		for _, nats := range test.nats {
			a.info.observe(nats)
		}
		if got := a.due(a.own.at.Add(test.after), labels); got != test.want {
			t.Errorf("%s: due is %v", name, got)
		}
	}
}

// Each publication begins the sum again, and the first total after a start is that of
// the publication that the broker has.
func TestInformation(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", 0, plain)
	b := w.start("b", 0, plain)
	a.labels, a.nats, b.labels = 200, 90, 300
	w.pass(10 * time.Second)
	equal(t, "published", a.published, 1)
	for range 10 {
		a.labels, a.nats = a.labels+1, a.nats+1
		w.pass(time.Minute)
	}
	equal(t, "published after 10 labels of a nat, one a minute", a.published, 1+3)
	equal(t, "merged once in five minutes", b.merges, []string{"a200", "a203", "a209"})
	a.disconnect()
	w.nodes = []*node{b}
	a = w.start("a", 1, plain)
	a.labels, a.nats = 210, 100
	w.pass(time.Hour)
	equal(t, "published after a start", a.published, 0)
	a.labels, a.nats = 211, 102.5
	w.pass(time.Minute)
	equal(t, "published after a label of 2.5 nats", a.published, 1)
}
