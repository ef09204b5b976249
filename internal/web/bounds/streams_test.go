package bounds

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestStreamsByAddress(t *testing.T) {
	a, b, c := netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.2/32"), netip.MustParsePrefix("10.0.0.3/32")
	v := Streams{Max: 4}
	var ended []string
	enter := func(from netip.Prefix, name string) {
		t.Helper()
		if leave, wait := v.Enter(from, 0, func() { ended = append(ended, name) }); leave == nil {
			t.Fatalf("%s has to wait %v", name, wait)
		}
	}
	enter(b, "b1")
	enter(a, "a1")
	enter(a, "a2")
	enter(a, "a3")
	enter(c, "c1") // for the oldest of a, which has most
	enter(c, "c2")
	if got := strings.Join(ended, " "); got != "a1 a2" {
		t.Errorf("ended are %s, want a1 a2", got)
	}
	if leave, wait := v.Enter(b, time.Hour, func() {}); leave != nil || wait <= 0 || wait > time.Hour {
		t.Errorf("a place is given up too early, or never: wait %v", wait)
	}
	if len(v.open) != 4 {
		t.Errorf("%d streams, want 4", len(v.open))
	}
}
