package daemon

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/config"
)

// The API and the metrics describe a model's part in a fleet; the API needs the password
// like the rest.
func TestFleetAPI(t *testing.T) {
	b := brokertest.New(t, brokertest.Embedded)
	s := serve(t, b.URL(), func(c *config.Config) {
		m := c.Models["wear"]
		m.Fleet.Concept = "pumps"
		c.Models["wear"] = m
	})
	s.ready()
	code, a := s.get("/api/v1/models/wear/fleet")
	if got := gjson.Parse(a); code != http.StatusOK || got.Get("concept").Str != "pumps" || got.Get("state").Str != "alone" || !got.Get("members").IsArray() {
		t.Errorf("%d %s", code, a)
	}
	if _, metrics := s.get("/metrics"); !regexp.MustCompile(`(?ms)^edge_fleet_state\{model="wear"\} 1$.*^edge_fleet_unheard\{model="wear"\} 0$`).MatchString(metrics) {
		t.Errorf("the metrics have no state of the fleet:\n%s", metrics)
	}
	if code, _ := s.get("/api/v1/models/none/fleet"); code != http.StatusNotFound {
		t.Errorf("a model that does not exist: %d", code)
	}
	alone := serve(t, b.URL(), nil)
	if code, _ := alone.get("/api/v1/models/wear/fleet"); code != http.StatusNotFound {
		t.Errorf("a model without a fleet: %d", code)
	}
}
