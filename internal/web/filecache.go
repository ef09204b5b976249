package web

import (
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// lookAtFiles is how often the files of a fileCache are looked at, at most.
const lookAtFiles = time.Second

// fileCache is a value that is made of files, and made again when one of them
// has changed. When that fails, the value before stays.
type fileCache[T any] struct {
	name  string // of the configuration's key, for the log
	files []string
	load  func() (T, error)
	log   *slog.Logger

	mu     sync.Mutex
	value  T
	made   bool
	looked time.Time
	seen   []fs.FileInfo // of the files when they were read; nil where there is none
}

// get returns the value; the error says why there is none yet.
func (c *fileCache[T]) get() (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.made && now.Sub(c.looked) < lookAtFiles {
		return c.value, nil
	}
	c.looked = now
	seen := statAll(c.files)
	if c.made && sameFiles(c.seen, seen) {
		return c.value, nil
	}
	value, err := c.load()
	switch {
	case err == nil && c.made:
		c.log.Info("read again", "key", c.name)
		c.value = value
	case err == nil:
		c.value, c.made = value, true
	case c.made:
		c.log.Error("cannot be read again; what was read before is still used", "key", c.name, "error", err)
	default:
		return value, err
	}
	c.seen = seen
	return c.value, nil
}

// statAll returns what is known of files; nil for one that is not there.
func statAll(files []string) []fs.FileInfo {
	seen := make([]fs.FileInfo, len(files))
	for i, file := range files {
		if info, err := os.Stat(file); err == nil {
			seen[i] = info
		}
	}
	return seen
}

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
