package doctor

import (
	"testing"
	"time"

	"edge/internal/config"
	"edge/test/files"
	"edge/test/harness"
)

// A measurement removes the scratch store of a killed doctor, unless another doctor
// still writes it.
func TestEnduranceRemovesStaleFiles(t *testing.T) {
	cfg, err := config.Load(files.Write(t, "edge.yaml", "node: n\nstreams: {s: {topics: [s], features: [a]}}\nmodels: {m: {streams: [s]}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	harness.RemovesLeftovers(t, []string{".edge-doctor-1/trial.db"}, nil, []string{".edge-doctor-2/trial.db"}, func(folder string) {
		if _, err := MeasureEndurance(t.Context(), cfg, folder, 1, 10*time.Millisecond); err != nil {
			t.Error(err)
		}
	})
}
