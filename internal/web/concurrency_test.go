package web

import (
	"net/netip"
	"testing"
)

func TestTurns(t *testing.T) {
	a, b, c := netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.2/32"), netip.MustParsePrefix("10.0.0.3/32")
	concurrency := concurrency{max: 3, each: 2}
	var last func()
	for i, step := range []struct {
		from netip.Prefix
		want bool
	}{{a, true}, {a, true}, {a, false}, {b, true}, {c, false}} {
		release, ok := concurrency.acquire(step.from)
		if ok != step.want {
			t.Errorf("step %d: granted %v, want %v", i, ok, step.want)
		}
		if ok {
			last = release
		}
	}
	last()
	if _, ok := concurrency.acquire(c); !ok {
		t.Error("a turn that was given back is not there")
	}
	if len(concurrency.taken) != 2 {
		t.Errorf("%d addresses are remembered, want 2", len(concurrency.taken))
	}
}
