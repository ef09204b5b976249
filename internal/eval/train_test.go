package eval

import (
	"os"
	"path/filepath"
	"testing"

	"edge/persist"
	"edge/test/harness"
)

// Saving a training removes temporary files of a killed one.
func TestTrainingRemovesStaleFiles(t *testing.T) {
	harness.RemovesLeftovers(t, []string{"out.db.training.7.new"}, []string{"out.db.training"}, nil, func(folder string) {
		f, err := persist.CreateTemp((&Training{Output: filepath.Join(folder, "out.db")}).unfinished())
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := os.Stat(f.Name()); err != nil {
			t.Error(err)
		}
	})
}
