package persist

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"edge/online"
)

// TestDamagedPages zeroes each page, fills it with noise, copies another page over
// it, and truncates the file there.
func TestDamagedPages(t *testing.T) {
	h := makeHistory(t, 6_000)
	pages := len(h.file) / pageSize
	rng := rand.New(rand.NewPCG(7, 0))
	repaired, tested := 0, 0
	for name, damage := range map[string]func(file []byte, n int) []byte{
		"zeroed": func(file []byte, n int) []byte { clear(file[n*pageSize : (n+1)*pageSize]); return file },
		"noise": func(file []byte, n int) []byte {
			for i := range pageSize {
				file[n*pageSize+i] = byte(rng.Uint32())
			}
			return file
		},
		"another page": func(file []byte, n int) []byte {
			other := rng.IntN(pages)
			copy(file[n*pageSize:(n+1)*pageSize], file[other*pageSize:])
			return file
		},
		"cut": func(file []byte, n int) []byte { return file[:n*pageSize+n%2*pageSize/2] },
	} {
		for n := range pages {
			if n > h.redo && n < h.redo+2*redoPages && n%20 != 0 {
				continue // like the others of the empty redo log
			}
			if stride > 1 && n > 8 && (n+len(name))%2 == 0 {
				continue // the kinds of damage share the pages after the first ones
			}
			tested++
			t.Run(fmt.Sprintf("%s/page=%d", name, n), func(t *testing.T) {
				path := tempPath(t)
				writeFile(t, path, damage(slices.Clone(h.file), n))
				if h.checkRepair(t, path, 1) != nil {
					repaired++
				}
			})
		}
	}
	t.Logf("%d of %d damaged files needed repair", repaired, tested)
	if repaired < tested/9 { // most pages are free, or of the empty redo log
		t.Errorf("only %d of %d damaged files needed repair: the test has no effect", repaired, tested)
	}
}

// TestWrongMeta copies one meta page over the other: Open must detect it.
func TestWrongMeta(t *testing.T) {
	h := makeHistory(t, 6_000)
	for n := range 2 {
		path := tempPath(t)
		file := slices.Clone(h.file)
		copy(file[n*pageSize:(n+1)*pageSize], h.file[(1-n)*pageSize:])
		writeFile(t, path, file)
		if h.checkRepair(t, path, 1) == nil {
			t.Errorf("Open did not detect meta page %d in both places", 1-n)
		}
	}
}

// TestTangled makes every branch point to itself, and swaps neighbours on every
// leaf: reading must end and report the damage.
func TestTangled(t *testing.T) {
	h := makeHistory(t, 6_000)
	size := int64(len(h.file))
	metas, _, err := readMetas(bytes.NewReader(h.file), size)
	if err != nil {
		t.Fatal(err)
	}
	var pr problems
	p := newPages(bytes.NewReader(h.file), size, metas[0], &pr)
	p.entries(metas[0].root, func(string, []byte, []byte) {})
	branches, leaves := 0, 0
	for id := uint64(2); id < metas[0].high; id++ {
		file := slices.Clone(h.file)
		page := file[id*pageSize:]
		flags, count := byteOrder.Uint16(page[8:]), int(byteOrder.Uint16(page[10:]))
		if !p.seen[id] || byteOrder.Uint64(page) != id || count < 2 {
			continue
		}
		switch flags {
		case branchPage:
			branches++
			for i := range count {
				byteOrder.PutUint64(page[pageHeader+i*elementSize+8:], id)
			}
		case leafPage:
			leaves++
			a, b := page[pageHeader:pageHeader+elementSize], page[pageHeader+elementSize:pageHeader+2*elementSize]
			for i := range a {
				a[i], b[i] = b[i], a[i]
			}
			byteOrder.PutUint32(a[4:], byteOrder.Uint32(a[4:])+elementSize) // positions count from the element
			byteOrder.PutUint32(b[4:], byteOrder.Uint32(b[4:])-elementSize)
		}
		c, err := examine(bytes.NewReader(file), size)
		if err != nil || len(c.problems) == 0 || c.sound {
			t.Errorf("page %d (flags %d): problems %q, sound %v, %v", id, flags, c.problems, c.sound, err)
		}
		path := tempPath(t)
		writeFile(t, path, file)
		h.checkRepair(t, path, 1)
	}
	if branches == 0 || leaves < 5 {
		t.Errorf("%d branches and %d leaves: the test has no effect", branches, leaves)
	}
}

// TestGap deletes a record and corrects the ledger: the gap in the journal is damage.
func TestGap(t *testing.T) {
	h := makeHistory(t, 6_000)
	path := tempPath(t)
	writeFile(t, path, h.file)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(journalBucket("bearing")))
		l, err := readLedger(tree{tx: tx}, "bearing")
		if err != nil {
			return err
		}
		l.remove(b.Get(numberKey(120)))
		return errors.Join(b.Delete(numberKey(120)), putLedger(tx, "bearing", l), stamp(tx))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if r := h.checkRepair(t, path, 0); r == nil || r.Models["bearing"].Samples != 31 {
		t.Errorf("Recovery() = %+v, want 31 samples lost", r)
	}
}

// TestCrafted visits values with a valid seal whose contents are not valid at their key.
func TestCrafted(t *testing.T) {
	ev := events["plain"]
	record, cp := appendRecord(nil, &ev), append((&checkpoint{generation: 1, seq: 1}).head(), 'x')
	for _, v := range []struct {
		kind    kind
		bucket  string
		key     string
		payload []byte
	}{
		{kindRecord, "journal/m", "short", record},
		{kindRecord, "journal/m", string(numberKey(0)), record},
		{kindRecord, "journal/m/x", string(numberKey(1)), record},
		{kindRecord, "journal", string(numberKey(1)), record},
		{kindRecord, "journal/m", string(numberKey(1)), record[1:]},
		{kindPending, "pending/m", "", []byte{}},
		{kindCheckpoint, "checkpoint/m", "state", cp},
		{kindCheckpoint, "checkpoint/m/2", "state", cp},
		{kindCheckpoint, "checkpoint/m/01", "state", cp},
		{kindCheckpoint, "checkpoint/m/0", "other", cp},
		{kindCheckpoint, "checkpoint/m/0", "state", nil},
		{kindLedger, bucketLedger, "m", []byte{1}},
		{kindLedger, bucketLedger, "", encodeLedger(ledger{})},
		{kindStamp, bucketLedger, keyStamp, []byte{1, 2}},
		{kindFormat, bucketMeta, keyFormat, []byte{0}},
		{kindShape, bucketMeta, "shape/", nil},
		{0, "other/m", "key", []byte("payload")},
	} {
		c := &contents{models: make(map[string]*modelContents)}
		value := seal(nil, v.kind, v.bucket, []byte(v.key), v.payload)
		if _, err := c.visit(v.bucket, []byte(v.key), value, true); err == nil {
			t.Errorf("%c at %q %q with %x was accepted", v.kind, v.bucket, v.key, v.payload)
		}
	}
}

// TestBits flips bits in all parts of the file: a flip that survey does not report
// must not change the entries.
func TestBits(t *testing.T) {
	h := makeHistory(t, 6_000)
	size := int64(len(h.file))
	metas, _, err := readMetas(bytes.NewReader(h.file), size)
	if err != nil {
		t.Fatal(err)
	}
	want := survey(bytes.NewReader(h.file), size, metas[0], true)
	if len(want.problems) > 0 {
		t.Fatal(want.problems)
	}
	rng := rand.New(rand.NewPCG(8, 0))
	noticed := 0
	file := slices.Clone(h.file)
	for i := rng.IntN(11); i < len(file); i += 1 + rng.IntN(480*min(stride, 2)) {
		bit := byte(1) << rng.IntN(8)
		file[i] ^= bit
		got, err := examine(bytes.NewReader(file), size)
		if err != nil {
			t.Fatalf("bit %#x of byte %d: %v", bit, i, err)
		}
		if len(got.problems) > 0 {
			noticed++
			if noticed%30 == 0 {
				path := tempPath(t)
				writeFile(t, path, file)
				h.checkRepair(t, path, 1)
			}
		} else if got = survey(bytes.NewReader(file), size, metas[0], true); !sameContents(want, got) {
			t.Fatalf("bit %#x of byte %d changed the entries without a problem", bit, i)
		}
		file[i] ^= bit
	}
	if noticed == 0 {
		t.Error("no flipped bit was detected: the test has no effect")
	}
}

func sameContents(a, b *contents) bool {
	return a.version == b.version && reflect.DeepEqual(a.models, b.models)
}

// TestFaultInMap truncates the file under bbolt's memory map: the fault becomes an
// error, the process continues, and the next start repairs the file.
func TestFaultInMap(t *testing.T) {
	path, cut := tempPath(t), false
	s := newStore(t, path, Options{Fault: func(step string) error {
		if !cut || step != "write" {
			return nil
		}
		return os.Truncate(path, 2*pageSize) // in the middle of a transaction
	}})
	tr := newTruths(t, s, "m")[0]
	play(t, rand.New(rand.NewPCG(9, 0)), s, []*truth{tr}, 30)
	cut = true
	c := &online.Commit{Records: []online.Record{sample("m", tr.last()+1)}}
	for range 2 {
		if err := s.Commit(c); !errors.Is(err, ErrDamaged) {
			t.Fatalf("Commit on a truncated file: %v, want %v", err, ErrDamaged)
		}
	}
	if _, err := s.Load("m", testShape); !errors.Is(err, ErrDamaged) {
		t.Errorf("Load on a truncated file: %v, want %v", err, ErrDamaged)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	s.db = nil // closed already
	s = newStore(t, path, Options{})
	if s.Recovery() == nil {
		t.Error("Open did not repair the truncated file")
	}
}

// TestDamagedLater damages a file while a store has it open: Load returns an error
// with the way out, never wrong data, and the next start repairs the file.
func TestDamagedLater(t *testing.T) {
	h := makeHistory(t, 6_000)
	for _, marker := range []string{"class 1", string(stateOf(90, 6_000)[3000:3016])} {
		path := tempPath(t)
		writeFile(t, path, h.file)
		s := newStore(t, path, Options{})
		file := slices.Clone(h.file)
		for at := 0; ; at++ {
			n := bytes.Index(file[at:], []byte(marker))
			if n < 0 {
				break
			}
			at += n
			file[at] ^= 0x20
		}
		out, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write(file); err != nil {
			t.Fatal(err)
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Load("bearing", testShape); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "restart") {
			t.Errorf("Load = %+v, %v, want %v", r, err, ErrDamaged)
		}
		if info, err := s.Info("bearing"); !errors.Is(err, ErrDamaged) {
			t.Errorf("Info = %+v, %v, want %v", info, err, ErrDamaged)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s.db = nil // closed already
		if h.checkRepair(t, path, 1) == nil {
			t.Error("the next start did not detect the damage")
		}
	}
}

// TestStoredFreelist opens a file in which bbolt's own tool has stored a list of free
// pages: Open must check the list before bbolt uses it.
func TestStoredFreelist(t *testing.T) {
	h := makeHistory(t, 6_000)
	path, compacted := tempPath(t), tempPath(t)
	writeFile(t, path, h.file)
	src, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	dst, err := bbolt.Open(compacted, 0o600, &bbolt.Options{PageSize: pageSize})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(bbolt.Compact(dst, src, 4096), src.Close(), dst.Close()); err != nil {
		t.Fatal(err)
	}
	file := readFile(t, compacted)
	if h.checkRepair(t, compacted, 0) != nil {
		t.Error("Open repaired a sound file that bbolt's tool has compacted")
	}
	m, _, err := readMetas(bytes.NewReader(file), int64(len(file)))
	if err != nil || m[0].freelist == noFreelist {
		t.Fatalf("no stored free list: %+v, %v", m, err)
	}
	at := m[0].freelist*pageSize + pageHeader
	for name, free := range map[string]uint64{"in use": m[0].root, "out of range": m[0].high + 3, "meta": 1} {
		spoilt := slices.Clone(file)
		if byteOrder.Uint16(spoilt[at-6:]) == 0 {
			t.Fatal("the free list is empty")
		}
		byteOrder.PutUint64(spoilt[at:], free)
		writeFile(t, path, spoilt)
		if h.checkRepair(t, path, 1) == nil {
			t.Errorf("Open did not detect a free page that is %s", name)
		}
	}
}

// FuzzSurvey reads arbitrary files.
func FuzzSurvey(f *testing.F) {
	h := makeHistory(f, 6_000)
	f.Add(h.file[:12*pageSize], uint16(3), byte(1))
	f.Add(h.file[:2*pageSize], uint16(20), byte(0xff))
	f.Fuzz(func(t *testing.T, file []byte, at uint16, flip byte) {
		// Flips in a sound file reach deeper code than noise does.
		whole := slices.Clone(h.file)
		whole[int(at)*7%len(whole)] ^= flip
		for _, b := range [][]byte{file, whole} {
			_, err := examine(bytes.NewReader(b), int64(len(b)))
			if err != nil && !errors.Is(err, ErrForeign) && !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("examine: %v", err)
			}
			models, _, _ := salvage(bytes.NewReader(b), int64(len(b)))
			for _, m := range models {
				m.reconcile()
			}
		}
	})
}
