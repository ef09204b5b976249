package persist

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"
)

// ledger counts the entries that the file must contain of one model. Every
// transaction that touches the model rewrites it.
type ledger struct {
	last    uint64 // seq of the last record of the journal, also after truncation
	pending uint64 // samples whose labels have not come
	entries uint64 // values of this model, in all its buckets
	sum     uint64 // of their CRCs
	mark    uint64 // online.Mark
}

func (l *ledger) add(value []byte) {
	l.entries++
	l.sum += uint64(sealOf(value))
}

func (l *ledger) remove(value []byte) {
	l.entries--
	l.sum -= uint64(sealOf(value))
}

func appendLedger(dst []byte, l ledger) []byte {
	dst = binary.AppendUvarint(dst, l.last)
	dst = binary.AppendUvarint(dst, l.pending)
	dst = binary.AppendUvarint(dst, l.entries)
	dst = binary.LittleEndian.AppendUint64(dst, l.sum)
	if l.mark != 0 { // decodes as 0 if absent
		dst = binary.AppendUvarint(dst, l.mark)
	}
	return dst
}

func decodeLedger(payload []byte) (ledger, error) {
	d := newDecoder(payload)
	l := ledger{last: d.Uint(), pending: d.Uint(), entries: d.Uint(), sum: d.Uint64()}
	if d.Len() > 0 {
		l.mark = d.Uint()
	}
	if err := d.End(); err != nil {
		return ledger{}, fmt.Errorf("ledger: %w", err)
	}
	return l, nil
}

// putLedger writes a model's ledger.
func putLedger(tx *bbolt.Tx, name string, l ledger) error {
	value := seal(nil, kindLedger, bucketLedger, []byte(name), appendLedger(nil, l))
	return tx.Bucket([]byte(bucketLedger)).Put([]byte(name), value)
}

// stamp writes the transaction's number into its own tree: an older number than
// that of the meta page shows that the disk lost a write that it had confirmed.
func stamp(tx *bbolt.Tx) error {
	key := []byte(keyStamp)
	value := seal(nil, kindStamp, bucketLedger, key, binary.LittleEndian.AppendUint64(nil, uint64(uint32(tx.ID()))))
	return tx.Bucket([]byte(bucketLedger)).Put(key, value)
}

func decodeStamp(payload []byte) (uint64, error) {
	d := newDecoder(payload)
	n := d.Uint64()
	if err := d.End(); err != nil {
		return 0, fmt.Errorf("stamp: %w", err)
	}
	return n, nil
}

// draft collects the changes that a transaction makes to one model. The model
// itself changes after the transaction has succeeded.
type draft struct {
	name    string
	store   *Store
	tx      *bbolt.Tx
	model   *model
	ledger  ledger
	first   uint64 // oldest record of the journal, last+1 if it is empty
	slots   [2]slot
	arrival uint64            // of the youngest pending sample
	changed map[uint64]uint64 // sample's key → its arrival, 0 if it was dropped
	keys    []seenKey         // of the new records
}

// drafts are the models that one transaction touches.
type drafts struct {
	store *Store
	tx    *bbolt.Tx
	list  []*draft
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
	d := &draft{name: name, store: ds.store, tx: ds.tx, model: m, ledger: m.ledger, first: m.first,
		slots: m.slots, arrival: m.arrival, changed: make(map[uint64]uint64)}
	ds.list = append(ds.list, d)
	return d, nil
}

// maxBuffer bounds the buffer that a transaction leaves for the next one, in bytes.
const maxBuffer = 1 << 20

// change runs fn in one transaction, and applies the drafts to the models if the
// transaction succeeds. The caller holds s.write.
func (s *Store) change(fn func(*drafts) error) error {
	ds := &drafts{store: s}
	err := s.update(func(tx *bbolt.Tx) error {
		ds.tx, ds.list = tx, nil
		s.scratch.values = s.scratch.values[:0]
		if err := fn(ds); err != nil {
			return err
		}
		return ds.finish()
	})
	if cap(s.scratch.values) > maxBuffer {
		s.scratch.values = nil
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

// finish writes the ledgers.
func (ds *drafts) finish() error {
	for _, d := range ds.list {
		if err := putLedger(ds.tx, d.name, d.ledger); err != nil {
			return err
		}
	}
	return nil
}

// put seals a value and writes it.
func (d *draft) put(b *bbolt.Bucket, k kind, bucket string, key, payload []byte) error {
	start := len(d.store.scratch.values)
	d.store.scratch.values = seal(d.store.scratch.values, k, bucket, key, payload)
	return d.putSealed(b, key, d.store.scratch.values[start:])
}

// putSealed writes a value, which must not change until the transaction ends.
func (d *draft) putSealed(b *bbolt.Bucket, key, value []byte) error {
	if old := b.Get(key); old != nil {
		d.ledger.remove(old)
	}
	if err := b.Put(key, value); err != nil {
		return err
	}
	d.ledger.add(value)
	return nil
}

func (d *draft) delete(b *bbolt.Bucket, key []byte) error {
	old := b.Get(key)
	if old == nil {
		return fmt.Errorf("key %x is missing: %w", key, ErrDamaged)
	}
	d.ledger.remove(old)
	return b.Delete(key)
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
