package doctor

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"edge/internal/config"
	"edge/persist"
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

// The folder of a doctor that was killed before it had a store is removed, and that of one whose store is half
// made; not that of one which makes it.
func TestEnduranceRemovesFolders(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"empty", "half", "makes"} {
		if err := os.Mkdir(filepath.Join(folder, doctorFolder+name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	half := filepath.Join(folder, doctorFolder+"half", doctorStore+".tmp")
	if err := os.WriteFile(half, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := persist.Open(filepath.Join(folder, doctorFolder+"makes", doctorStore+".tmp"), persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	removeScratch(folder)
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 1 || left[0].Name() != doctorFolder+"makes" {
		t.Errorf("left are %v, %v", left, err)
	}
}
