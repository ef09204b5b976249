package persist

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"
)

// ledger counts the entries that the file must contain of one model. Every
// commit that touches the model rewrites it.
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

// encodeLedger returns the payload of a ledger.
func encodeLedger(l ledger) []byte {
	dst := binary.AppendUvarint(nil, l.last)
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
	value := seal(nil, kindLedger, bucketLedger, []byte(name), encodeLedger(l))
	return tx.Bucket([]byte(bucketLedger)).Put([]byte(name), value)
}

// stamp writes the transaction's number into its own tree: an older number than
// that of the meta page shows that the disk lost a write that it had confirmed.
func stamp(tx *bbolt.Tx) error {
	key := []byte(keyStamp)
	value := seal(nil, kindStamp, bucketLedger, key, binary.LittleEndian.AppendUint64(nil, uint64(uint32(tx.ID()))))
	return tx.Bucket([]byte(bucketLedger)).Put(key, value)
}

// decodeNumber takes the payload of a stamp or an epoch apart.
func decodeNumber(payload []byte) (uint64, error) {
	d := newDecoder(payload)
	n := d.Uint64()
	if err := d.End(); err != nil {
		return 0, fmt.Errorf("number: %w", err)
	}
	return n, nil
}
