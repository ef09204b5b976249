package persist

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

// Verdict is what a check of a state file found.
type Verdict struct {
	Bytes    int64    // of the file
	InUse    bool     // a daemon has it open: a copy of one moment was checked
	Others   bool     // other users may read it
	Problems []string // an item each; none if all is well
	Models   []Holding
}

// Holding is what a state file holds of one model.
type Holding struct {
	Model       string
	Checkpoints []Generation // newest first
	// First and Last are the sequence numbers of the journal's records; First
	// is Last+1 if it is empty.
	First, Last uint64
	Pending     uint64 // samples that wait for their label
	Loss        Loss   // what Open could not save
}

// Decoder tries to read a model's state, whose configuration has the given
// shape: the seal says that its bytes are those that were written, not that
// they mean anything.
type Decoder func(model, shape string, state []byte) error

const (
	copyAttempts = 200 // at a file that a daemon writes to
	copyPause    = 5 * time.Millisecond
)

// Verify checks every page, seal and ledger of the state file at path, has
// bbolt check it, and gives the states of all generations to decode, which may
// be nil. It changes nothing. Where a daemon has the file open, Verify checks a
// copy, in the folder for temporary files, of what the daemon's newest
// transaction left.
//
// Errors: ErrForeign, ErrLocked if the file is never still for long enough, and
// those of the file system. Damage is no error, but a verdict.
func Verify(path string, decode Decoder) (*Verdict, error) {
	v, err := verify(path, decode)
	if err != nil {
		return nil, fmt.Errorf("persist: verify %s: %w", path, err)
	}
	return v, nil
}

func verify(path string, decode Decoder) (*Verdict, error) {
	v := &Verdict{}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	v.Others = info.Mode().Perm()&0o077 != 0
	file, err := lock(path, os.O_RDONLY)
	if errors.Is(err, ErrLocked) {
		v.InUse = true
		file, err = copyInUse(path)
	}
	if err != nil {
		return nil, err
	}
	defer release(file) // closed already if bbolt had it
	if info, err = file.Stat(); err != nil {
		return nil, err
	}
	v.Bytes = info.Size()
	c, err := examine(file, v.Bytes)
	if err != nil {
		return nil, err
	}
	v.Problems = c.problems
	v.hold(file, decode)
	if c.sound {
		v.Problems = append(v.Problems, checkBolt(file)...)
	}
	return v, nil
}

// copyInUse copies a file that another process writes to. bbolt never changes
// what its newest transaction uses: a copy during which no other has become
// the newest holds that one's whole tree.
func copyInUse(path string) (*os.File, error) {
	for range copyAttempts {
		file, err := tryCopy(path)
		if file != nil || err != nil {
			return file, err
		}
		time.Sleep(copyPause)
	}
	return nil, fmt.Errorf("%w, which writes to it without a pause: stop it first", ErrLocked)
}

// tryCopy returns nil if the file changed meanwhile.
func tryCopy(path string) (*os.File, error) {
	from, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	to, err := copyStill(from, filepath.Base(path))
	if to == nil {
		return nil, err
	}
	is, errIs := from.Stat()
	named, errNamed := os.Stat(path)
	err = cmp.Or(errIs, errNamed)
	if err != nil || !os.SameFile(is, named) { // a compaction has renamed another file into its place
		return nil, errors.Join(err, to.Close())
	}
	return to, nil
}

// copyStill copies a file into one without a name, which was name's; nil if it
// changed meanwhile.
func copyStill(from io.ReaderAt, name string) (*os.File, error) {
	to, err := os.CreateTemp("", name+".verify-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(to.Name()); err != nil { // first: nothing is left if the process is killed
		return nil, errors.Join(err, to.Close())
	}
	before := metaPages(from)
	_, err = io.Copy(to, io.NewSectionReader(from, 0, math.MaxInt64))
	if err != nil || !bytes.Equal(before, metaPages(from)) || !bytes.Equal(before, metaPages(to)) {
		return nil, errors.Join(err, to.Close())
	}
	return to, nil
}

// metaPages returns the bytes of both, as far as there are any.
func metaPages(file io.ReaderAt) []byte {
	b := make([]byte, 2*pageSize)
	n, _ := file.ReadAt(b, 0) // what is missing differs
	return b[:n]
}

// hold says what is there of each model, and what of it a repair would lose.
func (v *Verdict) hold(file io.ReaderAt, decode Decoder) {
	var models map[string]*holding
	note := ""
	if len(v.Problems) > 0 {
		models, _, note = salvage(file, v.Bytes)
	} else {
		models = survey(file, v.Bytes, newestMeta(file), true).models
	}
	losses := settle(models, note)
	for _, name := range slices.Sorted(maps.Keys(models)) {
		h := models[name]
		m := Holding{Model: name, Pending: uint64(len(h.pending)), Loss: losses[name], Last: h.ledger.last, First: h.ledger.last + 1}
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
			if g.Bytes = len(state); err != nil {
				v.Problems = append(v.Problems, fmt.Sprintf("%s: the state of generation %d cannot be used: %v", name, g.Generation, err))
			}
			m.Checkpoints = append(m.Checkpoints, g)
		}
		v.Models = append(v.Models, m)
	}
}

// newestMeta returns the newest valid meta page, an empty one if there is none.
func newestMeta(file io.ReaderAt) (newest meta) {
	for n := range int64(2) {
		if m, err := readMeta(file, n); err == nil && m.txid >= newest.txid {
			newest = m
		}
	}
	return newest
}

// decode returns the state of a generation, and whether it means anything.
func (h *holding) decode(model string, i int, decode Decoder) ([]byte, error) {
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
	if err != nil || len(shape) == 0 { // a repair lost it
		return c.state, err
	}
	return c.state, decode(model, string(shape), c.state)
}

// checkBolt has bbolt check a file whose structure is sound: it would not
// survive another. The file is closed then.
func checkBolt(file *os.File) (problems []string) {
	db, err := openBolt(file, Options{}, true)
	if err != nil {
		return []string{err.Error()}
	}
	err = guard(func() error {
		return db.View(func(tx *bbolt.Tx) error {
			for err := range tx.Check() {
				problems = append(problems, "bbolt: "+err.Error())
			}
			return nil
		})
	})
	if errors.Is(err, errPanic) {
		return append(problems, err.Error()) // and may hold its own locks for ever
	}
	if err := cmp.Or(err, db.Close()); err != nil {
		problems = append(problems, err.Error())
	}
	return problems
}
