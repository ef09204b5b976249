package demo

import (
	"fmt"
	"io"

	"edge/internal/terminal"
	"edge/online/fleet"
	"edge/stream/membership"
)

// fleetReport is the summary of a demo of a fleet. All log losses but the newcomer's are
// those of the same rows, which no node has learnt.
type fleetReport struct {
	Dataset   string  `json:"dataset"`
	Tests     int     `json:"test_rows"`
	Alone     float64 `json:"alone_nll"`      // mean of the members that are there from the start, without the fleet
	Fleet     float64 `json:"fleet_nll"`      // of the same members, in the fleet
	OneDevice float64 `json:"one_device_nll"` // of a device that has learnt the rows of all honest nodes
	// Newcomer has the scores of the first rows of the node that comes late, each before it
	// was learnt.
	Newcomer newcomer   `json:"newcomer"`
	Refused  refusals   `json:"refused"`
	Late     int        `json:"late_exchanges"` // that had not ended when the next rows came
	Nodes    []nodeLine `json:"nodes"`
}

type newcomer struct {
	Rows  int     `json:"rows"`
	Alone float64 `json:"alone_nll"`
	Fleet float64 `json:"fleet_nll"`
}

// refusals counts the contributions of the others that the honest members have judged after
// each round, and those of them that they refused.
type refusals struct {
	Good   int `json:"good"`
	GoodOf int `json:"good_of"`
	Bad    int `json:"bad"`
	BadOf  int `json:"bad_of"`
}

// nodeLine describes one node.
type nodeLine struct {
	Name    string         `json:"name"`
	Role    role           `json:"role"`
	Rows    uint64         `json:"rows"`
	Alone   *float64       `json:"alone_nll"` // of its twin; null: it has none
	Fleet   *float64       `json:"fleet_nll"` // null: it is not judged
	Weight  float64        `json:"weight"`    // of the fleet in its answers
	Merges  uint64         `json:"merges"`
	Sent    uint64         `json:"sent_bytes"`
	Refused map[string]int `json:"refused"` // its contribution, by the others at the end, by reason
}

// judged counts the contributions that a member's latest merge took and refused.
func judged(v membership.View) (taken, refused int) {
	for _, m := range v.Members {
		switch {
		case m.Taken:
			taken++
		case m.Refused != fleet.None:
			refused++
		}
	}
	return taken, refused
}

// count adds the decisions of the honest members' latest merges.
func (r *refusals) count(members []*fleetNode) {
	liar := members[len(members)-1].name
	for _, n := range members {
		if n == nil || n.role == roleLiar {
			continue
		}
		v, _ := n.view()
		for _, m := range v.Members {
			refused := 0
			if m.Refused != fleet.None {
				refused = 1
			} else if !m.Taken {
				continue
			}
			if m.Name == liar {
				r.Bad, r.BadOf = r.Bad+refused, r.BadOf+1
			} else {
				r.Good, r.GoodOf = r.Good+refused, r.GoodOf+1
			}
		}
	}
}

// report returns the summary. All nodes have been judged.
func (f *fleetDemo) report() *fleetReport {
	r := &fleetReport{Dataset: f.sensors.name, Tests: len(f.tests), OneDevice: f.device.nll(), Refused: f.refused, Late: f.late}
	refused := map[string]map[string]int{}
	for _, n := range f.members {
		refused[n.name] = map[string]int{}
	}
	for _, n := range f.members {
		v, _ := n.view()
		for _, m := range v.Members {
			if m.Refused != fleet.None && n.role != roleLiar {
				refused[m.Name][string(m.Refused)]++
			}
		}
	}
	for i, n := range f.members {
		v, _ := n.view()
		line := nodeLine{Name: n.name, Role: n.role, Rows: n.sent, Weight: v.Weight, Merges: v.Merges, Sent: v.Sent, Refused: refused[n.name]}
		if n.role != roleLiar {
			alone, joint := f.alone[i].nll(), n.nll()
			line.Alone, line.Fleet = &alone, &joint
			if n.role == roleMember {
				r.Alone += alone / float64(f.Fleet-2)
				r.Fleet += joint / float64(f.Fleet-2)
			} else {
				r.Newcomer = newcomer{roundRows, f.alone[i].first, n.first}
			}
		}
		r.Nodes = append(r.Nodes, line)
	}
	return r
}

// does are the words for the roles in a fleet.
var does = map[role]string{roleMember: "from start", roleNewcomer: "joins late", roleLiar: "random labels"}

// print writes the report for people.
func (r *fleetReport) print(out io.Writer) error {
	w := terminal.Writer{To: out}
	figure := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf("%.3f", *v)
	}
	fmt.Fprintf(w, "\nlog loss of %d rows that no node has learnt (lower is better)\n", r.Tests)
	fmt.Fprintf(w, "  %-12s %-13s %6s %8s %10s %10s %10s\n", "node", "", "rows", "alone", "in fleet", "weight", "sent")
	var rows uint64
	for _, n := range r.Nodes {
		weight := fmt.Sprintf("%.0f %%", 100*n.Weight)
		if n.Role == roleLiar {
			weight = "-"
		} else {
			rows += n.Rows
		}
		fmt.Fprintf(w, "  %-12s %-13s %6d %8s %10s %10s %10s\n", n.Name, does[n.Role], n.Rows, figure(n.Alone), figure(n.Fleet), weight, terminal.Bytes(n.Sent))
	}
	fmt.Fprintf(w, "  %-12s %-13s %6s %8.3f %10.3f\n", "mean", does[roleMember], "", r.Alone, r.Fleet)
	fmt.Fprintf(w, "  %-12s %-13s %6d %8.3f\n", "one device", "", rows, r.OneDevice)
	fmt.Fprintf(w, "the first %d rows of the node that joins late, each before it was learnt: alone %.3f, in the fleet %.3f\n", r.Newcomer.Rows, r.Newcomer.Alone, r.Newcomer.Fleet)
	_, err := fmt.Fprintf(w, "refused contributions: %d of %d of the node with random labels, %d of %d of the others\n", r.Refused.Bad, r.Refused.BadOf, r.Refused.Good, r.Refused.GoodOf)
	if r.Late > 0 {
		_, err = fmt.Fprintf(w, "%d exchanges had not ended when the next rows came: this machine is busy, and the fleet's figures may be worse for it\n", r.Late)
	}
	return err
}
