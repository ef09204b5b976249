package bounds

import (
	"net/netip"
	"testing"
)

func TestRequests(t *testing.T) {
	a, b, c := netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.2/32"), netip.MustParsePrefix("10.0.0.3/32")
	r := Requests{Max: 3, Each: 2}
	var last func()
	for i, step := range []struct {
		from netip.Prefix
		want bool
	}{{a, true}, {a, true}, {a, false}, {b, true}, {c, false}} {
		release, ok := r.Acquire(step.from)
		if ok != step.want {
			t.Errorf("step %d: granted %v, want %v", i, ok, step.want)
		}
		if ok {
			last = release
		}
	}
	last()
	if _, ok := r.Acquire(c); !ok {
		t.Error("a turn that was given back is not there")
	}
	if len(r.taken) != 2 {
		t.Errorf("%d addresses are remembered, want 2", len(r.taken))
	}
}
