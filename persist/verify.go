package persist

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"go.etcd.io/bbolt"

	"edge/online"
)

// Outcome is the result of checking a state file.
type Outcome struct {
	Bytes    int64    // of the file
	InUse    bool     // a daemon has the file open: Verify checked a consistent copy
	Others   bool     // other users may read the file
	Problems []string // one sentence each; empty for a sound file
	Models   []ModelOutcome
}

// ModelOutcome describes the entries of one model in a state file.
type ModelOutcome struct {
	Model       string
	Checkpoints []Generation // newest first
	// First and Last are the sequence numbers of the journal's records; First
	// is Last+1 if it is empty.
	First, Last uint64
	Pending     uint64 // samples whose labels have not come, and labelled ones that are kept for corrections
	Loss        Loss   // that a repair by Open would cause
	Refused     bool   // the newest state is sealed, and cannot be decoded: Open carries it over as it is
}

// Decoder tries to decode the state of a model whose configuration has the given
// shape. A valid seal proves only that the bytes are those that were written.
type Decoder func(model, shape string, state []byte) error

// Verify checks every page, seal and ledger of the state file at path, runs
// bbolt's own check, and calls decode, unless nil, with the states of all
// generations. It changes nothing. While a daemon has the file open, Verify checks
// a copy of the daemon's newest transaction, in the folder for temporary files.
//
// Errors: ErrForeign, online.ErrNewer, ErrLocked if the file never stays unchanged for the time of
// a copy, and those of the file system. Damage is not an error: the outcome lists it.
func Verify(path string, decode Decoder) (*Outcome, error) {
	v, err := verify(path, decode)
	if err != nil {
		return nil, fmt.Errorf("persist: verify %s: %w", path, err)
	}
	return v, nil
}

func verify(path string, decode Decoder) (*Outcome, error) {
	v := &Outcome{}
	file, err := lock(path, os.O_RDONLY)
	if errors.Is(err, ErrLocked) {
		v.InUse = true
		file, err = copyInUse(path)
	}
	if err != nil {
		return nil, err
	}
	defer release(file) // closed already if checkBolt opened it
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	v.Others = info.Mode().Perm()&0o077 != 0
	if info, err = file.Stat(); err != nil {
		return nil, err
	}
	v.Bytes = info.Size()
	c, err := examine(file, v.Bytes)
	if err != nil {
		return nil, err
	}
	v.Problems = c.problems
	if err := v.addModels(file, decode); err != nil {
		return nil, err
	}
	if c.sound {
		v.Problems = append(v.Problems, checkBolt(file)...)
	}
	return v, nil
}

// addModels adds the entries of each model, and the loss that a repair would cause. Its error is
// online.ErrNewer.
func (v *Outcome) addModels(file io.ReaderAt, decode Decoder) error {
	var models map[string]*modelContents
	note := ""
	if len(v.Problems) > 0 {
		models, _, note = salvage(file, v.Bytes)
	} else {
		models = survey(file, v.Bytes, newestMeta(file), true).models
	}
	losses := reconcile(models, note)
	for _, name := range slices.Sorted(maps.Keys(models)) {
		h := models[name]
		m := ModelOutcome{Model: name, Pending: uint64(len(h.pending)), Loss: losses[name], Last: h.ledger.last, First: h.ledger.last + 1}
		for seq := range h.journal {
			m.First = min(m.First, seq)
		}
		n := newest(h.slots)
		for _, i := range []int{n, 1 - n} {
			if h.slots[i].generation == 0 {
				continue
			}
			g := Generation{Generation: h.slots[i].generation, Seq: h.slots[i].seq}
			state, err := h.decode(name, i, decode)
			if g.Bytes = len(state); errors.Is(err, online.ErrNewer) {
				return fmt.Errorf("model %s: %w", name, err)
			} else if err != nil {
				m.Refused = m.Refused || i == n
				v.Problems = append(v.Problems, fmt.Sprintf("%s: the state of generation %d cannot be used: %v", name, g.Generation, err))
			}
			m.Checkpoints = append(m.Checkpoints, g)
		}
		v.Models = append(v.Models, m)
	}
	return nil
}

// decode returns the state of generation slot i, and the error of decoding it.
func (h *modelContents) decode(model string, i int, decode Decoder) ([]byte, error) {
	payload, err := unseal(kindCheckpoint, checkpointBucket(model, i), stateKey, h.states[i])
	if err != nil {
		return nil, err
	}
	c, err := decodeCheckpoint(payload)
	if err != nil {
		return nil, err
	}
	if h.shape == nil || decode == nil {
		return c.state, nil
	}
	shape, err := unseal(kindShape, bucketMeta, shapeKey(model), h.shape)
	if err != nil || len(shape) == 0 { // a repair has lost the shape
		return c.state, err
	}
	return c.state, decode(model, string(shape), c.state)
}

// checkBolt runs bbolt's own check on a file whose structure is sound; on any other
// file bbolt may panic. It closes the file.
func checkBolt(file *os.File) (problems []string) {
	db, err := openBolt(file, Options{}, true)
	if err != nil {
		return []string{err.Error()}
	}
	err = viewTx(db, func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			problems = append(problems, "bbolt: "+err.Error())
		}
		return nil
	})
	if errors.Is(err, errPanic) {
		return append(problems, err.Error()) // do not close: bbolt may hold its own locks for ever
	}
	if err := cmp.Or(err, db.Close()); err != nil {
		problems = append(problems, err.Error())
	}
	return problems
}
