package web

import (
	"net/netip"
	"sync"
)

// turns bounds what is done at a time, in all and for each address. Its zero
// value with bounds is ready to use.
type turns struct {
	max, each int

	mu    sync.Mutex
	n     int
	taken map[netip.Prefix]int
}

// take takes one, to be given back, or reports that there is none.
func (t *turns) take(from netip.Prefix) (giveBack func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n >= t.max || t.taken[from] >= t.each {
		return nil, false
	}
	if t.taken == nil {
		t.taken = map[netip.Prefix]int{}
	}
	t.n++
	t.taken[from]++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.n--
		if t.taken[from]--; t.taken[from] == 0 {
			delete(t.taken, from)
		}
	}, true
}
