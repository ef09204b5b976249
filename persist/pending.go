package persist

import (
	"encoding/binary"
	"fmt"
	"time"

	"edge/online"
)

// maxClock is half of what a clock can count: 146 years.
const maxClock = time.Duration(1 << 62)

// appendPending appends the payload of a pending sample; the key of the value is the
// number of its arrival.
//
//	sample's key, X, optional Probs, extras
func appendPending(dst []byte, p *online.Pending) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, p.Key)
	dst = appendFloats(dst, p.X)
	dst = appendOptionalFloats(dst, p.Probs)
	return appendExtras(dst, extras{
		epoch: p.Epoch, name: p.Label, by: p.By, clock: p.Clock, meta: p.Meta, identity: p.Identity, parts: p.Parts,
		device: p.Device, from: p.From, to: p.To,
	})
}

// decodePending takes the payload of a pending sample apart; nothing in the result aliases it.
func decodePending(payload []byte) (online.Pending, error) {
	d := newDecoder(payload)
	p := online.Pending{Key: d.Uint64()}
	p.X = d.floats(d.Count(maxFeatures, 8, "number of elements"))
	p.Probs = d.optionalFloats()
	e := d.extras(ofPending)
	p.Epoch, p.Label, p.By, p.Clock, p.Meta, p.Identity, p.Parts = e.epoch, e.name, e.by, e.clock, e.meta, e.identity, e.parts
	p.Device, p.From, p.To = e.device, e.from, e.to
	if err := d.End(); err != nil {
		return online.Pending{}, fmt.Errorf("pending sample: %w", err)
	}
	if err := checkPending(&p); err != nil {
		return online.Pending{}, fmt.Errorf("pending sample: %w", err)
	}
	if p.Clock > maxClock { // the clock, which goes on from here, would overflow
		return online.Pending{}, fmt.Errorf("pending sample: arrival at %v, at most %v: %w", p.Clock, maxClock, errEncoding)
	}
	return p, nil
}

// checkPending returns an error for a sample that decodePending would not accept.
func checkPending(p *online.Pending) error {
	switch {
	case len(p.Label) > maxLabel:
		return fmt.Errorf("label of %d bytes, at most %d: %w", len(p.Label), maxLabel, errTooLarge)
	case len(p.Device) > maxDevice:
		return fmt.Errorf("device of %d bytes, at most %d: %w", len(p.Device), maxDevice, errTooLarge)
	case p.Clock < 0:
		return fmt.Errorf("arrival at %v, want 0 or later: %w", p.Clock, errEncoding)
	}
	return checkSample(p.X, p.Probs, p.Parts, p.Meta.Last)
}

// arrivalOf returns the arrival of a pending sample, 0 if it is not pending.
func (d *draft) arrivalOf(key uint64) uint64 {
	if a, ok := d.changed[key]; ok {
		return a
	}
	return d.model.pending[key]
}

func (d *draft) addPending(p *online.Pending) error {
	if err := checkPending(p); err != nil {
		return err
	}
	if err := d.dropPending(p.Key); err != nil {
		return err
	}
	if d.ledger.pending >= maxPending {
		return fmt.Errorf("%d samples are pending already: %w", d.ledger.pending, errTooLarge)
	}
	bucket := pendingBucket(d.name)
	d.arrival++
	d.store.scratch.payload = appendPending(d.store.scratch.payload[:0], p)
	d.put(kindPending, bucket, numberKey(d.arrival), d.store.scratch.payload)
	d.ledger.pending++
	d.changed[p.Key] = d.arrival
	return nil
}

func (d *draft) dropPending(key uint64) error {
	a := d.arrivalOf(key)
	if a == 0 {
		return nil
	}
	if err := d.delete(pendingBucket(d.name), numberKey(a)); err != nil {
		return err
	}
	d.ledger.pending--
	d.changed[key] = 0
	return nil
}
