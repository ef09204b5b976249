package persist

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// contents is what the tree of one transaction holds, read without trusting
// the file.
type contents struct {
	version     uint64 // format version; 0: not found
	models      map[string]*holding
	problems    []string
	known       bool   // something in it was sealed by this package
	visited     int    // values, known or not
	sound       bool   // bbolt can read it
	stamp       uint64 // transaction that wrote the tree, 32 bits of it; 0: not found
	stale       bool   // the tree is older than its meta page
	taken       []byte // sealed; nil: not found
	filters     []byte // sealed; nil: not found
	pages, used int64  // of the tree's part of the file
}

// holding is what is valid of one model. Values are nil where only their
// presence counts.
type holding struct {
	shape   []byte // sealed; nil: not found
	slots   [2]slot
	states  [2][]byte         // sealed
	journal map[uint64][]byte // sealed
	pending map[uint64]waiting
	ledger  *ledger // as stored; nil: not found
	tally   ledger  // of what is here
	notes   problems
}

type waiting struct {
	key   uint64
	value []byte // sealed
}

func newHolding() *holding {
	return &holding{journal: make(map[uint64][]byte), pending: make(map[uint64]waiting)}
}

// intact reports whether nothing of the model is missing.
func (h *holding) intact() bool {
	return h.ledger != nil && h.shape != nil &&
		h.ledger.entries == h.tally.entries && h.ledger.sum == h.tally.sum && h.ledger.pending == uint64(len(h.pending))
}

// missing says which records of those that Load would replay are not there.
func (h *holding) missing() error {
	first := h.slots[newest(h.slots)].seq + 1
	if h.slots[newest(h.slots)].generation == 0 && len(h.journal) > 0 {
		first = slices.Min(slices.Collect(maps.Keys(h.journal)))
	}
	for seq := first; seq <= h.ledger.last; seq++ {
		if _, ok := h.journal[seq]; !ok {
			return fmt.Errorf("record %d is missing", seq)
		}
	}
	return nil
}

// survey reads the tree of m: structure, seals, ledgers. Values are kept if
// keep is true.
func survey(file io.ReaderAt, size int64, m meta, keep bool) *contents {
	c := &contents{models: make(map[string]*holding)}
	var structure, pr problems
	p := newPages(file, size, m, &structure)
	p.entries(m.root, func(bucket string, key, value []byte) {
		c.visited++
		h, err := c.visit(bucket, key, value, keep)
		if err != nil {
			pr.add("%s: %x: %v", bucket, key, err)
		}
		if err != nil && h != nil {
			h.notes.add("%s: %x: %v", bucket, key, err)
		}
	})
	p.freelist(m.freelist)
	if c.version == 0 {
		pr.add("no format version was found")
	}
	// A higher stamp is that of a file which bbolt's own tool has compacted.
	c.stale = c.stamp != 0 && int32(uint32(c.stamp)-uint32(m.txid)) < 0
	if c.stamp == 0 {
		pr.add("no stamp of the transaction was found")
	}
	if c.stale {
		pr.add("the tree is of transaction %d, its meta page of %d: the disk has lost a write", c.stamp, m.txid)
	}
	for _, name := range slices.Sorted(maps.Keys(c.models)) {
		switch h := c.models[name]; {
		case !h.intact():
			pr.add("%s: what was found differs from its ledger", name)
		default:
			if err := h.missing(); err != nil {
				pr.add("%s: %v", name, err)
			}
		}
	}
	c.sound = len(structure.list) == 0
	c.problems = append(structure.all(), pr.all()...)
	c.pages, c.used = int64(len(p.seen)), p.used
	return c
}

// The first part of a bucket's name, or of a key in "meta", says what a value is.
var kinds = map[string]kind{
	"shape": kindShape, "journal": kindRecord, "pending": kindPending, "checkpoint": kindCheckpoint, bucketLedger: kindLedger,
}

// visit checks one value and notes it. The holding is that of its model, if any.
func (c *contents) visit(bucket string, key, value []byte, keep bool) (h *holding, err error) {
	class, name, _ := strings.Cut(bucket, "/")
	generation := ""
	switch class {
	case bucketMeta:
		if string(key) == keyFormat {
			c.version, err = c.number(kindFormat, bucket, key, value, decodeFormat)
			return nil, err
		}
		if string(key) == keySession {
			return nil, c.session(bucket, key, value)
		}
		class, name, _ = strings.Cut(string(key), "/")
	case bucketLedger:
		if string(key) == keyStamp {
			c.stamp, err = c.number(kindStamp, bucket, key, value, decodeStamp)
			return nil, err
		}
		if string(key) == keyTaken {
			return nil, c.noteTaken(bucket, key, value)
		}
		name = string(key)
	case "checkpoint":
		name, generation, _ = strings.Cut(name, "/")
	}
	k := kinds[class]
	switch { // no CRC says that somebody else did not compute it
	case k == 0,
		(k == kindRecord || k == kindPending) && place(key) == 0,
		k == kindCheckpoint && (!bytes.Equal(key, stateKey) || generation != "0" && generation != "1"):
		return nil, errEncoding
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	if h = c.models[name]; h == nil {
		h = newHolding()
		c.models[name] = h
	}
	payload, err := unseal(k, bucket, key, value)
	if err != nil {
		return h, err
	}
	c.known = true
	kept := value
	if !keep {
		kept = nil
	}
	switch k {
	case kindLedger:
		l, err := decodeLedger(payload)
		if err != nil {
			return h, err
		}
		h.ledger = &l
		return h, nil // not an entry itself
	case kindShape:
		h.shape = value
	case kindRecord:
		if _, err := decodeRecord(payload); err != nil {
			return h, err
		}
		h.journal[place(key)] = kept
	case kindPending:
		p, err := decodePending(payload)
		if err != nil {
			return h, err
		}
		h.pending[place(key)] = waiting{p.Key, kept}
	case kindCheckpoint:
		cp, err := decodeCheckpoint(payload)
		if err != nil {
			return h, err
		}
		i := int(generation[0] - '0')
		h.slots[i], h.states[i] = slot{cp.generation, cp.seq}, kept
	}
	h.tally.add(value)
	return h, nil
}

// session checks the broker's session. It belongs to no model: a repair leaves it
// out, at the cost of subscriptions that stay with the broker.
func (c *contents) session(bucket string, key, value []byte) error {
	payload, err := unseal(kindSession, bucket, key, value)
	if err != nil {
		return err
	}
	c.known = true
	if _, err := decodeFilters(payload); err != nil {
		return err
	}
	c.filters = value
	return nil
}

// noteTaken checks the messages that are noted as taken, and keeps them for a
// repair. They belong to no model.
func (c *contents) noteTaken(bucket string, key, value []byte) error {
	payload, err := unseal(kindTaken, bucket, key, value)
	if err != nil {
		return err
	}
	c.known = true
	if _, err := decodeTaken(payload); err != nil {
		return err
	}
	c.taken = value
	return nil
}

// number reads a value that is one number and belongs to no model.
func (c *contents) number(k kind, bucket string, key, value []byte, decode func([]byte) (uint64, error)) (uint64, error) {
	payload, err := unseal(k, bucket, key, value)
	if err != nil {
		return 0, err
	}
	c.known = true
	return decode(payload)
}

// examine checks a whole file. An error means that it must be left alone
// (ErrForeign) or cannot be read; damage is reported in the contents.
func examine(file io.ReaderAt, size int64) (*contents, error) {
	metas, problems, err := readMetas(file, size)
	if err != nil {
		return nil, err
	}
	if len(metas) == 0 {
		return &contents{problems: problems}, nil
	}
	c := survey(file, size, metas[0], false)
	if err := checkVersion(c.version); err != nil {
		return nil, err
	}
	if c.sound && !c.known && c.visited > 0 {
		return nil, fmt.Errorf("a bbolt file with nothing of edge's in it; name another file: %w", ErrForeign)
	}
	c.problems = append(problems, c.problems...)
	return c, nil
}

// readMetas returns the valid meta pages, newest first, and what is wrong with
// the others.
func readMetas(file io.ReaderAt, size int64) ([]meta, []string, error) {
	var metas []meta
	var problems []string
	if size == 0 {
		return nil, []string{"the file is empty"}, nil
	}
	for n := range int64(2) {
		m, err := readMeta(file, n)
		switch {
		case errors.Is(err, ErrForeign):
			return nil, nil, err
		case err != nil:
			problems = append(problems, err.Error())
		default:
			metas = append(metas, m)
		}
	}
	if len(metas) == 0 {
		ours, err := looksOurs(file, size)
		if err == nil && !ours {
			err = fmt.Errorf("nothing of edge's in it; move it away, or name another file: %w", ErrForeign)
		}
		return nil, problems, err
	}
	slices.SortFunc(metas, func(a, b meta) int {
		if a.txid > b.txid {
			return -1
		}
		return 1
	})
	return metas, problems, nil
}

// looksOurs reports whether a file without a valid meta page may have been a
// state file: it begins like a bbolt file, holds nothing but zeros there (as
// after a power cut), or holds the seal of our format somewhere.
func looksOurs(file io.ReaderAt, size int64) (bool, error) {
	const overlap = 16
	buf := make([]byte, 64<<10)
	for at := int64(0); at < size; at += int64(len(buf) - overlap) {
		n, err := file.ReadAt(buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		part := buf[:n]
		if at == 0 {
			head := part[:min(n, 2*pageSize)]
			zero := bytes.Count(head, []byte{0}) == len(head)
			magic := false
			for _, start := range []int{pageHeader, pageSize + pageHeader} {
				magic = magic || len(head) >= start+4 && order64.Uint32(head[start:]) == metaMagic
			}
			if zero || magic {
				return true, nil
			}
		}
		for version := uint64(1); version <= formatVersion; version++ {
			if bytes.Contains(part, sealFormat(version)) {
				return true, nil
			}
		}
	}
	return false, nil
}

// wasteful reports whether compaction would give back much.
func (c *contents) wasteful() bool {
	free := (c.pages - c.used) * pageSize
	return free > compactAbove && 2*free > c.pages*pageSize
}
