package persist

import (
	"fmt"
	"strings"

	"edge/online"
)

const (
	classWindows = "windows" // of keys windows/<stream> in bucket meta; part of no model
	maxWindows   = 64 << 20  // bytes of one stream
)

func windowsKey(stream string) []byte { return []byte(classWindows + "/" + stream) }

// Windows returns the windows in progress that a commit stored and no later one removed.
func (s *Store) Windows() (all []online.Windows, err error) {
	s.write.Lock()
	defer s.write.Unlock()
	err = s.view(func(t tree) error {
		prefix := string(windowsKey(""))
		return t.each(bucketMeta, prefix, func(key, value []byte) error {
			payload, err := unseal(kindWindows, bucketMeta, key, value)
			if err != nil {
				return damaged("windows", err)
			}
			all = append(all, online.Windows{Stream: strings.TrimPrefix(string(key), prefix), State: append([]byte(nil), payload...)})
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("persist: read the windows in %s: %w", s.path, err)
	}
	return all, nil
}

// putWindows replaces or removes the windows of a stream.
func (ds *drafts) putWindows(w *online.Windows) error {
	if err := checkName(w.Stream); err != nil {
		return err
	}
	key := windowsKey(w.Stream)
	if len(w.State) == 0 {
		ds.set(bucketMeta, key, nil)
		return nil
	}
	if len(w.State) > maxWindows {
		return fmt.Errorf("windows of stream %s: %d bytes, at most %d: %w", w.Stream, len(w.State), maxWindows, errTooLarge)
	}
	ds.set(bucketMeta, key, ds.seal(kindWindows, bucketMeta, key, w.State))
	return nil
}

// addWindows checks the windows of a stream, which belong to no model, and keeps them
// for a rollback. A repair drops them: rows that came later may be lost.
func (c *contents) addWindows(key, value []byte, keep bool) error {
	_, err := c.unseal(kindWindows, bucketMeta, key, value)
	if err == nil && keep {
		c.windows[string(key)] = value
	}
	return err
}
