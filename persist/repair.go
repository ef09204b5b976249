package persist

import (
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
)

// Recovery describes a repair by Open: the damage and the resulting loss.
type Recovery struct {
	Aside    string          // path of the damaged file, which is kept
	Problems []string        // of the damaged file
	Models   map[string]Loss // every model that left a valid entry in the damaged file
}

// Loss counts the entries of one model that a repair could not recover.
type Loss struct {
	// Samples counts committed records that are in no checkpoint and cannot be
	// replayed, boundaries of minibatches among them.
	Samples uint64
	// State is true if the state of before the first remaining record is lost, because no
	// checkpoint is left. Samples does not count those of "edge train".
	State bool
	// Pending counts lost samples whose labels had not come.
	Pending uint64
	// More is true if the newest transactions may be lost, and with them samples that
	// Samples and Pending do not count, because nothing in the file tells their number.
	More bool
	// Notes describe the loss, one sentence each; empty if the model was intact.
	Notes []string
}

// Describe returns the losses as text.
func (r *Recovery) Describe() string {
	if len(r.Models) == 0 {
		return fmt.Sprintf("nothing in the file could be used: every model begins anew; it is kept as %s", r.Aside)
	}
	var lost []string
	for _, name := range slices.Sorted(maps.Keys(r.Models)) {
		l := r.Models[name]
		state := ""
		if l.State {
			state = "the learnt state, "
		}
		if l.More {
			state += "at least "
		}
		lost = append(lost, fmt.Sprintf("%s%d samples and %d that waited for a label of model %s", state, l.Samples, l.Pending, name))
	}
	return fmt.Sprintf("lost: %s; the damaged file is kept as %s", strings.Join(lost, ", "), r.Aside)
}

// Recovery returns the repair that Open made, nil if the file was sound.
func (s *Store) Recovery() *Recovery { return s.recovery }

// repair replaces a damaged file by a new one with all valid entries of the
// damaged file, which it keeps beside the new one.
func (s *Store) repair(file *os.File, size int64, problems []string) error {
	models, taken, note := salvage(file, size)
	r := &Recovery{Problems: problems, Models: reconcile(models, note)}
	err := s.build(func(db *bbolt.DB) error {
		if err := restore(db, nil, models, taken); err != nil {
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
	const backup = "if there is a backup: stop the daemon, and put it in the file's place by edge restore"
	if len(models) == 0 {
		s.opts.Log.Error("state file was damaged, and nothing in it can be used: every model begins anew", "path", s.path, "kept", r.Aside, "problems", len(problems), "first", problems[0], "advice", backup)
		return release(file)
	}
	s.opts.Log.Error("state file was damaged: copied its valid entries to a new file", "path", s.path, "kept", r.Aside, "problems", len(problems), "first", problems[0])
	for _, name := range slices.Sorted(maps.Keys(r.Models)) {
		if loss := r.Models[name]; len(loss.Notes) > 0 {
			attrs := []any{"model", name, "state_lost", loss.State, "samples_lost", loss.Samples, "pending_lost", loss.Pending, "more_lost", loss.More, "detail", strings.Join(loss.Notes, "; ")}
			if loss.State || loss.Samples > 0 || loss.Pending > 0 || loss.More {
				attrs = append(attrs, "advice", backup)
			}
			s.opts.Log.Error("state repaired", attrs...)
		}
	}
	return release(file)
}

// salvage collects the valid entries of a damaged file: the models, and the sealed
// list of taken messages, nil if it was not found. note is not empty if the newest
// transaction may be missing.
//
// Without a valid meta page, or where both trees are behind the end of the file, it takes the tree
// with the most records, and without any tree the newest frames of the redo log.
func salvage(file io.ReaderAt, size int64) (models map[string]*modelContents, taken []byte, note string) {
	metas, problems, err := readMetas(file, size)
	switch {
	case err != nil:
		return nil, nil, ""
	case len(metas) == 0:
		note = "both meta pages were damaged: the last transactions may be lost"
	default:
		if len(problems) > 0 {
			note = "a meta page was damaged: the last transaction may be lost"
		}
		best, lost := salvageTrees(file, size, metas, note)
		if best.sound || len(best.models) > 0 {
			return best.models, best.taken, lost
		}
		note = "the trees of the last transactions are lost"
	}
	c := bestTree(file, size)
	if len(c.models) == 0 {
		c = newContents()
		readFrames(file, size).visit(func(bucket string, key, value []byte) { _, _ = c.visit(bucket, key, value, true) })
	}
	return c.models, c.taken, note
}

// salvageTrees collects the valid entries of the tree of the newest transaction. That of the
// transaction before it is still whole in the file, with the redo log after it:
// salvageTrees takes the entries from it that the newest tree has lost.
func salvageTrees(file io.ReaderAt, size int64, metas []meta, note string) (*contents, string) {
	best := survey(file, size, metas[0], true)
	if len(metas) == 1 {
		return best, note
	}
	before := survey(file, size, metas[1], true)
	if best.stale && !before.stale {
		return before, "the disk lost a write: the last transaction is lost"
	}
	if best.stale {
		note = "the disk lost writes: the last transactions are lost"
	}
	trusted := best.sound && best.version != 0 // so a model that it does not contain was reset
	for name, earlier := range before.models {
		switch h := best.models[name]; {
		case h == nil && !trusted:
			earlier.more = true
			earlier.notes.add("recovered from the transaction before the last; what came after it is lost, with an unknown number of samples")
			best.models[name] = earlier
		case h != nil && !h.intact() && earlier.intact() && h.ledger != nil && *h.ledger == *earlier.ledger:
			earlier.more = earlier.more || h.more
			earlier.notes.add("recovered from the transaction before the last and the redo log after it")
			best.models[name] = earlier
		case h != nil && !h.intact():
			h.fillFrom(earlier, !best.sound)
		}
	}
	if best.taken == nil && !trusted {
		best.taken = before.taken
	}
	return best, note
}

// bestTree returns the tree with the most records among all pages that may be a root.
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

// fillFrom copies the entries that h has lost from the same model one transaction
// earlier; pending samples only if pages is true, which means that pages were lost,
// because those that the last transaction dropped come back with them.
func (h *modelContents) fillFrom(before *modelContents, pages bool) {
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
		h.ledger, h.more = before.ledger, true
	}
}

// reconcile reconciles every model, and returns the loss of each. It adds note,
// unless empty, to the notes of each.
func reconcile(models map[string]*modelContents, note string) map[string]Loss {
	losses := make(map[string]Loss)
	for name, h := range models {
		loss := h.reconcile()
		if note != "" {
			loss.Notes, loss.More = append(loss.Notes, note), true
		}
		losses[name] = loss
	}
	return losses
}

// reconcile drops the entries that cannot be used: records beyond a gap, a
// generation whose records are incomplete, the older of two pending samples with
// one key. The remaining entries are consistent; reconcile returns the loss.
func (h *modelContents) reconcile() Loss {
	loss := Loss{Notes: h.notes.all(), More: h.more || h.ledger == nil}
	if h.intact() && h.missing() == nil {
		return loss
	}
	if h.shape == nil {
		loss.Notes = append(loss.Notes, "the shape is lost: the next start stores the configuration's")
	}

	n := newest(h.slots)
	base := h.slots[n].seq
	known := base
	if h.ledger != nil {
		known = max(known, h.ledger.last)
	} else {
		loss.Notes = append(loss.Notes, "the ledger is lost: more entries may be missing")
	}
	seqs := inOrder(maps.Keys(h.journal))
	if len(seqs) > 0 {
		known = max(known, seqs[len(seqs)-1])
	}
	if h.slots[n].generation == 0 {
		if len(seqs) > 0 {
			base = seqs[0] - 1
			loss.Samples = base
		}
		// without a checkpoint the ledger counts shape, records and pending samples
		if base > 0 || len(seqs) == 0 && known > 0 || h.ledger != nil && h.ledger.entries > 1+h.ledger.last+h.ledger.pending {
			loss.State = true
			loss.Notes = append(loss.Notes, "the learnt state is lost: no checkpoint is left")
		}
	}
	end := h.cutJournal(base)
	loss.Samples += known - end
	loss.Pending = h.dropRepeated()

	from := "nothing"
	if h.slots[n].generation > 0 {
		from = fmt.Sprintf("the checkpoint at %d", h.slots[n].seq)
	}
	loss.Notes = append(loss.Notes, fmt.Sprintf("continues from %s and %d records after it: %d samples and %d pending ones are lost",
		from, end-base, loss.Samples, loss.Pending))
	var mark uint64
	if h.ledger != nil {
		mark = h.ledger.mark
	}
	h.ledger = &ledger{last: end, mark: mark}
	return loss
}

// cutJournal drops the records beyond the first gap after base, where the newest generation ends,
// and returns the last one that remains. It drops the older generation, and the records for it, if
// they are incomplete.
func (h *modelContents) cutJournal(base uint64) (end uint64) {
	end = base
	for h.journal[end+1] != nil {
		end++
	}
	older := 1 - newest(h.slots)
	first := base + 1
	if s := &h.slots[older]; s.generation > 0 {
		for first > s.seq+1 && h.journal[first-1] != nil {
			first--
		}
		if first > s.seq+1 {
			*s, h.states[older] = slot{}, nil
			first = base + 1
		}
	}
	maps.DeleteFunc(h.journal, func(seq uint64, _ []byte) bool { return seq < first || seq > end })
	return end
}

// dropRepeated drops the older of two pending samples with one key. It returns how many of those that
// the ledger counts are missing then.
func (h *modelContents) dropRepeated() (missing uint64) {
	latest := make(map[uint64]uint64)
	for arrival, w := range h.pending {
		latest[w.key] = max(latest[w.key], arrival)
	}
	maps.DeleteFunc(h.pending, func(arrival uint64, w pendingEntry) bool { return latest[w.key] != arrival })
	if n := uint64(len(h.pending)); h.ledger != nil && h.ledger.pending > n {
		return h.ledger.pending - n
	}
	return 0
}

// restore writes reconciled models to an empty database, the sealed list of taken
// messages unless it is nil, and what belongs to no model of a sound tree, nil for a
// repair: the session's filters and the windows.
func restore(db *bbolt.DB, sound *contents, models map[string]*modelContents, taken []byte) error {
	if err := initialise(db); err != nil {
		return err
	}
	return db.Update(func(tx *bbolt.Tx) error {
		for name, h := range models {
			if err := h.restore(tx, name); err != nil {
				return err
			}
		}
		if taken != nil {
			if err := tx.Bucket([]byte(bucketLedger)).Put([]byte(keyTaken), taken); err != nil {
				return err
			}
		}
		if sound == nil {
			return nil
		}
		return sound.restoreOthers(tx.Bucket([]byte(bucketMeta)))
	})
}

// restoreOthers writes the values that belong to no model.
func (c *contents) restoreOthers(meta *bbolt.Bucket) error {
	if c.filters != nil {
		if err := meta.Put([]byte(keySession), c.filters); err != nil {
			return err
		}
	}
	for key, value := range c.windows {
		if err := meta.Put([]byte(key), value); err != nil {
			return err
		}
	}
	return nil
}

func (h *modelContents) restore(tx *bbolt.Tx, name string) error {
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
	for _, seq := range inOrder(maps.Keys(h.journal)) {
		if err := put(journal, numberKey(seq), h.journal[seq]); err != nil {
			return err
		}
	}
	pending := tx.Bucket([]byte(pendingBucket(name)))
	pending.FillPercent = journalFill
	for _, arrival := range inOrder(maps.Keys(h.pending)) {
		if err := put(pending, numberKey(arrival), h.pending[arrival].value); err != nil {
			return err
		}
	}
	return putLedger(tx, name, l)
}

// inOrder returns numbers in their order. They are sorted with the highest bit inverted as those of
// int64, which the program sorts elsewhere: so it stays small.
func inOrder(numbers iter.Seq[uint64]) []uint64 {
	const highest = 1 << 63
	var sorted []int64
	for n := range numbers {
		sorted = append(sorted, int64(n^highest))
	}
	slices.Sort(sorted)
	all := make([]uint64, len(sorted))
	for i, n := range sorted {
		all[i] = uint64(n) ^ highest
	}
	return all
}
