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

// contents are the entries of one transaction's tree, read without trusting the
// file.
type contents struct {
	version     uint64 // format version; 0: not found
	models      map[string]*modelContents
	problems    []string
	known       bool              // the tree contains a valid seal of this package
	visited     int               // values, with or without a valid seal
	sound       bool              // bbolt can read the tree
	stamp       uint64            // low 32 bits of the number of the transaction that wrote the tree; 0: not found
	stale       bool              // the tree is older than its meta page
	taken       []byte            // sealed; nil: not found
	filters     []byte            // sealed; nil: not found
	windows     map[string][]byte // sealed, by key
	pages, used int64             // pages up to the high-water mark, and those that the tree uses
}

// modelContents are the valid entries of one model. Values are nil where survey
// does not keep them.
type modelContents struct {
	shape   []byte // sealed; nil: not found
	slots   [2]slot
	states  [2][]byte         // sealed
	journal map[uint64][]byte // sealed
	pending map[uint64]pendingEntry
	ledger  *ledger // as stored; nil: not found
	counted ledger  // of the entries found
	notes   problems
	more    bool // of a later transaction are lost
}

// pendingEntry is a pending sample.
type pendingEntry struct {
	key   uint64
	value []byte // sealed
}

func newModelContents() *modelContents {
	return &modelContents{journal: make(map[uint64][]byte), pending: make(map[uint64]pendingEntry)}
}

// intact reports whether the entries match the ledger.
func (h *modelContents) intact() bool {
	return h.ledger != nil && h.shape != nil &&
		h.ledger.entries == h.counted.entries && h.ledger.sum == h.counted.sum && h.ledger.pending == uint64(len(h.pending))
}

// missing returns an error that names the first missing record of those that Load
// would replay.
func (h *modelContents) missing() error {
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

// newContents returns contents without a model.
func newContents() *contents {
	return &contents{models: make(map[string]*modelContents), windows: make(map[string][]byte)}
}

// survey reads the tree of m and checks its structure, seals and ledgers. It keeps
// the sealed values if keep is true.
func survey(file io.ReaderAt, size int64, m meta, keep bool) *contents {
	return surveyUpTo(file, size, m, keep, anyFrame)
}

// surveyUpTo is survey with at most that many frames of the redo log.
func surveyUpTo(file io.ReaderAt, size int64, m meta, keep bool, frames uint32) *contents {
	c := newContents()
	var structure, pr problems
	p := newPages(file, size, m, &structure)
	log, latest := readRedo(file, size, m, frames)
	visit := func(bucket string, key, value []byte) {
		c.visited++
		h, err := c.visit(bucket, key, value, keep)
		if err != nil {
			pr.add("%s: %x: %v", bucket, key, err)
		}
		if err != nil && h != nil {
			h.notes.add("%s: %x: %v", bucket, key, err)
		}
	}
	p.entries(m.root, func(bucket string, key, value []byte) {
		if _, changed := latest[place{bucket, string(key)}]; !changed {
			visit(bucket, key, value)
		}
	})
	latest.visit(visit)
	if log.gap {
		pr.add("the redo log lacks commits before later ones: the disk has lost a write")
	}
	if c.version >= 5 && log.epoch == 0 {
		pr.add("the redo log is missing")
	}
	p.freelist(m.freelist)
	if c.version == 0 {
		pr.add("the format version is missing")
	}
	// A file that bbolt's own tool has compacted has a higher stamp.
	c.stale = c.stamp != 0 && int32(uint32(c.stamp)-uint32(m.txid)) < 0
	if c.stamp == 0 {
		pr.add("the stamp of the transaction is missing")
	}
	if c.stale {
		pr.add("the tree is of transaction %d, its meta page of %d: the disk has lost a write", c.stamp, m.txid)
	}
	c.checkModels(&log, &pr)
	c.sound = len(structure.list) == 0
	c.problems = append(structure.all(), pr.all()...)
	c.pages, c.used = int64(len(p.seen)), p.used
	return c
}

// checkModels compares the entries of each model with its ledger.
func (c *contents) checkModels(log *redo, pr *problems) {
	for _, name := range slices.Sorted(maps.Keys(c.models)) {
		h := c.models[name]
		if log.gap || log.short || log.epoch == 0 && (c.version == 0 || c.version >= 5) {
			h.more = true
			h.notes.add("a part of the redo log is missing, and with it, perhaps, the last commits")
		}
		if !h.intact() {
			pr.add("%s: the entries differ from the ledger", name)
		} else if err := h.missing(); err != nil {
			pr.add("%s: %v", name, err)
		}
	}
}

// kinds maps the first part of a bucket's name, or of a key in "meta", to the kind of
// its values.
var kinds = map[string]kind{
	"shape": kindShape, "journal": kindRecord, "pending": kindPending, "checkpoint": kindCheckpoint, bucketLedger: kindLedger,
}

// visit checks one value and adds it. It returns the contents of the value's model,
// nil for a value that belongs to no model.
func (c *contents) visit(bucket string, key, value []byte, keep bool) (h *modelContents, err error) {
	class, name, _ := strings.Cut(bucket, "/")
	generation := ""
	switch class {
	case bucketMeta:
		switch class, name, _ = strings.Cut(string(key), "/"); class {
		case keyFormat:
			c.version, err = c.readNumber(kindFormat, bucket, key, value, decodeFormat)
			return nil, err
		case keySession:
			return nil, c.addSession(bucket, key, value)
		case classWindows:
			return nil, c.addWindows(key, value, keep)
		}
	case bucketLedger:
		switch name = string(key); name {
		case keyStamp:
			c.stamp, err = c.readNumber(kindStamp, bucket, key, value, decodeNumber)
			return nil, err
		case keyTaken:
			return nil, c.addTaken(bucket, key, value)
		case keyEpoch:
			_, err = c.readNumber(kindEpoch, bucket, key, value, decodeNumber)
			return nil, err
		}
	case bucketRedo:
		if string(key) != keyRedo || len(value) != redoSize {
			return nil, errEncoding
		}
		return nil, nil
	case "checkpoint":
		name, generation, _ = strings.Cut(name, "/")
	}
	k := kinds[class]
	switch { // a valid CRC does not prove that this package wrote the value
	case k == 0,
		(k == kindRecord || k == kindPending) && keyNumber(key) == 0,
		k == kindCheckpoint && (!bytes.Equal(key, stateKey) || generation != "0" && generation != "1"):
		return nil, errEncoding
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	if h = c.models[name]; h == nil {
		h = newModelContents()
		c.models[name] = h
	}
	payload, err := c.unseal(k, bucket, key, value)
	if err != nil {
		return h, err
	}
	var kept []byte
	if keep {
		kept = value
	}
	return h, h.add(k, generation, key, value, payload, kept)
}

// unseal returns the payload of a sealed value, by which the file is known as one of this package.
func (c *contents) unseal(k kind, bucket string, key, value []byte) ([]byte, error) {
	payload, err := unseal(k, bucket, key, value)
	c.known = c.known || err == nil
	return payload, err
}

// add adds a checked value of a model; kept is the value, or nil if it is not kept.
func (h *modelContents) add(k kind, generation string, key, value, payload, kept []byte) error {
	switch k {
	case kindLedger:
		l, err := decodeLedger(payload)
		if err != nil {
			return err
		}
		h.ledger = &l
		return nil // the ledger does not count itself
	case kindShape:
		h.shape = value
	case kindRecord:
		if _, err := decodeRecord(payload); err != nil {
			return err
		}
		h.journal[keyNumber(key)] = kept
	case kindPending:
		p, err := decodePending(payload)
		if err != nil {
			return err
		}
		h.pending[keyNumber(key)] = pendingEntry{p.Key, kept}
	case kindCheckpoint:
		cp, err := decodeCheckpoint(payload)
		if err != nil {
			return err
		}
		i := int(generation[0] - '0')
		h.slots[i], h.states[i] = slot{cp.generation, cp.seq}, kept
	}
	h.counted.add(value)
	return nil
}

// addSession checks the filters of the broker's session, which belong to no model,
// and keeps them for a rollback. A repair drops them, so that the node cannot
// unsubscribe from filters that its configuration no longer has.
func (c *contents) addSession(bucket string, key, value []byte) error {
	payload, err := c.unseal(kindSession, bucket, key, value)
	if err == nil {
		_, err = decodeFilters(payload)
	}
	if err == nil {
		c.filters = value
	}
	return err
}

// addTaken checks the list of taken messages, which belongs to no model, and keeps
// it for a repair.
func (c *contents) addTaken(bucket string, key, value []byte) error {
	payload, err := c.unseal(kindTaken, bucket, key, value)
	if err == nil {
		_, err = decodeTaken(payload)
	}
	if err == nil {
		c.taken = value
	}
	return err
}

// readNumber decodes a value that is one number and belongs to no model.
func (c *contents) readNumber(k kind, bucket string, key, value []byte, decode func([]byte) (uint64, error)) (uint64, error) {
	payload, err := c.unseal(k, bucket, key, value)
	if err != nil {
		return 0, err
	}
	return decode(payload)
}

// examine checks a whole file. It returns an error if the file must not be changed
// (ErrForeign) or cannot be read; the contents list damage.
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
		return nil, fmt.Errorf("a bbolt file of another program; choose another path: %w", ErrForeign)
	}
	c.problems = append(problems, c.problems...)
	return c, nil
}

// readMetas returns the valid meta pages, newest first, and the problems of the
// others.
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
			err = fmt.Errorf("a file of another program; move it away, or choose another path: %w", ErrForeign)
		}
		return nil, problems, err
	}
	if len(metas) > 1 && metas[1].txid > metas[0].txid {
		metas[0], metas[1] = metas[1], metas[0]
	}
	return metas, problems, nil
}

// looksOurs reports whether a file without a valid meta page may have been a state
// file: its first pages have bbolt's magic number or consist of zeros, as after a
// power cut, or any part of it contains the sealed format version.
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
				magic = magic || len(head) >= start+4 && byteOrder.Uint32(head[start:]) == metaMagic
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

// wasteful reports whether a compaction would free more than compactAbove bytes and
// more than half of the file.
func (c *contents) wasteful() bool {
	free := (c.pages - c.used) * pageSize
	return free > compactAbove && 2*free > c.pages*pageSize
}
