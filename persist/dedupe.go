package persist

// ring holds the latest keys of a model, each with the sequence number of its
// record. size bounds the memory.
type ring struct {
	size  int
	keys  []seenKey
	next  int      // index of the next key once the ring is full
	table []uint32 // hash table with linear probing: 1 + index in keys of the latest entry of each key, 0: free; half of it at least is free
}

type seenKey struct{ key, seq uint64 }

func newRing(size int) *ring { return &ring{size: size, table: make([]uint32, 16)} }

// add adds key, and drops the oldest one beyond the size. It ignores key 0.
func (r *ring) add(key, seq uint64) {
	if key == 0 {
		return
	}
	at := len(r.keys)
	if at < r.size {
		r.keys = append(r.keys, seenKey{key, seq})
	} else {
		at = r.next
		r.forget(at)
		r.keys[at] = seenKey{key, seq}
		r.next = (r.next + 1) % r.size
	}
	if 2*len(r.keys) > len(r.table) {
		r.table = make([]uint32, 2*len(r.table))
		for i := range at {
			r.table[r.find(r.keys[i].key)] = uint32(i + 1)
		}
	}
	r.table[r.find(key)] = uint32(at + 1)
}

// home is the place in the table where the search for key begins.
func (r *ring) home(key uint64) int {
	return int(key * 0x9E3779B97F4A7C15 >> 32 & uint64(len(r.table)-1)) // the golden ratio
}

// find returns the place of key in the table, or the free one where it would be.
func (r *ring) find(key uint64) int {
	i := r.home(key)
	for r.table[i] != 0 && r.keys[r.table[i]-1].key != key {
		i = (i + 1) & (len(r.table) - 1)
	}
	return i
}

// forget removes the entry at an index of keys from the table, unless its key has a
// later one. Entries behind it that it had displaced move up.
func (r *ring) forget(at int) {
	free := r.find(r.keys[at].key)
	if r.table[free] != uint32(at+1) {
		return
	}
	mask := len(r.table) - 1
	for i := (free + 1) & mask; r.table[i] != 0; i = (i + 1) & mask {
		if home := r.home(r.keys[r.table[i]-1].key); (i-home)&mask >= (i-free)&mask {
			r.table[free] = r.table[i]
			free = i
		}
	}
	r.table[free] = 0
}

func (r *ring) has(key uint64) bool { return r.table[r.find(key)] != 0 }

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
