package persist

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"
)

// ledger says what must be there of one model. It is rewritten by every
// transaction that touches the model.
type ledger struct {
	last    uint64 // seq of the last record of the journal, also after truncation
	pending uint64 // samples that wait
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
	if l.mark != 0 { // an absent mark is 0
		dst = binary.AppendUvarint(dst, l.mark)
	}
	return dst
}

func decodeLedger(payload []byte) (ledger, error) {
	d := decoder{rest: payload}
	l := ledger{last: d.uvarint(), pending: d.uvarint(), entries: d.uvarint(), sum: d.uint64()}
	if len(d.rest) > 0 {
		l.mark = d.uvarint()
	}
	if err := d.end(); err != nil {
		return ledger{}, fmt.Errorf("ledger: %w", err)
	}
	return l, nil
}

// stamp writes the transaction's number into its own tree: a meta page whose
// tree bears an older one shows that a disk lost what it had said it wrote.
func stamp(tx *bbolt.Tx) error {
	key := []byte(keyStamp)
	value := seal(nil, kindStamp, bucketLedger, key, binary.LittleEndian.AppendUint64(nil, uint64(uint32(tx.ID()))))
	return tx.Bucket([]byte(bucketLedger)).Put(key, value)
}

func decodeStamp(payload []byte) (uint64, error) {
	d := decoder{rest: payload}
	n := d.uint64()
	if err := d.end(); err != nil {
		return 0, fmt.Errorf("stamp: %w", err)
	}
	return n, nil
}

// draft is what a transaction is about to change of one model. The model
// itself changes when the transaction has succeeded.
type draft struct {
	name    string
	store   *Store
	tx      *bbolt.Tx
	base    *model
	ledger  ledger
	first   uint64 // oldest record of the journal, last+1 if there is none
	slots   [2]slot
	arrival uint64            // of the youngest pending sample
	moved   map[uint64]uint64 // sample's key → its arrival, 0 if it no longer waits
	keys    []seenKey         // that become seen
}

// drafts are the models that one transaction touches.
type drafts struct {
	store *Store
	tx    *bbolt.Tx
	list  []*draft
}

// of returns the draft of a model, and begins one.
func (ds *drafts) of(name string) (*draft, error) {
	for _, d := range ds.list {
		if d.name == name {
			return d, nil
		}
	}
	m := ds.store.models[name] // changes under s.write only, which the caller holds
	if m == nil {
		return nil, fmt.Errorf("model %q is not loaded; call Load first: %w", name, ErrModel)
	}
	d := &draft{name: name, store: ds.store, tx: ds.tx, base: m, ledger: m.ledger, first: m.first,
		slots: m.slots, arrival: m.arrival, moved: make(map[uint64]uint64)}
	ds.list = append(ds.list, d)
	return d, nil
}

// maxBuffer is the most that is kept of a transaction's buffer for the next one.
const maxBuffer = 1 << 20

// change runs fn in one transaction. When that has succeeded the models become
// what their drafts say; otherwise nothing changes. The caller holds s.write.
func (s *Store) change(fn func(*drafts) error) error {
	ds := &drafts{store: s}
	err := s.update(func(tx *bbolt.Tx) error {
		ds.tx, ds.list = tx, nil
		s.buf = s.buf[:0]
		if err := fn(ds); err != nil {
			return err
		}
		return ds.finish()
	})
	if cap(s.buf) > maxBuffer {
		s.buf = nil
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
	start := len(d.store.buf)
	d.store.buf = seal(d.store.buf, k, bucket, key, payload)
	return d.putSealed(b, key, d.store.buf[start:])
}

// putSealed writes a value, which must stay as it is until the transaction ends.
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

// apply makes the model what the draft says.
func (d *draft) apply() {
	m := d.base
	m.ledger, m.first, m.slots, m.arrival = d.ledger, d.first, d.slots, d.arrival
	for key, arrival := range d.moved {
		if arrival == 0 {
			delete(m.waiting, key)
		} else {
			m.waiting[key] = arrival
		}
	}
	for _, k := range d.keys {
		m.ring.add(k.key, k.seq)
	}
}
