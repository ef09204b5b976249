package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"edge/internal/config"
	"edge/online"
	"edge/persist"
)

// Find returns an error if there is no file at path, which package persist would make.
func Find(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("state file: %w; `edge run` makes it, and `edge train -o`", err)
	}
	return nil
}

// Open opens an existing state file for reading. A running daemon has it locked:
// the error then names the way out.
func Open(path string) (*persist.Store, error) {
	if err := Find(path); err != nil {
		return nil, err
	}
	store, err := persist.OpenReadOnly(path, persist.Options{})
	if errors.Is(err, persist.ErrLocked) {
		err = fmt.Errorf("%w; stop the daemon first, or read a copy: edge backup %s copy.db", err, path)
	}
	return store, err
}

// Of opens the state file of a configuration for reading.
func Of(cfg *config.Config) (*persist.Store, error) {
	path, err := cfg.StorePath()
	if err != nil {
		return nil, err
	}
	return Open(path)
}

// Effective returns the configuration that a daemon with this state file applies:
// see config.Config.Effective. A model that the store does not hold, or whose shape is
// damaged, keeps its configuration.
func Effective(store *persist.Store, cfg *config.Config) *config.Config {
	shapes := map[string]string{}
	for name := range cfg.Models {
		if shape, err := store.Shape(name); err == nil {
			shapes[name] = shape
		}
	}
	return cfg.Effective(shapes)
}

// Unused returns the models in a state file that the configuration does not name, none if
// the file cannot be read.
func Unused(store *persist.Store, cfg *config.Config) []string {
	names, err := store.Models()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(names, func(name string) bool { _, used := cfg.Models[name]; return used })
}

// Vacant reports whether a model in a state file has learnt nothing, keeps no sample, and was
// not changed by requests, but for classes that its configuration also declares. Nothing is
// lost with it.
func Vacant(store *persist.Store, name string, declared []string) bool {
	learner, kept, _, err := Restore(store, name, nil)
	if err != nil || len(kept.Pending) > 0 || kept.Mark != 0 || len(kept.Loss.Notes) > 0 {
		return false
	}
	for i := range kept.Records {
		if kept.Records[i].Kind != online.Boundary {
			return false
		}
	}
	p := learner.Posterior()
	return p.Version() == 0 && learner.Pending() == 0 &&
		!slices.ContainsFunc(p.Classes(), func(class string) bool { return !slices.Contains(declared, class) })
}

// Learner returns the learner of a model that is in a state of the state file at path, nil for a new one. Its
// error has the way out.
func Learner(path, name string, c online.Config, state []byte) (*online.Learner, error) {
	learner, err := online.RestoreOrNew(c, state)
	switch {
	case errors.Is(err, online.ErrNewer): // which has the way out
		return nil, fmt.Errorf("model %s: %w", name, err)
	case err != nil:
		return nil, fmt.Errorf("model %s: %w; put a backup in its place (edge restore), or `edge reset --model %[1]s --state %[3]s` gives its state up", name, err, path)
	}
	return learner, nil
}

// Restore returns the learner of a model in a state file, and the entries it was
// restored from. If cfg, which may be nil, configures the model, the records of
// the journal after the checkpoint are learnt as the daemon would learn them, and
// replayed is true; without its configuration they cannot be.
func Restore(store *persist.Store, name string, cfg *config.Config) (learner *online.Learner, kept *persist.Recovered, replayed bool, err error) {
	shape, err := store.Shape(name)
	if err != nil {
		return nil, nil, false, err
	}
	var of online.Config
	if cfg != nil && cfg.Models[name].Streams != nil {
		of, err = cfg.Effective(map[string]string{name: shape}).Learner(name)
		replayed = true
	} else {
		of, err = online.ConfigOfShape(shape)
	}
	if err != nil {
		return nil, nil, false, err
	}
	if kept, err = store.Load(name, of.Shape()); err != nil {
		return nil, nil, false, err
	}
	records := kept.Records
	if !replayed {
		records = nil
	}
	learner, _, err = online.Replay(func() (*online.Learner, error) { return online.RestoreOrNew(of, kept.State) }, records)
	return learner, kept, replayed, err
}
