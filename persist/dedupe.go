package persist

// ring remembers the latest keys of a model, each with the sequence number of
// the record that brought it. Memory is bounded by its size.
type ring struct {
	size int
	keys []seenKey
	next int            // where the next key goes once the ring is full
	held map[uint64]int // key → how often it is in keys
}

type seenKey struct{ key, seq uint64 }

func newRing(size int) *ring {
	return &ring{size: size, held: make(map[uint64]int)}
}

// add remembers key and forgets the oldest one beyond the size; key 0 is no key.
func (r *ring) add(key, seq uint64) {
	if key == 0 {
		return
	}
	if len(r.keys) < r.size {
		r.keys = append(r.keys, seenKey{key, seq})
	} else {
		old := r.keys[r.next].key
		if r.held[old]--; r.held[old] == 0 {
			delete(r.held, old)
		}
		r.keys[r.next] = seenKey{key, seq}
		r.next = (r.next + 1) % r.size
	}
	r.held[key]++
}

func (r *ring) has(key uint64) bool {
	_, ok := r.held[key]
	return ok
}

// upTo returns the keys of records up to seq, oldest first. Together with the
// keys of the journal's records after seq they give the ring back: whatever of
// it is newer than seq pushes out at least as many keys as are missing here.
func (r *ring) upTo(seq uint64) []uint64 {
	keys := make([]uint64, 0, len(r.keys))
	for i := range r.keys {
		if k := r.keys[(r.next+i)%len(r.keys)]; k.seq <= seq {
			keys = append(keys, k.key)
		}
	}
	return keys
}

// Seen reports whether key is among the latest Options.Dedupe keys of the
// model's committed records. Key 0 is never seen, nor is a key whose commit
// failed or has not returned yet. It never waits for the disk.
func (s *Store) Seen(model string, key uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.models[model]
	return m != nil && m.ring.has(key)
}
