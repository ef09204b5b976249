package web

import (
	"maps"
	"testing"
)

func TestHTTPStats(t *testing.T) {
	s := newHTTPStats()
	s.Connected(2)
	s.Connected(-1)
	s.refuse(refusedBusy)
	open, refused := s.snapshot()
	if want := map[string]uint64{refusedBusy: 1}; open != 1 || !maps.Equal(nonzero(refused), want) {
		t.Errorf("%d open, %v", open, refused)
	}
}

func nonzero(counts map[string]uint64) map[string]uint64 {
	maps.DeleteFunc(counts, func(_ string, n uint64) bool { return n == 0 })
	return counts
}
