package stream

import (
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/stream/membership"
)

// The sets of a follower, which has no labels, hold the most probable class at least: a part of
// them would be empty, since the coverage is below the probability of the class.
func TestSetsOfFollower(t *testing.T) {
	in("", t, func(t *testing.T) {
		s := newFleetSim(t, 1)
		one, follower := s.add("one", membership.RoleMember), s.add("two", membership.RoleFollower)
		defer one.end(true)
		defer follower.end(true)
		s.pass(6*time.Minute, func() { one.learn("a", "b") })
		s.pass(90*time.Second, nil)
		for i := range 100 {
			follower.send(1.2+0.01*float64(i), 0, "")
			s.pass(time.Second, nil)
			if got := gjson.Get(follower.answer, "set"); got.Get("0").Str != "a" {
				t.Fatalf("the follower has answered sample %d by %s", i, follower.answer)
			}
		}
	})
}
