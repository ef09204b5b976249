package persist

import (
	"encoding/binary"
	"fmt"
)

const (
	keySession = "session" // in bucket meta; part of no model
	maxFilters = 100_000
	maxFilter  = 1 << 16 // bytes, MQTT's own bound
)

// Filters returns the MQTT filters that RememberFilters stored, nil if it stored
// none or if a repair has lost them.
func (s *Store) Filters() (filters []string, err error) {
	s.write.Lock()
	defer s.write.Unlock()
	err = s.view(func(t tree) error {
		return t.read(kindSession, bucketMeta, []byte(keySession), "session", func(payload []byte) (err error) {
			filters, err = decodeFilters(payload)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("persist: read the filters in %s: %w", s.path, err)
	}
	return filters, nil
}

// RememberFilters stores the filters that the broker's session is subscribed to, so
// that the node can unsubscribe from those that a later configuration lacks.
func (s *Store) RememberFilters(filters []string) error {
	if len(filters) > maxFilters {
		return fmt.Errorf("persist: store %d filters: want at most %d", len(filters), maxFilters)
	}
	payload := binary.AppendUvarint(nil, uint64(len(filters)))
	for _, f := range filters {
		if len(f) > maxFilter {
			return fmt.Errorf("persist: store a filter of %d bytes: want at most %d", len(f), maxFilter)
		}
		payload = appendString(payload, f)
	}
	s.write.Lock()
	defer s.write.Unlock()
	err := s.change(inLog, func(ds *drafts) error {
		key := []byte(keySession)
		ds.set(bucketMeta, key, ds.seal(kindSession, bucketMeta, key, payload))
		return nil
	})
	if err != nil {
		return fmt.Errorf("persist: store the filters in %s: %w", s.path, err)
	}
	return nil
}

func decodeFilters(payload []byte) ([]string, error) {
	d := newDecoder(payload)
	var filters []string
	for range d.Count(maxFilters, 1, "number of elements") {
		filters = append(filters, d.String(maxFilter))
	}
	if err := d.End(); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	return filters, nil
}
