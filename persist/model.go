package persist

import (
	"fmt"
	"strconv"
	"strings"

	"go.etcd.io/bbolt"
)

// Buckets and keys, see doc.go.
const (
	bucketMeta   = "meta"
	bucketLedger = "ledger"
	keyFormat    = "format"
	keyStamp     = "/tx" // a model's name contains no slash
	prefixShape  = "shape/"
)

func journalBucket(model string) string { return "journal/" + model }
func pendingBucket(model string) string { return "pending/" + model }
func checkpointBucket(model string, slot int) string {
	return "checkpoint/" + model + "/" + strconv.Itoa(slot)
}
func shapeKey(model string) []byte { return []byte(prefixShape + model) }

// buckets returns the names of all buckets of a model.
func buckets(model string) []string {
	return []string{journalBucket(model), pendingBucket(model), checkpointBucket(model, 0), checkpointBucket(model, 1)}
}

// model mirrors in memory the state of one model after the last transaction
// that succeeded.
type model struct {
	ledger  ledger
	first   uint64 // oldest record of the journal, last+1 if it is empty
	slots   [2]slot
	arrival uint64            // of the youngest pending sample
	pending map[uint64]uint64 // sample's key → its arrival
	ring    *ring
}

// checkName accepts names of 1 to 64 letters, digits, '_', '-' or '.'.
func checkName(model string) error {
	ok := len(model) >= 1 && len(model) <= maxName && !strings.ContainsFunc(model, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.')
	})
	if !ok {
		return fmt.Errorf("name %.80q: want 1 to %d letters, digits, '_', '-' or '.': %w", model, maxName, ErrModel)
	}
	return nil
}

// createModel creates the buckets of a model.
func createModel(tx *bbolt.Tx, name string) error {
	for _, b := range buckets(name) {
		if _, err := tx.CreateBucket([]byte(b)); err != nil {
			return err
		}
	}
	return nil
}

// addModel adds an empty model with its shape.
func (s *Store) addModel(name, shape string) error {
	return s.update(func(tx *bbolt.Tx) error {
		if err := createModel(tx, name); err != nil {
			return err
		}
		var l ledger
		value := seal(nil, kindShape, bucketMeta, shapeKey(name), []byte(shape))
		l.add(value)
		if err := tx.Bucket([]byte(bucketMeta)).Put(shapeKey(name), value); err != nil {
			return err
		}
		return putLedger(tx, name, l)
	})
}

// readShape returns the stored shape of a model, nil if the file does not know
// the model.
func readShape(t tree, name string) (shape *string, err error) {
	err = t.read(kindShape, bucketMeta, shapeKey(name), "shape", func(payload []byte) error {
		shape = new(string(payload))
		return nil
	})
	return shape, err
}

// replaceShape stores a new shape for a model whose shape a repair has lost, or an earlier
// program wrote.
func (s *Store) replaceShape(name, shape string) error {
	return s.update(func(tx *bbolt.Tx) error {
		l, err := readLedger(tree{tx: tx}, name)
		if err != nil {
			return err
		}
		b, key := tx.Bucket([]byte(bucketMeta)), shapeKey(name)
		l.remove(b.Get(key))
		value := seal(nil, kindShape, bucketMeta, key, []byte(shape))
		l.add(value)
		if err := b.Put(key, value); err != nil {
			return err
		}
		return putLedger(tx, name, l)
	})
}

// Reset deletes a model: its checkpoints, journal, pending samples and shape.
func (s *Store) Reset(model string) error {
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.reset(model); err != nil {
		return fmt.Errorf("persist: reset %s in %s: %w", model, s.path, err)
	}
	return nil
}

func (s *Store) reset(model string) error {
	if err := checkName(model); err != nil {
		return err
	}
	err := s.update(func(tx *bbolt.Tx) error {
		if tx.Bucket([]byte(bucketMeta)).Get(shapeKey(model)) == nil {
			return errUnknown
		}
		for _, name := range buckets(model) {
			if err := tx.DeleteBucket([]byte(name)); err != nil {
				return err
			}
		}
		if err := tx.Bucket([]byte(bucketLedger)).Delete([]byte(model)); err != nil {
			return err
		}
		return tx.Bucket([]byte(bucketMeta)).Delete(shapeKey(model))
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.models, model)
	return nil
}

// errUnknown reports a model that is not in the file.
var errUnknown = fmt.Errorf("the file has no model of that name: %w", ErrModel)

// Models returns the names of all models in the file, in order.
func (s *Store) Models() ([]string, error) {
	s.write.Lock()
	defer s.write.Unlock()
	var names []string
	err := s.view(func(t tree) error {
		return t.each(bucketMeta, prefixShape, func(key, _ []byte) error {
			names = append(names, string(key[len(prefixShape):]))
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("persist: list the models of %s: %w", s.path, err)
	}
	return names, nil
}
