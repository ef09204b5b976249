package daemon

import (
	"context"
	"log/slog"
	"os"
	"sync"

	"edge/internal/config"
	"edge/internal/exit"
	"edge/internal/process"
)

// Serve runs the daemon of the configuration cfg, which was read from t.Path, until
// ctx ends. It reloads the configuration at each of the triggers, and reports its
// state to a service manager.
func Serve(ctx context.Context, cfg *config.Config, t Triggers, log *slog.Logger) error {
	state, err := cfg.StorePath()
	if err != nil {
		return exit.With(exit.Config, err)
	}
	v := process.Build()
	log.Info("edge starts", "version", v.Version, "commit", v.Commit, "node", cfg.Node, "config", t.Path, "state", state)
	for _, e := range cfg.Exposures(t.Path) {
		log.Warn("a file is accessible to more users than is safe", "path", e.Path, "reason", e.Reason, "advice", e.Advice)
	}
	for _, unused := range cfg.UnusedVariables(os.Environ()) {
		log.Warn(unused)
	}
	limitMemory(cfg.MemoryLimit, log)
	paceCollector()
	daemon, err := New(cfg, log, nil)
	if err != nil {
		return err
	}
	daemon.Source = func() (*config.Config, error) { return config.Load(t.Path) }
	working, stop := context.WithCancel(ctx)
	defer stop()
	stopped := make(chan struct{})
	manager := newService(log)
	var around sync.WaitGroup
	around.Go(func() { manager.run(ctx, stopped, daemon.monitor) })
	around.Go(func() { t.handle(working, daemon, manager) })
	err = daemon.Run(ctx)
	stop()
	close(stopped)
	around.Wait()
	return err
}
