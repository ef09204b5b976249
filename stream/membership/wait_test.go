package membership

import (
	"testing"
	"time"
)

// Labels that are too few for a publication wait for max_wait at most, and those that are
// less than 1 % of the published ones go on waiting.
func TestMaxWait(t *testing.T) {
	for name, test := range map[string]struct {
		wait   time.Duration
		labels uint64        // since the publication of 200
		after  time.Duration // since they came
		want   int           // publications of them
	}{
		"before":             {time.Hour, 99, 59 * time.Minute, 0},
		"then":               {time.Hour, 99, 61 * time.Minute, 1},
		"once":               {time.Hour, 99, 5 * time.Hour, 1},
		"1 %":                {time.Hour, 2, 61 * time.Minute, 1},
		"less than 1 %":      {time.Hour, 1, 5 * time.Hour, 0},
		"nothing new":        {time.Hour, 0, 5 * time.Hour, 0},
		"another wait":       {2 * time.Minute, 99, 3 * time.Minute, 1},
		"off":                {0, 99, 5 * time.Hour, 0},
		"off, enough labels": {0, 100, 2 * time.Minute, 1},
	} {
		w := newWorld(t)
		a := w.start("a", 0, func(c *Config) { c.MaxWait = test.wait })
		a.labels = 200
		w.pass(10 * time.Second)
		equal(t, name+": published at the begin", a.published, 1)
		w.pass(3 * time.Hour)
		a.labels += test.labels
		w.pass(test.after)
		equal(t, name+": published", a.published-1, test.want)
	}
}

// A label that comes while others wait does not make them wait longer, and one that comes
// after a publication waits anew.
func TestOldestLabelWaits(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", 0, plain)
	a.labels = 200
	w.pass(10 * time.Second)
	for range 3 {
		a.labels += 4
		w.pass(25 * time.Minute)
	}
	equal(t, "published after 75 minutes", a.published, 2)
	a.labels += 4
	w.pass(50 * time.Minute)
	equal(t, "published 50 minutes later", a.published, 2)
	w.pass(11 * time.Minute)
	equal(t, "published 61 minutes later", a.published, 3)
}
