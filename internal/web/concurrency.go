package web

import (
	"net/netip"
	"sync"
)

// concurrency bounds the requests in progress, in total and for each address. Its
// zero value with bounds is ready to use.
type concurrency struct {
	max, each int

	mu    sync.Mutex
	n     int
	taken map[netip.Prefix]int
}

// acquire begins a request, which release ends. It reports false at a bound.
func (c *concurrency) acquire(from netip.Prefix) (release func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n >= c.max || c.taken[from] >= c.each {
		return nil, false
	}
	if c.taken == nil {
		c.taken = map[netip.Prefix]int{}
	}
	c.n++
	c.taken[from]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.n--
		if c.taken[from]--; c.taken[from] == 0 {
			delete(c.taken, from)
		}
	}, true
}
