package web

import (
	"encoding/json"
	"testing"

	"edge/online/score"
)

// A score is null in the API before the first judged sample.
func TestScore(t *testing.T) {
	text, err := json.Marshal([]score.Real{judged(0, 0.5), judged(1, 0.5)})
	if err != nil || string(text) != "[null,0.5]" {
		t.Errorf("%s, %v", text, err)
	}
}
