package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// A fleet of three: the honest ones refuse the contributions of the one that lies, and all
// are judged on the same rows as their twins.
func TestDemoOfFleet(t *testing.T) {
	t.Parallel() // most of it is waiting
	var out, errOut bytes.Buffer
	d := Config{Fleet: MinFleet, Seed: 1, Length: 1, AsJSON: true} // the least number of rounds
	if err := d.Run(t.Context(), &out, &errOut); err != nil {
		t.Fatalf("%v: %s", err, &errOut)
	}
	var r fleetReport
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	for what, nll := range map[string]float64{"alone": r.Alone, "in the fleet": r.Fleet, "of one device": r.OneDevice, "of the newcomer": r.Newcomer.Fleet} {
		if !(nll > 0.01 && nll < math.Log(4)) { // four classes
			t.Errorf("the log loss %s is %.3f", what, nll)
		}
	}
	if len(r.Nodes) != 3 || r.Tests != fleetTests || r.Newcomer.Rows != roundRows {
		t.Fatalf("the summary is %s", &out)
	}
	for i, want := range []nodeLine{{Role: roleMember, Rows: 4 * roundRows}, {Role: roleNewcomer, Rows: roundRows}, {Role: roleLiar, Rows: 4 * roundRows}} {
		got := r.Nodes[i]
		if got.Role != want.Role || got.Rows != want.Rows || (got.Alone == nil) != (want.Role == roleLiar) || got.Merges == 0 {
			t.Errorf("node %d is %+v", i+1, got)
		}
	}
	if r.Refused.Bad == 0 || r.Refused.Good > 0 {
		t.Errorf("refused are %+v", r.Refused)
	}
}

// After Ctrl-C a fleet says what is left to do, does it, and prints its report.
func TestEndOfFleet(t *testing.T) {
	t.Parallel() // most of it is waiting
	var out, errOut bytes.Buffer
	ended, end := context.WithCancel(t.Context())
	end()
	d := Config{Fleet: MinFleet, Seed: 1}
	if err := d.Run(ended, &out, &errOut); err != nil {
		t.Fatalf("%v: %s", err, &errOut)
	}
	for _, want := range []string{" s  ending: ", " node2 joins\n", "\nlog loss of 300 rows that no node has learnt", "  node1        from start   ", "  node2        joins late        48 ", "  node3        random labels ", "\nthe first 48 rows of the node that joins late, ", " of the node with random labels, "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not print %q:\n%s", want, &out)
		}
	}
}
