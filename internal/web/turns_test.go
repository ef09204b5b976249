package web

import (
	"net/netip"
	"testing"
)

func TestTurns(t *testing.T) {
	a, b, c := netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.2/32"), netip.MustParsePrefix("10.0.0.3/32")
	turns := turns{max: 3, each: 2}
	var last func()
	for i, step := range []struct {
		from netip.Prefix
		want bool
	}{{a, true}, {a, true}, {a, false}, {b, true}, {c, false}} {
		giveBack, ok := turns.take(step.from)
		if ok != step.want {
			t.Errorf("step %d: granted %v, want %v", i, ok, step.want)
		}
		if ok {
			last = giveBack
		}
	}
	last()
	if _, ok := turns.take(c); !ok {
		t.Error("a turn that was given back is not there")
	}
	if len(turns.taken) != 2 {
		t.Errorf("%d addresses are remembered, want 2", len(turns.taken))
	}
}
