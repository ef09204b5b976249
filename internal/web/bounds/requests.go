package bounds

import (
	"net/netip"
	"sync"
)

// Requests bounds the requests in progress. The zero value with bounds is ready to use.
type Requests struct {
	Max, Each int // in total, from one address

	mu    sync.Mutex
	n     int
	taken map[netip.Prefix]int
}

// Acquire begins a request, which release ends. It reports false at a bound.
func (r *Requests) Acquire(from netip.Prefix) (release func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n >= r.Max || r.taken[from] >= r.Each {
		return nil, false
	}
	if r.taken == nil {
		r.taken = map[netip.Prefix]int{}
	}
	r.n++
	r.taken[from]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.n--
		if r.taken[from]--; r.taken[from] == 0 {
			delete(r.taken, from)
		}
	}, true
}
