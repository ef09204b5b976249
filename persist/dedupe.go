package persist

// ring holds the latest keys of a model, each with the sequence number of its
// record. size bounds the memory.
type ring struct {
	size  int
	keys  []seenKey
	next  int            // index of the next key once the ring is full
	count map[uint64]int // key → number of its entries in keys
}

type seenKey struct{ key, seq uint64 }

func newRing(size int) *ring {
	return &ring{size: size, count: make(map[uint64]int)}
}

// add adds key, and drops the oldest one beyond the size. It ignores key 0.
func (r *ring) add(key, seq uint64) {
	if key == 0 {
		return
	}
	if len(r.keys) < r.size {
		r.keys = append(r.keys, seenKey{key, seq})
	} else {
		old := r.keys[r.next].key
		if r.count[old]--; r.count[old] == 0 {
			delete(r.count, old)
		}
		r.keys[r.next] = seenKey{key, seq}
		r.next = (r.next + 1) % r.size
	}
	r.count[key]++
}

func (r *ring) has(key uint64) bool {
	_, ok := r.count[key]
	return ok
}

// upTo returns the keys of records up to seq, oldest first. Adding them and then
// the keys of the journal's records after seq to an empty ring restores r: the
// keys after seq displace at least as many keys as this list lacks.
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
// model's committed records. It returns false for key 0, and for a key whose
// commit failed or has not returned yet. It never waits for the disk.
func (s *Store) Seen(model string, key uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.models[model]
	return m != nil && m.ring.has(key)
}
