package persist

import (
	"fmt"

	"edge/online"
)

// Recovered holds the stored state of one model. Nothing in it aliases the file.
type Recovered struct {
	State   []byte           // of the newest checkpoint, nil without a checkpoint
	Seq     uint64           // of the last record in State
	Records []online.Record  // to learn after State: Seq+1, Seq+2, …
	Pending []online.Pending // samples without a label yet, and some labelled ones, for corrections, in order of arrival
	Mark    uint64           // the node's bits, see online.Mark
	Loss    Loss             // of the repair when the file was opened
}

// Waiting is the number of samples without a label.
func (r *Recovered) Waiting() (n int) {
	for i := range r.Pending {
		if r.Pending[i].Label == "" {
			n++
		}
	}
	return n
}

// Load returns the stored state of a model; Commit and Checkpoint accept the model
// afterwards. Load adds a model that the file does not have, empty and with the
// given shape (online.Config.Shape).
//
// Errors: ErrShape if the stored state has another shape, online.ErrNewer if only a newer
// program can read it; ErrModel if the name is
// not acceptable, or a read-only store does not have the model; ErrDamaged.
func (s *Store) Load(name, shape string) (*Recovered, error) {
	s.write.Lock()
	defer s.write.Unlock()
	r, err := s.load(name, shape)
	if err != nil {
		return nil, fmt.Errorf("persist: load %s from %s: %w", name, s.path, err)
	}
	return r, nil
}

func (s *Store) load(name, shape string) (*Recovered, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if len(shape) > maxShape {
		return nil, fmt.Errorf("shape of %d bytes, at most %d: %w", len(shape), maxShape, errTooLarge)
	}
	var stored *string
	err := s.view(func(t tree) (err error) {
		stored, err = readShape(t, name)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case stored == nil && s.readOnly:
		return nil, errUnknown
	case stored == nil:
		err = s.addModel(name, shape)
	case *stored == shape:
	case *stored == "" || *stored == online.FormerShape(shape): // a repair has lost it, or an earlier program wrote it
		if !s.readOnly {
			err = s.replaceShape(name, shape)
		}
	default:
		if _, err = online.ConfigOfShape(*stored); err == nil {
			err = fmt.Errorf("%w: %s; restore the configuration, or discard the state with: edge reset --model %s --state %s",
				ErrShape, online.ShapeChange(*stored, shape), name, s.name)
		}
	}
	if err != nil {
		return nil, err
	}
	m := &model{pending: make(map[uint64]uint64), ring: newRing(s.opts.Dedupe)}
	r := &Recovered{}
	if err := s.view(func(t tree) error { return m.read(t, name, r) }); err != nil {
		return nil, err
	}
	if s.recovery != nil {
		var found bool
		if r.Loss, found = s.recovery.Models[name]; !found {
			r.Loss = Loss{More: true, Notes: []string{"the damaged file contains no part of this model"}}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models[name] = m
	return r, nil
}

// damaged wraps the error of a part of the file that was sound when the file was
// opened, and no longer is.
func damaged(what string, err error) error {
	return fmt.Errorf("%w since it was opened: %s: %w; restart to repair it", ErrDamaged, what, err)
}

func readLedger(t tree, name string) (ledger, error) {
	payload, err := unseal(kindLedger, bucketLedger, []byte(name), t.get(bucketLedger, []byte(name)))
	if err != nil {
		return ledger{}, damaged("ledger", err)
	}
	l, err := decodeLedger(payload)
	if err != nil {
		return ledger{}, damaged("ledger", err)
	}
	return l, nil
}

// readCheckpoints returns both generations of a model, nil for an empty slot, and the slots. The
// states alias the file.
func readCheckpoints(t tree, name string) (all [2]*checkpoint, slots [2]slot, err error) {
	for i := range all {
		if err := t.read(kindCheckpoint, checkpointBucket(name, i), stateKey, "checkpoint", func(payload []byte) (err error) {
			all[i], err = decodeCheckpoint(payload)
			return err
		}); err != nil {
			return all, slots, err
		}
		if c := all[i]; c != nil {
			slots[i] = slot{c.generation, c.seq}
		}
	}
	return all, slots, nil
}

// read fills an empty model, and r with the result of Load.
func (m *model) read(t tree, name string, r *Recovered) (err error) {
	if m.ledger, err = readLedger(t, name); err != nil {
		return err
	}
	r.Mark = m.ledger.mark
	generations, slots, err := readCheckpoints(t, name)
	if err != nil {
		return err
	}
	m.slots = slots
	if c := generations[newest(slots)]; c != nil {
		r.State, r.Seq = append([]byte(nil), c.state...), c.seq
		for _, key := range c.keys {
			m.ring.add(key, c.seq)
		}
	}
	if err := m.readJournal(t, name, r); err != nil {
		return damaged("journal", err)
	}
	if err := m.readPending(t, name, r); err != nil {
		return damaged("pending samples", err)
	}
	return nil
}

func (m *model) readJournal(t tree, name string, r *Recovered) error {
	bucket := journalBucket(name)
	m.first = m.ledger.last + 1
	if err := t.each(bucket, "", func(key, _ []byte) error {
		m.first = keyNumber(key)
		return errEnough
	}); err != nil {
		return err
	}
	if r.State == nil { // after a repair the journal may begin later than at 1
		r.Seq = m.first - 1
	}
	for seq := r.Seq + 1; seq <= m.ledger.last; seq++ {
		ev, err := readRecord(t, bucket, seq)
		if err != nil {
			return err
		}
		m.ring.add(ev.Key, seq)
		r.Records = append(r.Records, online.Record{Model: name, Seq: seq, Event: ev})
	}
	return nil
}

// readRecord reads a record of a journal.
func readRecord(t tree, bucket string, seq uint64) (online.Event, error) {
	key := numberKey(seq)
	payload, err := unseal(kindRecord, bucket, key, t.get(bucket, key))
	if err != nil {
		return online.Event{}, fmt.Errorf("record %d: %w", seq, err)
	}
	ev, err := decodeRecord(payload)
	if err != nil {
		return online.Event{}, fmt.Errorf("record %d: %w", seq, err)
	}
	return ev, nil
}

// Records implements online.Journal. The records are those after the newest
// checkpoint, or later.
//
// Errors: ErrModel if the file does not have the model; ErrDamaged.
func (s *Store) Records(name string, seq uint64, n int) (records []online.Record, err error) {
	s.write.Lock()
	defer s.write.Unlock()
	err = s.view(func(t tree) error {
		bucket := journalBucket(name)
		if t.tx.Bucket([]byte(bucket)) == nil {
			return errUnknown
		}
		l, err := readLedger(t, name)
		if err != nil {
			return err
		}
		for at := seq + 1; at <= l.last && len(records) < n; at++ {
			ev, err := readRecord(t, bucket, at)
			if err != nil {
				return damaged("journal", err)
			}
			records = append(records, online.Record{Model: name, Seq: at, Event: ev})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("persist: records of %s from %s: %w", name, s.path, err)
	}
	return records, nil
}

func (m *model) readPending(t tree, name string, r *Recovered) error {
	bucket := pendingBucket(name)
	return t.each(bucket, "", func(key, value []byte) error {
		payload, err := unseal(kindPending, bucket, key, value)
		if err != nil {
			return err
		}
		p, err := decodePending(payload)
		if err != nil {
			return err
		}
		p.Model = name
		m.arrival = keyNumber(key)
		m.pending[p.Key] = m.arrival
		r.Pending = append(r.Pending, p)
		return nil
	})
}
