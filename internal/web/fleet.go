package web

import (
	"net/http"
	"slices"

	"edge/online/fleet"
	"edge/stream/field"
	"edge/stream/membership"
)

// fleetView is the answer to /api/v1/models/{model}/fleet.
type fleetView struct {
	V int `json:"v"`
	membership.View
}

// fleet answers with a model's part in a fleet.
func (s *Server) fleet(w http.ResponseWriter, served *Model) {
	v, ok := s.monitor.deployment().Node.Fleet(served.Name)
	if !ok {
		refuseRequest(w, http.StatusNotFound, "the model is in no fleet: its configuration has no fleet.concept")
		return
	}
	reply(w, http.StatusOK, fleetView{1, v})
}

// inFleet reads a family of the models that are in a fleet. As those of metrics.go, this function and
// the next one are not inlined.
//
//go:noinline
func inFleet(read func(v *membership.View, model string, to *values)) reader {
	return eachModelTo(func(m *modelScrape, to *values) {
		if m.fleet != nil {
			read(m.fleet, m.Name, to)
		}
	})
}

// oneOfFleet reads a family of one value for each of them.
//
//go:noinline
func oneOfFleet(value func(v *membership.View) float64) reader {
	return inFleet(func(v *membership.View, model string, to *values) { to.add(value(v), model) })
}

// fleetMetrics are the metrics of the models' parts in fleets.
func fleetMetrics() []metric {
	return []metric{
		{"edge_fleet_state", "State in the fleet: 0 off, 1 alone, 2 gathering, 3 newcomer, 4 member, 5 isolated, 6 follower.", kindGauge, byModel,
			oneOfFleet(func(v *membership.View) float64 { return float64(slices.Index(membership.States(), v.State)) })},
		{"edge_fleet_members", "Other members whose contribution is known.", kindGauge, byModel, oneOfFleet(func(v *membership.View) float64 { return float64(len(v.Members)) })},
		{"edge_fleet_weight", "Weight of the fleet in the model's answers, 0 to 1.", kindGauge, byModel, oneOfFleet(func(v *membership.View) float64 { return v.Weight })},
		{"edge_fleet_merges_total", "Merges of the members' contributions.", kindCounter, byModel, oneOfFleet(func(v *membership.View) float64 { return float64(v.Merges) })},
		{"edge_fleet_unheard", "1 while the others do not have the model's contribution: another process publishes under the node's name, or the broker does not keep it.", kindGauge, byModel,
			oneOfFleet(func(v *membership.View) float64 { return oneIf(v.Stopped != "" || v.Lost) })},
		{"edge_fleet_missed_total", "Contributions that the broker sent only when it was asked for them again.", kindCounter, byModel, oneOfFleet(func(v *membership.View) float64 { return float64(v.Missed) })},
		{"edge_fleet_unfactored_total", "Sums of contributions that were not positive definite: the own labels answer for their class.", kindCounter, byModel,
			eachModelTo(func(m *modelScrape, to *values) {
				if m.fleet != nil {
					to.add(float64(m.status.Unfactored), m.Name)
				}
			})},
		{"edge_fleet_refused_total", "Contributions that were refused on arrival or left out of a merge.", kindCounter, labelled("model", "reason"),
			inFleet(func(v *membership.View, model string, to *values) {
				for _, reason := range field.Names(v.Refused) {
					to.add(float64(v.Refused[fleet.Reason(reason)]), model, reason)
				}
			})},
		{"edge_fleet_bytes_total", "Bytes of contributions: received, and published.", kindCounter, labelled("model", "direction"),
			inFleet(func(v *membership.View, model string, to *values) {
				to.add(float64(v.Received), model, "in")
				to.add(float64(v.Sent), model, "out")
			})},
		{"edge_fleet_age_seconds", "Since the newest contribution of a member.", kindGauge, labelled("model", "member"),
			inFleet(func(v *membership.View, model string, to *values) {
				for _, m := range v.Members {
					to.add(m.Age, model, m.Name)
				}
			})},
		{"edge_fleet_trust", "Mean gain in log probability of the own labels by a member's contribution, in standard errors, at the latest merge.", kindGauge, labelled("model", "member"),
			inFleet(func(v *membership.View, model string, to *values) {
				for _, m := range v.Members {
					if m.Trust != nil {
						to.add(*m.Trust, model, m.Name)
					}
				}
			})},
		{"edge_fleet_basis", "Number of the common basis of the model, 0 for none.", kindGauge, byModel, oneOfFleet(func(v *membership.View) float64 {
			if v.Basis == nil {
				return 0
			}
			return float64(v.Basis.Number)
		})},
		{"edge_fleet_averaged", "Members whose parameters the latest merge averaged, the own ones included.", kindGauge, byModel, oneOfFleet(func(v *membership.View) float64 {
			if v.Basis == nil {
				return 0
			}
			return float64(v.Basis.Averaged)
		})},
		{"edge_fleet_scale_trust", "Mean trust of up to four members if fleet.scale is shared, and if it is own, at the latest merge.", kindGauge, labelled("model", "scale"),
			inFleet(func(v *membership.View, model string, to *values) {
				for _, scale := range field.Names(v.Scales) {
					to.add(v.Scales[scale], model, scale)
				}
			})},
	}
}
