package daemon

import (
	"context"
	"log/slog"
	"os"
	"sync"

	"edge/internal/config"
	"edge/internal/process"
)

// Serve runs the daemon of the configuration cfg, which was read from path, until
// ctx ends. It reloads the configuration when asked sends and, if watch is set,
// when a file of the configuration changes, and tells a service manager how the
// daemon is.
func Serve(ctx context.Context, cfg *config.Config, path string, watch bool, asked <-chan os.Signal, log *slog.Logger) error {
	v := process.Build()
	log.Info("edge starts", "version", v.Version, "commit", v.Commit, "node", cfg.Node, "config", path, "state", cfg.StorePath())
	for _, e := range cfg.Exposures(path) {
		log.Warn("more users than good may reach a file", "path", e.Path, "reason", e.Reason, "advice", e.Advice)
	}
	limitMemory(cfg.MemoryLimit, log)
	daemon, err := New(cfg, log, nil)
	if err != nil {
		return err
	}
	daemon.Source = func() (*config.Config, error) { return config.Load(path) }
	working, stop := context.WithCancel(ctx)
	defer stop()
	stopped := make(chan struct{})
	manager := newService(log)
	var around sync.WaitGroup
	around.Go(func() { manager.run(ctx, stopped, daemon.monitor) })
	around.Go(func() { reloads(working, asked, daemon, manager, path, watch) })
	err = daemon.Run(ctx)
	stop()
	close(stopped)
	around.Wait()
	return err
}
