package persist

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"edge/online"
)

// TestPendingOrder adds a pending sample again, which moves it to the end, and adds
// and drops one in the same commit, which drops it.
func TestPendingOrder(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	newTruths(t, s, "m")
	key := func(k uint64) online.Pending { return online.Pending{Model: "m", Key: k, X: []float64{float64(k)}} }
	for _, c := range []*online.Commit{
		{Wait: []online.Pending{key(1), key(2), key(3)}},
		{Wait: []online.Pending{key(1)}},
		{Wait: []online.Pending{key(4)}, Forget: []online.Pending{key(4), key(2), key(77)}},
		{Forget: []online.Pending{key(77)}},
	} {
		if err := s.Commit(c); err != nil {
			t.Fatal(err)
		}
	}
	closeStore(t, s)
	s = newStore(t, path, Options{})
	r, err := s.Load("m", testShape)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]online.Pending{key(3), key(1)}, r.Pending); diff != "" {
		t.Errorf("−want +got:\n%s", diff)
	}
}
