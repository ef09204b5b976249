package statefile

import (
	"errors"
	"fmt"
	"os"

	"edge/internal/config"
	"edge/online"
	"edge/persist"
)

// Open opens a state file that is there, to read it.
func Open(path string) (*persist.Store, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	store, err := persist.OpenReadOnly(path, persist.Options{})
	if errors.Is(err, persist.ErrLocked) {
		err = fmt.Errorf("%w; stop the daemon first, or read a copy: edge backup %s copy.db", err, path)
	}
	return store, err
}

// Recall returns a learner that has learnt what a state file holds of a model:
// of its checkpoint and, learnt, of the records beyond it, if running configures
// the model; without, they cannot be learnt as the daemon would.
func Recall(store *persist.Store, name string, running *config.Config) (learner *online.Learner, kept *persist.Recovered, learnt bool, err error) {
	info, err := store.Info(name)
	if err != nil {
		return nil, nil, false, err
	}
	var cfg online.Config
	if running != nil && running.Models[name].Streams != nil {
		running.Adopt(name, info.Shape)
		cfg, err = running.Learner(name)
		learnt = true
	} else {
		cfg, err = online.ConfigOfShape(info.Shape)
	}
	if err != nil {
		return nil, nil, false, err
	}
	if kept, err = store.Load(name, cfg.Shape()); err != nil {
		return nil, nil, false, err
	}
	records := kept.Records
	if !learnt {
		records = nil
	}
	learner, _, err = online.Replay(func() (*online.Learner, error) { return online.RestoreOrNew(cfg, kept.State) }, records)
	return learner, kept, learnt, err
}
