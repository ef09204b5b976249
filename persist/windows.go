package persist

import (
	"fmt"
	"strings"

	"go.etcd.io/bbolt"

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
	err = s.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte(bucketMeta)).Cursor()
		prefix := string(windowsKey(""))
		for key, value := c.Seek([]byte(prefix)); strings.HasPrefix(string(key), prefix); key, value = c.Next() {
			payload, err := unseal(kindWindows, bucketMeta, key, value)
			if err != nil {
				return damaged("windows", err)
			}
			all = append(all, online.Windows{Stream: strings.TrimPrefix(string(key), prefix), State: append([]byte(nil), payload...)})
		}
		return nil
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
	b, key := ds.tx.Bucket([]byte(bucketMeta)), windowsKey(w.Stream)
	if len(w.State) == 0 {
		return b.Delete(key)
	}
	if len(w.State) > maxWindows {
		return fmt.Errorf("windows of stream %s: %d bytes, at most %d: %w", w.Stream, len(w.State), maxWindows, errTooLarge)
	}
	return b.Put(key, seal(nil, kindWindows, bucketMeta, key, w.State))
}

// addWindows checks the windows of a stream, which belong to no model, and keeps them
// for a rollback. A repair drops them: rows that came later may be lost.
func (c *contents) addWindows(key, value []byte, keep bool) error {
	if _, err := unseal(kindWindows, bucketMeta, key, value); err != nil {
		return err
	}
	c.known = true
	if keep {
		c.windows[string(key)] = value
	}
	return nil
}
