package web

import (
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// checkInterval is the shortest time between two checks of a fileCache's files.
const checkInterval = time.Second

// fileCache is a value that is loaded from files, and loaded again when one of them
// has changed. If that fails, the former value stays.
type fileCache[T any] struct {
	name  string // key of the configuration, for the log
	files []string
	load  func() (T, error)
	log   *slog.Logger

	mu      sync.Mutex
	value   T
	loaded  bool
	checked time.Time
	seen    []fs.FileInfo // of the files when they were loaded; nil for a missing file
}

// get returns the value, or the error of the first load.
func (c *fileCache[T]) get() (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.loaded && now.Sub(c.checked) < checkInterval {
		return c.value, nil
	}
	c.checked = now
	seen := statAll(c.files)
	if c.loaded && sameFiles(c.seen, seen) {
		return c.value, nil
	}
	value, err := c.load()
	switch {
	case err == nil && c.loaded:
		c.log.Info("read again", "key", c.name)
		c.value = value
	case err == nil:
		c.value, c.loaded = value, true
	case c.loaded:
		c.log.Error("cannot be read again; the former value stays in use", "key", c.name, "error", err)
	default:
		return value, err
	}
	c.seen = seen
	return c.value, nil
}

// statAll returns the properties of files, nil for a missing file.
func statAll(files []string) []fs.FileInfo {
	seen := make([]fs.FileInfo, len(files))
	for i, file := range files {
		if info, err := os.Stat(file); err == nil {
			seen[i] = info
		}
	}
	return seen
}

// sameFiles reports whether files have the same properties.
func sameFiles(a, b []fs.FileInfo) bool {
	for i := range a {
		if (a[i] == nil) != (b[i] == nil) {
			return false
		}
		if a[i] != nil && !(os.SameFile(a[i], b[i]) && a[i].Size() == b[i].Size() && a[i].ModTime().Equal(b[i].ModTime())) {
			return false
		}
	}
	return true
}
