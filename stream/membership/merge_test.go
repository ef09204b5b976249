package membership

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"edge/online/fleet"
)

// A newcomer merges the same members again when its warm-up is over, and when it has labels enough: they
// can test the members then. Alone it has no reason to.
func TestEndOfTheWarmUp(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", 0, plain)
	alone := w.start("alone", 0, func(c *Config) { c.Concept = "other" })
	newcomer := w.start("n", 0, plain)
	a.labels = 200
	w.pass(time.Minute)
	equal(t, "merges in the warm-up", newcomer.merges, []string{"a200"})
	newcomer.labels, alone.labels = 20, 60
	w.pass(3 * time.Minute)
	equal(t, "merges within merge_every", len(newcomer.merges), 1)
	w.pass(2 * time.Minute)
	equal(t, "merges afterwards", newcomer.merges, []string{"a200", "a200"})
	equal(t, "merges alone", len(alone.merges), 0)
	w.pass(time.Hour)
	equal(t, "merges in an hour", len(newcomer.merges), 2)
	newcomer.labels = 50
	w.pass(2 * time.Second)
	equal(t, "merges with labels enough", newcomer.merges, []string{"a200", "a200", "a200"})
	w.pass(time.Hour)
	equal(t, "merges in another hour", len(newcomer.merges), 3)
}

// A fleet that starts: a sum of few members is replaced soon by one of twice as many, and one of
// most of them after merge_every.
func TestSumOfFew(t *testing.T) {
	w := newWorld(t)
	own := w.start("own", 0, plain)
	own.labels = 200
	w.pass(10 * time.Second)
	for i, members := range []int{1, 1, 2, 3} {
		for j := range members {
			w.put(fmt.Sprintf("m%d%d", i, j), 100)
		}
		w.pass(keptWithin + 2*time.Second)
	}
	var sizes []int
	for _, names := range own.merges {
		sizes = append(sizes, len(strings.Fields(names)))
	}
	equal(t, "members of the merges", sizes, []int{1, 2, 4})
	w.pass(5 * time.Minute)
	equal(t, "merges after merge_every", len(own.merges), 4)
	equal(t, "members of the last one", len(strings.Fields(own.merges[3])), 7)
}

// Why a member is left out tells of all that may be the cause: its header has no names of features
// and no units.
func TestExplain(t *testing.T) {
	for reason, parts := range map[fleet.Reason][]string{
		fleet.OtherInputs: {"number", "name", "order", "signals"}, fleet.Misleading: {"labels were random", "other units"},
	} {
		for _, part := range parts {
			if text := explain(fleet.Member{Refused: reason}); !strings.Contains(text, part) {
				t.Errorf("%s: %q does not speak of %s", reason, text, part)
			}
		}
	}
}
