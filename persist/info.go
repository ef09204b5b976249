package persist

import "fmt"

// Info describes the entries of one model in the file.
type Info struct {
	Model       string
	Shape       string
	Checkpoints []Generation // newest first
	// First and Last are the sequence numbers of the journal's records; First
	// is Last+1 if it is empty.
	First, Last uint64
	Pending     uint64 // samples whose labels have not come, and labelled ones that are kept for corrections
	Dedupe      int    // keys in the newest checkpoint's ring and the journal after it
}

// Generation is one checkpoint.
type Generation struct {
	Generation uint64
	Seq        uint64 // of the last record in it
	Bytes      int    // of the state
}

// Shape returns the shape of a model, which need not be loaded; ErrModel for an unknown one.
func (s *Store) Shape(name string) (shape string, err error) {
	err = s.inspect(name, func(_ tree, stored string) error {
		shape = stored
		return nil
	})
	return shape, err
}

// inspect calls look with the tree and the shape of a model.
func (s *Store) inspect(name string, look func(t tree, shape string) error) error {
	s.write.Lock()
	defer s.write.Unlock()
	err := s.view(func(t tree) error {
		shape, err := readShape(t, name)
		if err != nil {
			return err
		}
		if shape == nil {
			return errUnknown
		}
		return look(t, *shape)
	})
	if err != nil {
		return fmt.Errorf("persist: inspect %s in %s: %w", name, s.path, err)
	}
	return nil
}

// Info reads the entries of a model, which need not be loaded, and checks the CRC
// of each: it returns ErrDamaged if one differs, ErrModel for an unknown model.
func (s *Store) Info(name string) (Info, error) {
	info := Info{Model: name}
	err := s.inspect(name, func(t tree, shape string) error {
		info.Shape = shape
		m := &model{pending: make(map[uint64]uint64), ring: newRing(s.opts.Dedupe)}
		if err := m.read(t, name, &Recovered{}); err != nil {
			return err
		}
		generations, slots, err := readCheckpoints(t, name)
		if err != nil {
			return err
		}
		for _, i := range []int{newest(slots), 1 - newest(slots)} {
			if c := generations[i]; c != nil {
				info.Checkpoints = append(info.Checkpoints, Generation{Generation: c.generation, Seq: c.seq, Bytes: len(c.state)})
			}
		}
		info.First, info.Last = m.first, m.ledger.last
		info.Pending, info.Dedupe = m.ledger.pending, len(m.ring.keys)
		return nil
	})
	if err != nil {
		return Info{}, err
	}
	return info, nil
}
