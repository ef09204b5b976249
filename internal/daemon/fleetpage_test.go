package daemon

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/config"
	"edge/online/fleet"
	"edge/stream/membership"
	"edge/test/fleettest"
)

// A follower has the classes of its answers, which are those of the members, no confusion, and no sample
// that waits for a label.
func TestFollowerOnThePage(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	node := func(name string, role membership.Role) *served {
		return serve(t, b.URL(), func(c *config.Config) {
			m := c.Models["wear"]
			m.Fleet.Concept, m.Fleet.Role, m.Fleet.Interval, m.Learner.Warmup = "mill", role, time.Second, 20
			c.Node, c.Models["wear"], c.Metrics.Every = name, m, time.Second
		}).ready()
	}
	node("one", membership.RoleMember)
	for i := range 64 {
		publish(t, b.URL(), "plant/p/pump", fmt.Sprintf(`{"a":%d,"b":%d,"label":%q}`, i%2, i%7, []string{"worn", "ok"}[i%2]))
	}
	follower := node("two", membership.RoleFollower)
	follower.await("the follower has no classes", "/api/v1/models/wear", func(_ int, a string) bool {
		return gjson.Get(a, "classes").Raw == `["ok","worn"]` && !gjson.Get(a, "confusion").Exists()
	})
	if m, ok := brokertest.Await(t, b, "edge/two/wear/metrics", func(m string) bool { return gjson.Get(m, "classes").Raw == `["ok","worn"]` }); !ok {
		t.Errorf("the follower's metrics are %s", m)
	}
	publish(t, b.URL(), "plant/p/pump", `{"a":1,"b":2}`)
	follower.await("the sample waits for a label", "/api/v1/models/wear", func(_ int, a string) bool {
		return gjson.Get(a, "samples.0.waits").Raw == "false"
	})
}

// contributionOf returns the encoded contribution of a member whose model has other features.
func contributionOf(t *testing.T, member string) string {
	t.Helper()
	return string(fleettest.Encode(t, fleettest.Contribution(t, fleet.Header{
		Member: member, Version: fleet.Version{Epoch: 1, Sequence: 2}, Features: 7, N: 90, Classes: []string{"ok", "worn"}, Counts: []uint64{60, 30},
	}, 1)))
}

// What the page asks for has the members of a model's fleet; without a fleet it has nothing of it.
func TestFleetOnThePage(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	s := serve(t, b.URL(), func(c *config.Config) {
		m := c.Models["wear"]
		m.Fleet.Concept = "mill"
		c.Models["wear"] = m
	}).ready()
	if code, a := s.get("/api/v1/models/wear"); gjson.Get(a, "fleet.state").String() != "alone" || gjson.Get(a, "fleet.members").Raw != "[]" {
		t.Errorf("at the start: %d %s", code, gjson.Get(a, "fleet"))
	}
	publish(t, b.URL(), "edge/fleet/mill/pi9", contributionOf(t, "pi9"))
	publish(t, b.URL(), "edge/fleet/mill/pi8", contributionOf(t, "pi9"))
	s.await("the contributions did not come", "/api/v1/models/wear", func(_ int, a string) bool {
		f := gjson.Get(a, "fleet")
		return f.Get("members.#.name").Raw == `["pi9"]` && f.Get("members.0.n").Int() == 90 && f.Get("refused.name").Int() == 1
	})
	alone := serve(t, b.URL(), func(c *config.Config) { c.Node = "alone" }).ready()
	if _, a := alone.get("/api/v1/models/wear"); gjson.Get(a, "fleet").Exists() {
		t.Errorf("a fleet of a model without one: %s", gjson.Get(a, "fleet"))
	}
}
