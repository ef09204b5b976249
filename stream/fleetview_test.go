package stream

import (
	"encoding/json"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"edge/online/fleet"
	"edge/stream/membership"
)

// The answer to a request has the numbers of a member as they are.
func TestFleetAnswersExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFleetSim(t, 1)
		one, two := s.add("one", membership.RoleMember), s.add("two", membership.RoleMember)
		s.pass(2*time.Minute, func() { two.learn("a", "b") })
		c, err := fleet.Decode(s.kept["edge/fleet/c/two"])
		if err != nil {
			t.Fatal(err)
		}
		c.Member, c.Sequence, c.N = "three", math.MaxUint64-1, math.MaxUint64
		data, err := c.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		one.deliver("edge/fleet/c/three", data, true)
		s.pass(time.Second, nil)
		one.request("fleet", "")
		s.pass(time.Second, nil)
		var got, want membership.View
		if err := json.Unmarshal([]byte(gjson.Get(one.responses["fleet"], "data").Raw), &got); err != nil {
			t.Fatalf("%v: %s", err, one.responses["fleet"])
		}
		if want, _ = one.node.Fleet("bearing"); len(got.Members) != 2 || got.Members[0].Sequence != want.Members[0].Sequence || got.Members[0].N != math.MaxUint64 {
			t.Errorf("the answer has %+v, want %+v", got.Members, want.Members)
		}
		one.end(true)
		two.end(true)
	})
}
