package persist

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/bbolt"
)

// keptAside is how many files of a kind, damaged ones or those that a backup
// replaced, are kept; the oldest goes first.
const keptAside = 3

// Recovery says what Open found damaged, and what that costs.
type Recovery struct {
	Aside    string          // where the damaged file is kept
	Problems []string        // what was wrong with it
	Models   map[string]Loss // every model of which something was found
}

// Loss is what a repair could not bring back of one model.
type Loss struct {
	// Samples were committed but are in no checkpoint and cannot be replayed.
	// Boundaries of minibatches are counted as samples.
	Samples uint64
	// Pending samples no longer wait for their labels.
	Pending uint64
	// Notes say it in words; none if nothing of the model was damaged.
	Notes []string
}

// Recovery returns what Open had to repair, nil if the file was sound.
func (s *Store) Recovery() *Recovery { return s.recovery }

// repair replaces a damaged file by a new one with everything that is valid in
// it, and keeps the damaged one beside it.
func (s *Store) repair(file *os.File, size int64, problems []string) error {
	models, taken, note := salvage(file, size)
	r := &Recovery{Problems: problems, Models: settle(models, note)}
	err := s.build(func(db *bbolt.DB) error {
		if err := restore(db, models, taken, nil); err != nil {
			return err
		}
		aside, err := keepAside(file, s.path, "damaged")
		r.Aside = aside
		return err
	})
	if err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	s.recovery = r
	s.opts.Log.Error("state file was damaged: carried over what is valid", "path", s.path, "kept", r.Aside, "problems", len(problems), "first", problems[0])
	for _, name := range slices.Sorted(maps.Keys(r.Models)) {
		if loss := r.Models[name]; len(loss.Notes) > 0 {
			s.opts.Log.Error("state repaired", "model", name, "samples_lost", loss.Samples, "pending_lost", loss.Pending, "detail", strings.Join(loss.Notes, "; "))
		}
	}
	return release(file)
}

// salvage gathers what is valid in a damaged file: the models, and the sealed note
// of the taken messages, nil if there is none. Its text says so if the newest
// transaction may be missing.
//
// The tree of the transaction before the newest is still whole in the file: it
// fills in what the newest has lost. Without a valid meta page the best tree
// that can be found is taken.
func salvage(file io.ReaderAt, size int64) (models map[string]*holding, taken []byte, note string) {
	metas, problems, err := readMetas(file, size)
	if err != nil {
		return nil, nil, ""
	}
	if len(metas) == 0 {
		c := bestTree(file, size)
		return c.models, c.taken, "both meta pages were damaged: the last transactions may be lost"
	}
	if len(problems) > 0 {
		note = "a meta page was damaged: the last transaction may be lost"
	}
	best := survey(file, size, metas[0], true)
	if len(metas) == 1 {
		return best.models, best.taken, note
	}
	before := survey(file, size, metas[1], true)
	if best.stale && !before.stale {
		return before.models, before.taken, "the disk lost a write: the last transaction is lost"
	}
	if best.stale {
		note = "the disk lost writes: the last transactions are lost"
	}
	trusted := best.sound && best.version != 0 // a model that is missing there was reset
	for name, earlier := range before.models {
		switch h := best.models[name]; {
		case h == nil && !trusted:
			earlier.notes.add("taken from the transaction before the last, which is lost")
			best.models[name] = earlier
		case h != nil && !h.intact():
			h.fillFrom(earlier, !best.sound)
		}
	}
	if best.taken == nil && !trusted {
		best.taken = before.taken
	}
	return best.models, best.taken, note
}

// bestTree finds the tree with the most records among all pages that may be a root.
func bestTree(file io.ReaderAt, size int64) *contents {
	best := &contents{}
	var reached uint64
	for id := uint64(2); id < uint64(size/pageSize); id++ {
		c := survey(file, size, meta{root: id, freelist: noFreelist, high: uint64(size / pageSize)}, true)
		if c.version == 0 {
			continue
		}
		sum := uint64(1)
		for _, h := range c.models {
			if h.ledger != nil {
				sum += h.ledger.last
			}
		}
		if sum > reached {
			best, reached = c, sum
		}
	}
	return best
}

// fillFrom takes what h has lost from the same model one transaction earlier.
// Pending samples only where pages were lost: those that the last transaction
// dropped come back with them.
func (h *holding) fillFrom(before *holding, pages bool) {
	if h.shape == nil {
		h.shape = before.shape
	}
	for i, s := range before.slots {
		if h.slots[i].generation == 0 {
			h.slots[i], h.states[i] = s, before.states[i]
		}
	}
	for seq, value := range before.journal {
		if _, ok := h.journal[seq]; !ok {
			h.journal[seq] = value
		}
	}
	if pages && (h.ledger == nil || uint64(len(h.pending)) < h.ledger.pending) {
		for arrival, w := range before.pending {
			if _, ok := h.pending[arrival]; !ok {
				h.pending[arrival] = w
			}
		}
	}
	if h.ledger == nil {
		h.ledger = before.ledger
	}
}

// settle settles all models, and says what each has lost.
func settle(models map[string]*holding, note string) map[string]Loss {
	losses := make(map[string]Loss)
	for name, h := range models {
		loss := h.settle()
		if note != "" {
			loss.Notes = append(loss.Notes, note)
		}
		losses[name] = loss
	}
	return losses
}

// settle drops what cannot be used: records beyond a gap, a generation whose
// records are not all there, a sample that waits twice. What stays is
// consistent, and the loss is what it is short of.
func (h *holding) settle() Loss {
	loss := Loss{Notes: h.notes.all()}
	if h.intact() && h.missing() == nil {
		return loss
	}
	if h.shape == nil {
		loss.Notes = append(loss.Notes, "its shape is lost: the next one is taken")
	}

	n := newest(h.slots)
	base, older := h.slots[n].seq, &h.slots[1-n]
	known := base
	if h.ledger != nil {
		known = h.ledger.last
	} else {
		loss.Notes = append(loss.Notes, "its ledger is lost: more may be missing")
	}
	seqs := slices.Sorted(maps.Keys(h.journal))
	if len(seqs) > 0 {
		known = max(known, seqs[len(seqs)-1])
	}
	if h.slots[n].generation == 0 && len(seqs) > 0 {
		base = seqs[0] - 1
		loss.Samples = base
	}
	end := base
	for h.journal[end+1] != nil {
		end++
	}
	loss.Samples += known - end
	first := base + 1
	if older.generation > 0 {
		for first > older.seq+1 && h.journal[first-1] != nil {
			first--
		}
		if first > older.seq+1 {
			*older, h.states[1-n] = slot{}, nil
			first = base + 1
		}
	}
	maps.DeleteFunc(h.journal, func(seq uint64, _ []byte) bool { return seq < first || seq > end })

	latest := make(map[uint64]uint64)
	for arrival, w := range h.pending {
		latest[w.key] = max(latest[w.key], arrival)
	}
	maps.DeleteFunc(h.pending, func(arrival uint64, w waiting) bool { return latest[w.key] != arrival })
	if h.ledger != nil && h.ledger.pending > uint64(len(h.pending)) {
		loss.Pending = h.ledger.pending - uint64(len(h.pending))
	}

	from := "nothing"
	if h.slots[n].generation > 0 {
		from = fmt.Sprintf("the checkpoint at %d", h.slots[n].seq)
	}
	loss.Notes = append(loss.Notes, fmt.Sprintf("carries on from %s and %d records after it: %d samples and %d pending ones are lost",
		from, end-base, loss.Samples, loss.Pending))
	var mark uint64
	if h.ledger != nil {
		mark = h.ledger.mark
	}
	h.ledger = &ledger{last: end, mark: mark}
	return loss
}

// restore writes settled models to an empty database, and the sealed notes of the
// taken messages and of the session's filters, if there are any.
func restore(db *bbolt.DB, models map[string]*holding, taken, filters []byte) error {
	if err := initialise(db); err != nil {
		return err
	}
	return db.Update(func(tx *bbolt.Tx) error {
		for name, h := range models {
			if err := h.restore(tx, name); err != nil {
				return err
			}
		}
		var err error
		if taken != nil {
			err = tx.Bucket([]byte(bucketLedger)).Put([]byte(keyTaken), taken)
		}
		if filters != nil && err == nil {
			err = tx.Bucket([]byte(bucketMeta)).Put([]byte(keySession), filters)
		}
		return err
	})
}

func (h *holding) restore(tx *bbolt.Tx, name string) error {
	if h.shape == nil {
		h.shape = seal(nil, kindShape, bucketMeta, shapeKey(name))
	}
	l := ledger{last: h.ledger.last, pending: uint64(len(h.pending)), mark: h.ledger.mark}
	put := func(b *bbolt.Bucket, key, value []byte) error {
		l.add(value)
		return b.Put(key, value)
	}
	if err := createModel(tx, name); err != nil {
		return err
	}
	if err := put(tx.Bucket([]byte(bucketMeta)), shapeKey(name), h.shape); err != nil {
		return err
	}
	for i, state := range h.states {
		if state == nil {
			continue
		}
		if err := put(tx.Bucket([]byte(checkpointBucket(name, i))), stateKey, state); err != nil {
			return err
		}
	}
	journal := tx.Bucket([]byte(journalBucket(name)))
	journal.FillPercent = journalFill
	for _, seq := range slices.Sorted(maps.Keys(h.journal)) {
		if err := put(journal, order(seq), h.journal[seq]); err != nil {
			return err
		}
	}
	pending := tx.Bucket([]byte(pendingBucket(name)))
	pending.FillPercent = journalFill
	for _, arrival := range slices.Sorted(maps.Keys(h.pending)) {
		if err := put(pending, order(arrival), h.pending[arrival].value); err != nil {
			return err
		}
	}
	return putLedger(tx, name, l)
}

// keepAside gives a file a second name, <path>.<why>-<n>, or copies it where path
// is not its name or the file system knows no links. The latest few are kept.
func keepAside(file *os.File, path, why string) (string, error) {
	prefix := filepath.Base(path) + "." + why + "-"
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	var numbers []int
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), prefix); ok {
			if n, err := strconv.Atoi(rest); err == nil && n > 0 {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	name := func(n int) string { return path + "." + why + "-" + strconv.Itoa(n) }
	for ; len(numbers) >= keptAside; numbers = numbers[1:] {
		if err := os.Remove(name(numbers[0])); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	next := 1
	if len(numbers) > 0 {
		next = numbers[len(numbers)-1] + 1
	}
	mine, err := file.Stat()
	if err != nil {
		return "", err
	}
	if named, err := os.Stat(path); err == nil && os.SameFile(mine, named) && os.Link(path, name(next)) == nil {
		return name(next), nil
	}
	to, err := CreateTemp(name(next))
	if err != nil {
		return "", err
	}
	defer to.Close()
	_, err = io.Copy(to, io.NewSectionReader(file, 0, math.MaxInt64))
	if err = cmp.Or(err, to.Sync()); err == nil {
		err = renameNew(to.Name(), name(next))
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(to.Name()))
	}
	return name(next), nil
}

// rollBack goes back to the tree of the last transaction that succeeded, in a
// new file: every page of it is written again, and synced. The caller holds
// s.write.
func (s *Store) rollBack() error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	for n := range int64(2) {
		m, err := readMeta(s.file, n)
		if err != nil || uint32(m.txid) != s.good {
			continue
		}
		c := survey(s.file, info.Size(), m, true)
		if len(c.problems) > 0 {
			return fmt.Errorf("go back to the last good transaction: %s: %w", c.problems[0], ErrDamaged)
		}
		if err := s.build(func(db *bbolt.DB) error { return restore(db, c.models, c.taken, c.filters) }); err != nil {
			return fmt.Errorf("go back to the last good transaction: %w", err)
		}
		s.suspect = false
		return nil
	}
	return fmt.Errorf("go back to the last good transaction: its meta page is gone: %w", ErrDamaged)
}

// putLedger writes a model's ledger by itself.
func putLedger(tx *bbolt.Tx, name string, l ledger) error {
	value := seal(nil, kindLedger, bucketLedger, []byte(name), appendLedger(nil, l))
	return tx.Bucket([]byte(bucketLedger)).Put([]byte(name), value)
}

// createModel makes the buckets of a model.
func createModel(tx *bbolt.Tx, name string) error {
	for _, b := range buckets(name) {
		if _, err := tx.CreateBucket([]byte(b)); err != nil {
			return err
		}
	}
	return nil
}
