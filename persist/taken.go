package persist

import (
	"encoding/binary"
	"fmt"

	"edge/online"
)

const (
	keyTaken = "/taken" // in bucket ledger, whose page every commit writes; a model's name contains no slash
	maxTaken = 1 << 16  // messages, the number of MQTT's packet identifiers
)

// Taken returns the list of taken messages (online.Taken) of the last commit that
// contained one, the zero value before the first.
func (s *Store) Taken() (online.Taken, error) {
	s.write.Lock()
	defer s.write.Unlock()
	var taken online.Taken
	err := s.view(func(t tree) error {
		return t.read(kindTaken, bucketLedger, []byte(keyTaken), "taken messages", func(payload []byte) (err error) {
			taken, err = decodeTaken(payload)
			return err
		})
	})
	if err != nil {
		return online.Taken{}, fmt.Errorf("persist: read the taken messages in %s: %w", s.path, err)
	}
	return taken, nil
}

// putTaken replaces the list of taken messages.
func (ds *drafts) putTaken(t *online.Taken) error {
	if len(t.Messages) > maxTaken {
		return fmt.Errorf("%d taken messages, at most %d: %w", len(t.Messages), maxTaken, errTooLarge)
	}
	s, key := ds.store, []byte(keyTaken)
	s.scratch.payload = appendTaken(s.scratch.payload[:0], t)
	ds.set(bucketLedger, key, ds.seal(kindTaken, bucketLedger, key, s.scratch.payload))
	return nil
}

// appendTaken appends the payload of the taken messages:
//
//	sequence, number of messages, for each: identifier, key, 2×sequence + 1 if named
func appendTaken(dst []byte, t *online.Taken) []byte {
	dst = binary.AppendUvarint(dst, t.Sequence)
	dst = binary.AppendUvarint(dst, uint64(len(t.Messages)))
	for _, m := range t.Messages {
		dst = binary.LittleEndian.AppendUint16(dst, m.ID)
		dst = binary.LittleEndian.AppendUint64(dst, m.Key)
		flag := uint64(0)
		if m.Named {
			flag = 1
		}
		dst = binary.AppendUvarint(dst, m.Sequence<<1|flag)
	}
	return dst
}

func decodeTaken(payload []byte) (online.Taken, error) {
	d := newDecoder(payload)
	t := online.Taken{Sequence: d.Uint()}
	for range d.Count(maxTaken, 2+8+1, "number of elements") {
		id := d.Bytes(2, "packet identifier")
		m := online.TakenMessage{Key: d.Uint64()}
		tail := d.Uint()
		m.Named, m.Sequence = tail&1 != 0, tail>>1
		if d.Err() == nil {
			m.ID = binary.LittleEndian.Uint16(id)
			t.Messages = append(t.Messages, m)
		}
	}
	if err := d.End(); err != nil {
		return online.Taken{}, fmt.Errorf("taken messages: %w", err)
	}
	return t, nil
}
