package predict

import (
	"encoding/json"
	"strings"
	"testing"

	"edge/internal/dataset"
	"edge/online/conformal"
)

// An empty prediction set is printed as one; without prediction sets there is none.
func TestAnswerSet(t *testing.T) {
	for name, tc := range map[string]struct {
		uncertainty conformal.Uncertainty
		want        string // in the answer
	}{
		"empty":   {conformal.Uncertainty{Coverage: 0.9, Threshold: -1}, `"set":[],`},
		"full":    {conformal.Uncertainty{Coverage: 0.9, Threshold: 1}, `"set":["b","a"],`},
		"no sets": {conformal.Uncertainty{Threshold: 1}, `"novelty":0.5,"abstain"`},
	} {
		row := dataset.Row{Number: 1, X: []float64{1}}
		text, err := json.Marshal(newAnswer(&row, []string{"a", "b"}, []float64{0.25, 0.75}, 0.5, tc.uncertainty))
		if err != nil || !strings.Contains(string(text), tc.want) {
			t.Errorf("%s: %s, %v; want %s", name, text, err, tc.want)
		}
	}
}
