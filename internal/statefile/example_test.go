package statefile_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"edge/internal/statefile"
	"edge/online"
	"edge/persist"
)

// A learner is restored from a file, without the configuration of the daemon.
func ExampleRestore() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "edge.db")
	if err := writeState(path); err != nil {
		log.Fatal(err)
	}
	store, err := statefile.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	learner, _, replayed, err := statefile.Restore(store, "bearing", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(learner.Config().Features, learner.Posterior().Classes(), replayed)
	// Output: [rms] [ok worn] false
}

// writeState writes a state file with a model that has learnt nothing yet.
func writeState(path string) error {
	cfg := online.DefaultConfig()
	cfg.Features, cfg.Classes.Names = []string{"rms"}, []string{"ok", "worn"}
	learner, err := online.NewLearner(cfg)
	if err != nil {
		return err
	}
	state, err := learner.AppendBinary(nil)
	if err != nil {
		return err
	}
	store, err := persist.Open(path, persist.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	if _, err := store.Load("bearing", cfg.Shape()); err != nil {
		return err
	}
	return store.Checkpoint("bearing", 0, state)
}
