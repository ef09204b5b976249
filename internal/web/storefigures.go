package web

import (
	"time"

	"edge/internal/process"
	"edge/persist"
)

const (
	storeInterval = time.Second      // between two reads of the store's figures while they are asked for
	storeRest     = 30 * time.Second // while they are not
)

// storeSample is the state of the store at one time.
type storeSample struct {
	persist.Stats
	at  time.Time
	err error // reason why it cannot be read or written
}

// sampleStore reads the figures of the store, and returns why it cannot be used.
func (m *Monitor) sampleStore(store *persist.Store, path string) error {
	s := storeSample{}
	m.reading.Store(int64(time.Since(m.started)))
	if s.Stats, s.err = store.Stats(); s.err == nil {
		s.err = process.Writable(path)
	} else {
		m.deployment().Node.CheckJournal()
	}
	s.at = time.Now()
	m.store.Store(&s)
	m.reading.Store(0)
	return s.err
}

// storeFigures returns the newest figures of the store, nil before the first ones. If they
// are old, newer ones will follow.
func (m *Monitor) storeFigures() *storeSample {
	s := m.store.Load()
	if s != nil && time.Since(s.at) >= storeInterval {
		wake(m.looked)
	}
	return s
}
