package persist

import (
	"encoding/binary"
	"errors"
	"fmt"

	"edge/online"
)

// checkpoint is one generation of a model's state.
type checkpoint struct {
	generation uint64   // 1, 2, 3, …; the higher is newer
	seq        uint64   // of the last record in the state
	keys       []uint64 // of the dedupe ring, up to seq, oldest first
	state      []byte
}

// slot describes one of the two slots for generations.
type slot struct {
	generation uint64 // 0: the slot is empty
	seq        uint64
}

var stateKey = []byte("state")

// head returns the part of a checkpoint's payload that precedes the state:
//
//	generation, seq, number of keys, keys
func (c *checkpoint) head() []byte {
	dst := binary.AppendUvarint(nil, c.generation)
	dst = binary.AppendUvarint(dst, c.seq)
	dst = binary.AppendUvarint(dst, uint64(len(c.keys)))
	for _, key := range c.keys {
		dst = binary.LittleEndian.AppendUint64(dst, key)
	}
	return dst
}

// decodeCheckpoint takes the payload of a checkpoint apart; its state aliases
// the payload.
func decodeCheckpoint(payload []byte) (*checkpoint, error) {
	d := newDecoder(payload)
	c := &checkpoint{generation: d.Uint(), seq: d.Uint()}
	if n := d.Count(maxDedupe, 8, "number of elements"); n > 0 {
		c.keys = make([]uint64, n)
		for i := range c.keys {
			c.keys[i] = d.Uint64()
		}
	}
	c.state = d.Bytes(d.Len(), "state")
	if d.Err() == nil && (c.generation == 0 || len(c.state) == 0 || len(c.state) > maxState) {
		d.Fail("generation %d with a state of %d bytes", c.generation, len(c.state))
	}
	if err := d.End(); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	return c, nil
}

// newest returns the index of the newer generation; both slots may be empty.
func newest(slots [2]slot) int {
	if slots[1].generation > slots[0].generation {
		return 1
	}
	return 0
}

// Checkpoint makes the state of a model durable; seq is the sequence number of the
// last record in it. One transaction writes the state over the older of the two
// generations, and deletes the records that the remaining generation contains.
//
// Checkpoint ignores Options.MaxSize, because checkpoints free space in a full
// file; where the disk is full it first deletes the older generation. After an
// error the previous newest state remains, and the caller can repeat the call. The stored value
// takes the memory of state, where its capacity is large enough, until Checkpoint returns.
func (s *Store) Checkpoint(model string, seq uint64, state []byte) error {
	s.write.Lock()
	defer s.write.Unlock()
	err := s.checkpoint(model, seq, state)
	if errors.Is(err, online.ErrLimit) {
		err = s.overLimit(func() error { return s.checkpoint(model, seq, state) })
	}
	if errors.Is(err, ErrFull) {
		if e := s.dropOlder(model); e == nil {
			err = s.checkpoint(model, seq, state)
		}
	}
	dropCache(s.file, 0, 0)
	if err != nil {
		return fmt.Errorf("persist: checkpoint %s at %d to %s: %w%s", model, seq, s.path, err, diskRemedy(err))
	}
	return nil
}

func (s *Store) checkpoint(model string, seq uint64, state []byte) error {
	if len(state) == 0 || len(state) > maxState {
		return fmt.Errorf("state of %d bytes, want 1 to %d: %w", len(state), maxState, errTooLarge)
	}
	moved := state
	defer func() { copy(state, moved) }()
	return s.change(inTree, func(ds *drafts) error {
		d, err := ds.of(model)
		if err != nil {
			return err
		}
		kept := newest(d.slots)
		switch {
		case seq > d.ledger.last:
			return fmt.Errorf("the journal ends at %d: %w", d.ledger.last, ErrSequence)
		case seq < d.slots[kept].seq:
			return fmt.Errorf("a checkpoint at %d exists: %w", d.slots[kept].seq, ErrSequence)
		}
		c := &checkpoint{generation: d.slots[kept].generation + 1, seq: seq, keys: d.model.ring.upTo(seq)}
		bucket := checkpointBucket(model, 1-kept)
		value, at := sealAround(state, kindCheckpoint, bucket, stateKey, c.head())
		moved = value[at:]
		d.putSealed(bucket, stateKey, value)
		if d.slots[kept].generation > 0 {
			if err := d.truncate(d.slots[kept].seq); err != nil {
				return err
			}
		}
		d.slots[1-kept] = slot{c.generation, seq}
		return nil
	})
}

// dropOlder deletes the older generation, and the records that only it needed.
func (s *Store) dropOlder(model string) error {
	return s.change(inTree, func(ds *drafts) error {
		d, err := ds.of(model)
		if err != nil {
			return err
		}
		kept := newest(d.slots)
		if d.slots[1-kept].generation == 0 {
			return nil
		}
		s.opts.Log.Warn("disk is full: deleting the older checkpoint", "model", model, "path", s.path)
		if err := d.delete(checkpointBucket(model, 1-kept), stateKey); err != nil {
			return err
		}
		d.slots[1-kept] = slot{}
		return d.truncate(d.slots[kept].seq)
	})
}

// State returns the state of a model's newest checkpoint, or of the older one, and
// the seq of the last record in it. It returns ErrModel if the file does not
// contain the model, ErrCheckpoint if it does not contain that checkpoint.
func (s *Store) State(model string, older bool) (state []byte, seq uint64, err error) {
	if err := checkName(model); err != nil {
		return nil, 0, fmt.Errorf("persist: %w", err)
	}
	s.write.Lock()
	defer s.write.Unlock()
	err = s.view(func(t tree) error {
		if t.tx.Bucket([]byte(checkpointBucket(model, 0))) == nil {
			return errUnknown
		}
		generations, slots, err := readCheckpoints(t, model)
		if err != nil {
			return err
		}
		at := newest(slots)
		if older {
			at = 1 - at
		}
		c := generations[at]
		if c == nil {
			return ErrCheckpoint
		}
		state, seq = append([]byte(nil), c.state...), c.seq
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("persist: state of %s in %s: %w", model, s.path, err)
	}
	return state, seq, nil
}
