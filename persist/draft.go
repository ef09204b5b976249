package persist

import (
	"errors"
	"fmt"
	"io/fs"

	"go.etcd.io/bbolt"
)

// draft collects the changes that a commit makes to one model. The model
// itself changes after the commit has succeeded.
type draft struct {
	name    string
	all     *drafts
	store   *Store
	model   *model
	ledger  ledger
	first   uint64 // oldest record of the journal, last+1 if it is empty
	slots   [2]slot
	arrival uint64            // of the youngest pending sample
	changed map[uint64]uint64 // sample's key → its arrival, 0 if it was dropped
	keys    []seenKey         // of the new records
}

// drafts are the models that one commit touches, and its changes.
type drafts struct {
	store   *Store
	tree    tree // before the commit
	list    []*draft
	changes []change // in their order
	latest  changes  // the last one of each place
}

// get returns a value as the changes and the redo log leave it.
func (ds *drafts) get(bucket string, key []byte) []byte {
	at := place{bucket, string(key)}
	if value, ok := ds.latest[at]; ok {
		return value
	}
	return ds.tree.get(bucket, key)
}

// set changes a value, which must not change until the commit ends; nil deletes it.
func (ds *drafts) set(bucket string, key, value []byte) {
	at := place{bucket, string(key)}
	ds.changes = append(ds.changes, change{at, value})
	ds.latest[at] = value
}

// seal returns a sealed value. The buffer that holds it is used again by the next commit.
func (ds *drafts) seal(k kind, bucket string, key, payload []byte) []byte {
	values := &ds.store.scratch.values
	start := len(*values)
	*values = seal(*values, k, bucket, key, payload)
	return (*values)[start:len(*values):len(*values)]
}

// of returns the draft of a model, and creates it at the first call.
func (ds *drafts) of(name string) (*draft, error) {
	for _, d := range ds.list {
		if d.name == name {
			return d, nil
		}
	}
	m := ds.store.models[name] // changes only under s.write, which the caller holds
	if m == nil {
		return nil, fmt.Errorf("model %q is not loaded; call Load first: %w", name, ErrModel)
	}
	d := &draft{name: name, all: ds, store: ds.store, model: m, ledger: m.ledger, first: m.first,
		slots: m.slots, arrival: m.arrival, changed: make(map[uint64]uint64)}
	ds.list = append(ds.list, d)
	return d, nil
}

// maxBuffer bounds each buffer that a commit leaves for the next one, in bytes.
const maxBuffer = 1 << 20

// way is the way in which changes become durable.
type way int

const (
	inTree way = iota // a transaction
	inLog             // the redo log, if they fit in it
	later             // with the next changes, if few wait
)

// change collects the changes of fn, makes them durable, and applies the drafts to the
// models if that succeeds. The caller holds s.write.
func (s *Store) change(how way, fn func(*drafts) error) error {
	if s.readOnly {
		return fs.ErrPermission
	}
	if err := s.ready(); err != nil {
		return err
	}
	ds := &drafts{store: s, latest: changes{}}
	s.scratch.values = s.scratch.values[:0]
	err := viewTx(s.db, func(tx *bbolt.Tx) error {
		ds.tree = tree{tx, s.log.latest}
		if err := fn(ds); err != nil {
			return err
		}
		ds.putLedgers()
		return nil
	})
	switch {
	case errors.Is(err, errPanic):
		err = s.panicked(err)
	case err == nil && (how != later || !s.log.postpone(ds.changes)):
		if err = errNoRoom; how != inTree {
			err = s.appendRedo(ds.changes)
		}
		if errors.Is(err, errNoRoom) {
			err = s.update(ds.apply)
		}
	}
	if cap(s.scratch.values) > maxBuffer { // it holds each payload
		s.scratch.values, s.scratch.payload = nil, nil
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range ds.list {
		d.apply()
	}
	return nil
}

// putLedgers sets the ledgers of the models.
func (ds *drafts) putLedgers() {
	for _, d := range ds.list {
		key := []byte(d.name)
		ds.set(bucketLedger, key, ds.seal(kindLedger, bucketLedger, key, encodeLedger(d.ledger)))
	}
}

// apply makes the changes in a transaction, in their order: to sort them, as changes.apply does,
// would take a third of a checkpoint that deletes many records.
func (ds *drafts) apply(tx *bbolt.Tx) error {
	for _, c := range ds.changes {
		if err := c.put(tx, c.value); err != nil {
			return err
		}
	}
	return nil
}

// put seals a value and sets it.
func (d *draft) put(k kind, bucket string, key, payload []byte) {
	d.putSealed(bucket, key, d.all.seal(k, bucket, key, payload))
}

// putSealed sets a value, which must not change until the commit ends.
func (d *draft) putSealed(bucket string, key, value []byte) {
	if old := d.all.get(bucket, key); old != nil {
		d.ledger.remove(old)
	}
	d.all.set(bucket, key, value)
	d.ledger.add(value)
}

func (d *draft) delete(bucket string, key []byte) error {
	old := d.all.get(bucket, key)
	if old == nil {
		return fmt.Errorf("key %x is missing: %w", key, ErrDamaged)
	}
	d.ledger.remove(old)
	d.all.set(bucket, key, nil)
	return nil
}

// apply makes the changes in the model.
func (d *draft) apply() {
	m := d.model
	m.ledger, m.first, m.slots, m.arrival = d.ledger, d.first, d.slots, d.arrival
	for key, arrival := range d.changed {
		if arrival == 0 {
			delete(m.pending, key)
		} else {
			m.pending[key] = arrival
		}
	}
	for _, k := range d.keys {
		m.ring.add(k.key, k.seq)
	}
}
