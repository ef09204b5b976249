package persist

import (
	"errors"
	"fmt"
	"os"

	"go.etcd.io/bbolt"

	"edge/online"
)

// Recovered is what the store knows of one model. Nothing in it aliases the file.
type Recovered struct {
	State   []byte           // of the newest checkpoint, nil if there is none
	Seq     uint64           // of the last record in State
	Records []online.Record  // to be learnt after State: Seq+1, Seq+2, …
	Pending []online.Pending // wait for their labels, in order of arrival
	Mark    uint64           // bits that the node gave it
	Loss    Loss             // what a repair when the file was opened could not save of this model
}

// Load returns what is known of a model and readies the store for its commits.
// A model that the store does not know begins empty, with the given shape
// (online.Config.Shape). ErrShape: it was learnt under another one.
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
	err := s.view(func(tx *bbolt.Tx) (err error) {
		stored, err = readShape(tx, name)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case stored == nil && s.readOnly:
		return nil, fmt.Errorf("there is none of that name: %w", ErrModel)
	case stored == nil:
		err = s.begin(name, shape)
	case *stored == "" && shape != "" && !s.readOnly: // a repair lost it
		err = s.reshape(name, shape)
	case *stored != shape && *stored != "":
		err = fmt.Errorf("%w: the state was learnt with %q, the configuration now says %q; restore the configuration, or give the state up with: edge reset --model %s",
			ErrShape, *stored, shape, name)
	}
	if err != nil {
		return nil, err
	}
	m := &model{waiting: make(map[uint64]uint64), ring: newRing(s.opts.Dedupe)}
	r := &Recovered{}
	if err := s.view(func(tx *bbolt.Tx) error { return m.read(tx, name, r) }); err != nil {
		return nil, err
	}
	if s.recovery != nil {
		var found bool
		if r.Loss, found = s.recovery.Models[name]; !found {
			r.Loss.Notes = []string{"nothing of it was found in the damaged file"}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models[name] = m
	return r, nil
}

// readShape returns the stored shape of a model, nil if the file does not know it.
func readShape(tx *bbolt.Tx, name string) (*string, error) {
	key := shapeKey(name)
	value := tx.Bucket([]byte(bucketMeta)).Get(key)
	if value == nil {
		return nil, nil
	}
	payload, err := unseal(kindShape, bucketMeta, key, value)
	if err != nil {
		return nil, damaged("shape", err)
	}
	shape := string(payload)
	return &shape, nil
}

// damaged: the file was sound when it was opened, and no longer is.
func damaged(what string, err error) error {
	return fmt.Errorf("%w since it was opened: %s: %w; restart to repair it", ErrDamaged, what, err)
}

// begin adds an empty model.
func (s *Store) begin(name, shape string) error {
	return s.update(func(tx *bbolt.Tx) error {
		if err := createModel(tx, name); err != nil {
			return err
		}
		var l ledger
		value := seal(nil, kindShape, bucketMeta, shapeKey(name), []byte(shape))
		l.add(value)
		if err := tx.Bucket([]byte(bucketMeta)).Put(shapeKey(name), value); err != nil {
			return err
		}
		return putLedger(tx, name, l)
	})
}

// reshape gives a model whose shape is lost a new one.
func (s *Store) reshape(name, shape string) error {
	return s.update(func(tx *bbolt.Tx) error {
		l, err := readLedger(tx, name)
		if err != nil {
			return err
		}
		b, key := tx.Bucket([]byte(bucketMeta)), shapeKey(name)
		l.remove(b.Get(key))
		value := seal(nil, kindShape, bucketMeta, key, []byte(shape))
		l.add(value)
		if err := b.Put(key, value); err != nil {
			return err
		}
		return putLedger(tx, name, l)
	})
}

func readLedger(tx *bbolt.Tx, name string) (ledger, error) {
	payload, err := unseal(kindLedger, bucketLedger, []byte(name), tx.Bucket([]byte(bucketLedger)).Get([]byte(name)))
	if err != nil {
		return ledger{}, damaged("ledger", err)
	}
	l, err := decodeLedger(payload)
	if err != nil {
		return ledger{}, damaged("ledger", err)
	}
	return l, nil
}

// readCheckpoint returns a generation, nil if the slot is empty. Its state
// aliases the file.
func readCheckpoint(tx *bbolt.Tx, name string, slot int) (*checkpoint, error) {
	bucket := checkpointBucket(name, slot)
	value := tx.Bucket([]byte(bucket)).Get(stateKey)
	if value == nil {
		return nil, nil
	}
	payload, err := unseal(kindCheckpoint, bucket, stateKey, value)
	if err != nil {
		return nil, err
	}
	return decodeCheckpoint(payload)
}

// read fills an empty model, and what Load returns of it.
func (m *model) read(tx *bbolt.Tx, name string, r *Recovered) (err error) {
	if m.ledger, err = readLedger(tx, name); err != nil {
		return err
	}
	r.Mark = m.ledger.mark
	var generations [2]*checkpoint
	for i := range generations {
		if generations[i], err = readCheckpoint(tx, name, i); err != nil {
			return damaged("checkpoint", err)
		}
		if c := generations[i]; c != nil {
			m.slots[i] = slot{c.generation, c.seq}
		}
	}
	if c := generations[newest(m.slots)]; c != nil {
		r.State, r.Seq = append([]byte(nil), c.state...), c.seq
		for _, key := range c.keys {
			m.ring.add(key, c.seq)
		}
	}
	if err := m.readJournal(tx, name, r); err != nil {
		return damaged("journal", err)
	}
	if err := m.readPending(tx, name, r); err != nil {
		return damaged("pending samples", err)
	}
	return nil
}

func (m *model) readJournal(tx *bbolt.Tx, name string, r *Recovered) error {
	bucket := journalBucket(name)
	b := tx.Bucket([]byte(bucket))
	m.first = m.ledger.last + 1
	if k, _ := b.Cursor().First(); k != nil {
		m.first = place(k)
	}
	if r.State == nil { // after a repair the journal may begin later than at 1
		r.Seq = m.first - 1
	}
	for seq := r.Seq + 1; seq <= m.ledger.last; seq++ {
		key := order(seq)
		payload, err := unseal(kindRecord, bucket, key, b.Get(key))
		if err != nil {
			return fmt.Errorf("record %d: %w", seq, err)
		}
		ev, err := decodeRecord(payload)
		if err != nil {
			return fmt.Errorf("record %d: %w", seq, err)
		}
		m.ring.add(ev.Key, seq)
		r.Records = append(r.Records, online.Record{Model: name, Seq: seq, Event: ev})
	}
	return nil
}

func (m *model) readPending(tx *bbolt.Tx, name string, r *Recovered) error {
	bucket := pendingBucket(name)
	return tx.Bucket([]byte(bucket)).ForEach(func(key, value []byte) error {
		payload, err := unseal(kindPending, bucket, key, value)
		if err != nil {
			return err
		}
		p, err := decodePending(payload)
		if err != nil {
			return err
		}
		p.Model = name
		m.arrival = place(key)
		m.waiting[p.Key] = m.arrival
		r.Pending = append(r.Pending, p)
		return nil
	})
}

// OpenReadOnly opens the state file at path for inspection: nothing is written,
// repaired or compacted, and other readers may do the same. ErrLocked while a
// daemon uses the file; ErrDamaged if it needs repair.
func OpenReadOnly(path string, opts Options) (*Store, error) {
	s, err := openReadOnly(path, opts.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("persist: open %s to read: %w", path, err)
	}
	return s, nil
}

func openReadOnly(path string, opts Options) (*Store, error) {
	file, err := lock(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, opts: opts, readOnly: true, file: file, models: make(map[string]*model)}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if err := checkSound(file, info.Size()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	db, err := openBolt(file, opts, true)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return s, s.use(db, file)
}
