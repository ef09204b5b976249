package daemon

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"

	"edge/internal/config"
)

// watcher reports changes of files. It watches their directories, since most
// programs write another file and rename it. The zero value reports nothing.
type watcher struct {
	notify  *fsnotify.Watcher
	events  <-chan fsnotify.Event
	errors  <-chan error
	folders map[string]string // and where they are, without symbolic links
	files   map[string]bool   // with the targets of symbolic links on the path
	log     *slog.Logger
}

// newWatcher returns a watcher without files; follow adds them.
func newWatcher(log *slog.Logger) watcher {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		log.Error("changes of the configuration are not noticed; SIGHUP reads it in any case", "error", err)
		return watcher{}
	}
	return watcher{notify: n, events: n.Events, errors: n.Errors, folders: map[string]string{}, log: log}
}

// close ends the watch.
func (w *watcher) close() {
	if w.notify != nil {
		w.notify.Close()
	}
}

// follow watches the configuration at path and the files that it refers to, and
// no others.
func (w *watcher) follow(path string, cfg *config.Config) {
	if w.notify == nil {
		return
	}
	w.files = map[string]bool{}
	folders := map[string]string{}
	for _, file := range append(cfg.MQTT.Files(), path) {
		for _, name := range trail(file) {
			folder := filepath.Dir(name)
			w.files[name] = true
			folders[folder], _ = filepath.EvalSymlinks(folder)
		}
	}
	for folder, place := range folders {
		was, watched := w.folders[folder]
		if watched && was == place {
			continue
		}
		_ = w.notify.Remove(folder) // the watch would stay where a symbolic link led before
		if err := w.notify.Add(folder); err != nil {
			w.log.Warn("changes here are not noticed; SIGHUP reads the configuration in any case", "folder", folder, "error", err)
		}
	}
	for folder := range w.folders {
		if _, stays := folders[folder]; !stays {
			_ = w.notify.Remove(folder) // it may be gone
		}
	}
	w.folders = folders
}

// concerns reports whether an event is a change of one of the files, or of a
// symbolic link to it.
func (w *watcher) concerns(e fsnotify.Event) bool {
	return e.Op != fsnotify.Chmod && w.files[filepath.Clean(e.Name)]
}

// maxLinks bounds the number of symbolic links followed from a file.
const maxLinks = 8

// trail returns the absolute paths whose change changes a file: its own, and
// those of the symbolic links on the path as far as they are the file or its
// directory. A mounted secret is renewed by replacing such a link.
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

// isLink reports whether a path is a symbolic link.
func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeSymlink != 0
}
