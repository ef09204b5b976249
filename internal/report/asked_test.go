package report

import (
	"strings"
	"testing"

	"edge/online/active"
)

func TestLabelsNeeded(t *testing.T) {
	report := func(strategy active.Strategy, budget, err, half float64) *Report {
		return &Report{Dataset: "d", Figures: Figures{Error: err}, Asked: &Asked{Strategy: strategy, Budget: budget, Labels: 100 * budget, LastHalf: HalfScore{Error: half}}}
	}
	var out strings.Builder
	if err := printNeeded(&out, []*Report{
		report(EveryLabel, 1, 0.1, 0.05),
		report(active.Margin, 0.1, 0.2, 0.04), report(active.Margin, 0.5, 0.1, 0.03), report(active.Margin, 0.7, 0.09, 0.03),
		report(active.BALD, 0.1, 0.2, 0.1),
	}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{"d margin 50 (0.5) 10 (0.1)", "d bald more more"} {
		if got := strings.Join(strings.Fields(lines[2+i]), " "); got != want {
			t.Errorf("line %d: %q, want %q", 2+i, got, want)
		}
	}
	out.Reset()
	if err := printNeeded(&out, []*Report{report(active.Margin, 0.1, 0.2, 0.1)}); err != nil || out.Len() > 0 {
		t.Errorf("without every label: %s %v", &out, err)
	}
}
