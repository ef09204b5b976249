package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"edge/internal/terminal"
	"edge/online"
	"edge/persist"
	"edge/stream"
)

const (
	maxExports = 32 // state files that requests may leave beside the store
	newestName = "newest"
	olderName  = "older"

	unfinishedExport = ".part" // ends the name of an export that is being written
)

var exportName = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

// exports are states that requests have written: state files of one model each,
// in a directory beside the store, which every command of this program reads.
// The newest and the older checkpoint of the store count as two more.
type exports struct {
	store *persist.Store
	dir   string
}

// path returns where the export of a model is or will be.
func (e exports) path(model, name string) (string, error) {
	if !exportName.MatchString(name) || name == newestName || name == olderName {
		return "", fmt.Errorf("export %.80q: want a name of 1 to 64 of a-z 0-9 _ -, and neither %s nor %s", name, newestName, olderName)
	}
	return filepath.Join(e.dir, model+"."+name+".db"), nil
}

// write makes an export; it replaces one of the same name.
func (e exports) write(model, name string, shape string, state []byte) (about map[string]any, err error) {
	if name == "" {
		name = fmt.Sprintf("%d", int64(stamp(time.Now())))
	}
	path, err := e.path(model, name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	if there, err := filepath.Glob(filepath.Join(e.dir, "*.db")); err == nil && len(there) >= maxExports {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("export: %s holds %d files already: remove some", e.dir, len(there))
		}
	}
	part := path + unfinishedExport
	e.clean()
	if err := writeState(part, model, shape, state); err != nil {
		return nil, errors.Join(err, os.Remove(part))
	}
	if err := os.Rename(part, path); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	sum := sha256.Sum256(state)
	return map[string]any{"name": name, "file": path, "bytes": len(state), "digest": hex.EncodeToString(sum[:])}, nil
}

// clean removes what exports left that a crash has ended.
func (e exports) clean() {
	parts, _ := filepath.Glob(filepath.Join(e.dir, "*"+unfinishedExport+"*")) // and what persist writes beside one
	for _, part := range parts {
		_ = persist.RemoveUnlocked(part)
	}
}

// writeState makes a state file that holds one model's state.
func writeState(path, model, shape string, state []byte) (err error) {
	store, err := persist.Open(path, persist.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if _, err := store.Load(model, shape); err != nil {
		return err
	}
	return store.Checkpoint(model, 0, state)
}

// read returns a state that was exported, or one of the checkpoints.
func (e exports) read(model, name string) ([]byte, error) {
	if name == "" || name == newestName || name == olderName {
		state, _, err := e.store.State(model, name == olderName)
		return state, err
	}
	path, err := e.path(model, name)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("there is no export %q of model %s: %w", name, model, err)
	}
	store, err := persist.OpenReadOnly(path, persist.Options{})
	if err != nil {
		return nil, err
	}
	state, _, err := store.State(model, false)
	return state, errors.Join(err, store.Close())
}

// program is what requests ask of the daemon.
func (d *Daemon) program() stream.Program {
	p := stream.Program{
		Reload: func(ctx context.Context) error {
			_, err := d.Reload(ctx)
			return err
		},
		Checkpoint: func(ctx context.Context, model string) error { return d.now().Model(model).Loop.Checkpoint(ctx) },
		Export: func(ctx context.Context, model, name string) (map[string]any, error) {
			m := d.now().Model(model)
			_, state, err := m.Loop.State(ctx)
			if err != nil {
				return nil, err
			}
			return d.exports.write(model, name, m.Config.Shape(), state)
		},
		Earlier: func(_ context.Context, model, name string) ([]byte, map[string]any, error) {
			state, err := d.exports.read(model, name)
			if err != nil {
				return nil, nil, err
			}
			learner, err := online.Restore(d.now().Model(model).Config, state)
			if err != nil {
				return nil, nil, err
			}
			post := learner.Posterior()
			return state, map[string]any{"samples": post.Version(), "classes": post.Classes()}, nil
		},
	}
	if level, ok := d.log.Handler().(terminal.AdjustableHandler); ok {
		p.LogLevel = level.Set
	}
	return p
}

// stamp returns t in seconds since 1970, as Prometheus wants its times.
func stamp(t time.Time) float64 { return float64(t.UnixMilli()) / 1e3 }
