package persist

import (
	"cmp"
	"fmt"

	"go.etcd.io/bbolt"
)

// Info describes what the file holds of one model.
type Info struct {
	Model       string
	Shape       string
	Checkpoints []Generation // newest first
	// First and Last are the sequence numbers of the journal's records; First
	// is Last+1 if it is empty.
	First, Last uint64
	Pending     uint64 // samples that wait for their label
	Dedupe      int    // keys in the newest checkpoint's ring and the journal after it
}

// Generation is one checkpoint.
type Generation struct {
	Generation uint64
	Seq        uint64 // of the last record in it
	Bytes      int    // of the state
}

// Info reads what the file holds of a model; it need not be loaded. Every CRC
// on the way is checked: ErrDamaged if one is wrong.
func (s *Store) Info(name string) (Info, error) {
	s.write.Lock()
	defer s.write.Unlock()
	info := Info{Model: name}
	err := s.view(func(tx *bbolt.Tx) error {
		shape, err := readShape(tx, name)
		if err != nil {
			return err
		}
		if shape == nil {
			return fmt.Errorf("there is none of that name: %w", ErrModel)
		}
		info.Shape = *shape
		m := &model{waiting: make(map[uint64]uint64), ring: newRing(s.opts.Dedupe)}
		if err := m.read(tx, name, &Recovered{}); err != nil {
			return err
		}
		for _, i := range []int{newest(m.slots), 1 - newest(m.slots)} {
			if m.slots[i].generation == 0 {
				continue
			}
			c, err := readCheckpoint(tx, name, i)
			if err != nil {
				return damaged("checkpoint", err)
			}
			info.Checkpoints = append(info.Checkpoints, Generation{Generation: c.generation, Seq: c.seq, Bytes: len(c.state)})
		}
		info.First, info.Last = m.first, m.ledger.last
		info.Pending, info.Dedupe = m.ledger.pending, len(m.ring.keys)
		return nil
	})
	if err != nil {
		return Info{}, fmt.Errorf("persist: inspect %s in %s: %w", name, s.path, err)
	}
	return info, nil
}

// Stats are figures of the whole file.
type Stats struct {
	FileBytes    int64
	FreeBytes    int64 // in the file, to be used again
	WrittenBytes int64 // since Open
	Transactions int64 // since Open
}

// Stats returns figures of the file. ErrMissing and ErrReplaced: it is not, or
// was not, at its path; a Commit, be it of nothing, makes good what can be.
func (s *Store) Stats() (Stats, error) {
	s.write.Lock()
	defer s.write.Unlock()
	if s.broken != nil {
		return Stats{}, s.broken
	}
	if !s.readOnly {
		if err := cmp.Or(s.check(uint32(s.identity.meta.txid)), s.absence); err != nil {
			return Stats{}, fmt.Errorf("persist: look at %s: %w", s.name, err)
		}
	}
	info, err := s.file.Stat()
	if err != nil {
		return Stats{}, fmt.Errorf("persist: look at %s: %w", s.path, err)
	}
	st := s.stats()
	st.FileBytes = info.Size()
	return st, nil
}

// stats counts what bbolt knows: pages of its transactions, and a meta page for each.
func (s *Store) stats() Stats {
	st := s.before
	b := s.db.Stats()
	st.FreeBytes = int64(b.FreePageN+b.PendingPageN) * pageSize
	now, err := s.transaction()
	if err != nil {
		return st
	}
	st.Transactions += int64(now - s.began)
	st.WrittenBytes += b.TxStats.GetPageAlloc() + int64(now-s.began)*pageSize
	return st
}
