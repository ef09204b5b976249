package daemon

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"edge/internal/config"
)

// settleTime is how long files must be left alone before they are read: an
// editor, or a program that renews a certificate, writes more than once.
const settleTime = 500 * time.Millisecond

// reloads lets the daemon reload whenever it is asked and, if it is to watch,
// whenever a file of its configuration changes, until ctx ends.
func reloads(ctx context.Context, asked <-chan os.Signal, d *Daemon, manager *service, path string, watch bool) {
	var files watcher
	if watch {
		files = newWatcher(d.log)
		defer files.close()
		files.follow(path, d.now().Config)
	}
	var settled <-chan time.Time
	reload := func(why string) {
		defer manager.reloading()()
		d.log.Info("reading the configuration again", "config", path, "reason", why)
		_, _ = d.Reload(ctx) // which logs what came of it
		files.follow(path, d.now().Config)
	}
	for {
		select {
		case <-asked:
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

// watcher hears of changes of files. It watches their directories: most programs
// write another file and give it the name. One that watches nothing is of use, too.
type watcher struct {
	notify  *fsnotify.Watcher
	events  <-chan fsnotify.Event
	errors  <-chan error
	folders map[string]bool
	files   map[string]bool // and what symbolic links on the way to them point at
	log     *slog.Logger
}

func newWatcher(log *slog.Logger) watcher {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		log.Error("changes of the configuration are not noticed; SIGHUP reads it in any case", "error", err)
		return watcher{}
	}
	return watcher{notify: n, events: n.Events, errors: n.Errors, folders: map[string]bool{}, log: log}
}

func (w *watcher) close() {
	if w.notify != nil {
		w.notify.Close()
	}
}

// follow watches the configuration at path and the files that it names.
func (w *watcher) follow(path string, cfg *config.Config) {
	if w.notify == nil {
		return
	}
	w.files = map[string]bool{}
	folders := map[string]bool{}
	for _, file := range append(cfg.MQTT.Files(), path) {
		for _, name := range trail(file) {
			w.files[name], folders[filepath.Dir(name)] = true, true
		}
	}
	for folder := range folders {
		if !w.folders[folder] {
			if err := w.notify.Add(folder); err != nil {
				w.log.Warn("changes here are not noticed; SIGHUP reads the configuration in any case", "folder", folder, "error", err)
			}
		}
	}
	for folder := range w.folders {
		if !folders[folder] {
			_ = w.notify.Remove(folder) // it may be gone
		}
	}
	w.folders = folders
}

// concerns reports whether a change is of one of the files, or of what leads there.
func (w *watcher) concerns(e fsnotify.Event) bool {
	return e.Op != fsnotify.Chmod && w.files[filepath.Clean(e.Name)]
}

// maxLinks bounds the symbolic links that are followed from a file.
const maxLinks = 8

// trail returns the absolute paths whose change changes a file: its own, and
// those of the symbolic links on the way to it, as far as they are the file or
// its directory. A mounted secret is changed by turning such a link.
func trail(file string) (names []string) {
	file, err := filepath.Abs(file)
	for len(names) < maxLinks && err == nil {
		names = append(names, file)
		if folder := filepath.Dir(file); isLink(folder) {
			names = append(names, folder)
		}
		var target string
		if target, err = os.Readlink(file); err == nil && !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(file), target)
		}
		file = target
	}
	return names
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeSymlink != 0
}
