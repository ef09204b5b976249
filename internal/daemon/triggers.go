package daemon

import (
	"context"
	"os"
	"time"
)

// settleTime is the time without a change after which changed files are read: an
// editor, or a program that renews a certificate, writes more than once.
const settleTime = 500 * time.Millisecond

// handleTriggers reloads the configuration at each signal on hangups and, if
// watch is set, whenever a file of the configuration has changed, until ctx ends.
func handleTriggers(ctx context.Context, hangups <-chan os.Signal, d *Daemon, manager *service, path string, watch bool) {
	var files watcher
	if watch {
		files = newWatcher(d.log)
		defer files.close()
		files.follow(path, d.current().Config)
	}
	var settled <-chan time.Time
	reload := func(reason string) {
		defer manager.reloading()()
		if m := d.recovering(); m != nil {
			d.log.Info("the configuration is read again once the models have recovered", "config", path, "reason", reason, "model", m.Name)
		}
		d.log.Info("reading the configuration again", "config", path, "reason", reason)
		files.follow(path, d.current().Config) // before it is read: a later change of the file is then noticed
		_, _ = d.Reload(ctx)                   // which logs its outcome
		files.follow(path, d.current().Config)
	}
	for {
		select {
		case <-hangups:
			reload("SIGHUP")
		case e := <-files.events:
			if files.concerns(e) {
				settled = time.After(settleTime)
			}
		case err := <-files.errors:
			d.log.Warn("a change of the configuration may have been missed; SIGHUP reads it in any case", "error", err)
		case <-settled:
			settled = nil
			reload("a file has changed")
		case <-ctx.Done():
			return
		}
	}
}
