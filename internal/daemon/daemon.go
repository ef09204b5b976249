package daemon

import (
	"errors"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"edge/internal/config"
	"edge/internal/exit"
	"edge/internal/web"
	"edge/online"
	"edge/persist"
	"edge/stream"
	"edge/stream/membership"
)

// Daemon is one edge node: its store, the loops that learn, and the node that
// speaks MQTT. Store and loops outlive the node, which a new configuration may
// replace.
type Daemon struct {
	// Source reads the configuration again. Nil: Reload is refused.
	Source func() (*config.Config, error)

	log          *slog.Logger
	onPrediction func(*stream.Prediction) // nil: none

	store    *persist.Store
	path     string       // of the store
	exports  exports      // states that commands export and roll back to
	monitor  *web.Monitor // measures store, loops and node
	deployed atomic.Pointer[deployment]
	steps    *online.Workspaces // of all models: one for each core
	readers  online.Readers     // of all models' snapshots
	web      *web.Server        // nil: not served

	reloads     chan chan<- reloaded // requests to reload, for Run's goroutine
	storeFailed chan error           // the store is unusable, for Run's goroutine
	learnt      chan struct{}        // has an element when a loop has a new status; capacity 1
}

// New opens the store, recovers every model and wires the node; nothing runs
// yet. onPrediction, if not nil, is called with each prediction and must not
// wait. Close the daemon if it is not run.
func New(cfg *config.Config, log *slog.Logger, onPrediction func(*stream.Prediction)) (*Daemon, error) {
	path, err := cfg.StorePath()
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	store, err := persist.Open(path, persist.Options{MaxSize: int64(cfg.Store.MaxSize), Dedupe: cfg.Store.Dedupe, Log: log})
	if err != nil {
		return nil, exit.With(exit.Store, err)
	}
	d := &Daemon{
		log: log, onPrediction: onPrediction,
		store: store, path: path, exports: exports{store, filepath.Join(filepath.Dir(path), "exports")},
		monitor: web.NewMonitor(), steps: online.NewWorkspaces(runtime.GOMAXPROCS(0)),
		reloads: make(chan chan<- reloaded), storeFailed: make(chan error, 1), learnt: make(chan struct{}, 1),
	}
	if err := d.deploy(cfg); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Close releases the store.
func (d *Daemon) Close() error {
	d.web.Close()
	return exit.With(exit.Store, d.store.Close())
}

// Loop returns the loop of a model, nil if the daemon does not serve it.
func (d *Daemon) Loop(model string) *online.Loop {
	if m := d.current().Model(model); m != nil {
		return m.Loop
	}
	return nil
}

// Stats returns the counters of the node, also after Run.
func (d *Daemon) Stats() stream.Stats { return d.current().Node.Stats() }

// Fleet describes a model's part in a fleet; false for a model without one.
func (d *Daemon) Fleet(model string) (membership.View, bool) { return d.current().Node.Fleet(model) }

// PageURL returns the address of the page, "" if it is not served.
func (d *Daemon) PageURL() string { return d.web.URL() }
