package daemon

import (
	"context"
	"os"
	"time"
)

// settleTime is the time without a change after which changed files are read: an
// editor, or a program that renews a certificate, writes more than once.
const settleTime = 500 * time.Millisecond

// Triggers are the reasons for which a daemon reads its configuration again.
type Triggers struct {
	Path    string           // of the configuration
	Watch   bool             // when a file of the configuration has changed
	Hangups <-chan os.Signal // at each signal
}

// handle reloads the configuration at each trigger until ctx ends.
func (t *Triggers) handle(ctx context.Context, d *Daemon, manager *service) {
	var files watcher
	if t.Watch {
		files = newWatcher(d.log)
		defer files.close()
		files.follow(t.Path, d.current().Config)
	}
	var settled <-chan time.Time
	reload := func(reason string) {
		defer manager.reloading()()
		if m := d.recovering(); m != nil {
			d.log.Info("the configuration is read again once the models have recovered", "config", t.Path, "reason", reason, "model", m.Name)
		} else {
			d.log.Info("reading the configuration again", "config", t.Path, "reason", reason)
		}
		files.follow(t.Path, d.current().Config) // before it is read: a later change of the file is then noticed
		_, _ = d.Reload(ctx)                     // which logs its outcome
		files.follow(t.Path, d.current().Config)
	}
	for {
		select {
		case <-t.Hangups:
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
