package persist

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"

	"edge/online"
)

// history is a file, and everything that was true of it along the way.
type history struct {
	file   []byte
	before [][]byte // the file one and three commits earlier
	truths []*truth
	states map[string]map[uint64][]byte // model → seq → state checkpointed there
}

// makeHistory writes a file with 150 records of one model and 30 of another;
// three checkpoints of the first, of size bytes each.
func makeHistory(t testing.TB, size int) *history {
	t.Helper()
	path := tempPath(t)
	s := newStore(t, path, Options{})
	h := &history{truths: newTruths(t, s, "bearing", "pump"), states: make(map[string]map[uint64][]byte)}
	for _, tr := range h.truths {
		h.states[tr.name] = make(map[uint64][]byte)
	}
	for n := uint64(1); n <= 150; n++ {
		c := &online.Commit{Records: []online.Record{sample("bearing", n)}, Wait: []online.Pending{waitingSample("bearing", n)}}
		if n > 70 {
			c.Forget = []online.Pending{waitingSample("bearing", n-70)}
		}
		if n%5 == 0 {
			c.Records = append(c.Records, sample("pump", n/5))
		}
		if err := s.Commit(c); err != nil {
			t.Fatal(err)
		}
		for _, tr := range h.truths {
			tr.commit(c)
		}
		if n == 147 || n == 149 {
			h.before = slices.Insert(h.before, 0, readFile(t, path))
		}
		if n == 20 || n == 50 || n == 90 {
			tr := h.truths[0]
			tr.seq, tr.state = n, stateOf(n, size)
			h.states[tr.name][n] = tr.state
			if err := s.Checkpoint(tr.name, n, tr.state); err != nil {
				t.Fatal(err)
			}
		}
	}
	closeStore(t, s)
	h.file = readFile(t, path)
	return h
}

// judge opens the damaged file at path and holds what comes back against the
// history: it may be less, if that is said, but nothing that never was. Pending
// samples that the last transactions had dropped, a few, may wait again.
func (h *history) judge(t *testing.T, path string, few int) *Recovery {
	t.Helper()
	verdict, err := Verify(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	defer closeStore(t, s)
	recovery := s.Recovery()
	foretold(t, verdict, recovery)
	for _, tr := range h.truths {
		got, err := s.Load(tr.name, testShape)
		if err != nil {
			t.Fatalf("Load: %v", err)
		}
		end := got.Seq + uint64(len(got.Records))
		if got.State != nil && !bytes.Equal(got.State, h.states[tr.name][got.Seq]) {
			t.Errorf("%s: a state at %d that never was", tr.name, got.Seq)
		}
		if end > tr.last() || !slices.EqualFunc(tr.records[got.Seq:end], got.Records, sameRecord) {
			t.Errorf("%s: records %d to %d are not those that were committed", tr.name, got.Seq+1, end)
		}
		unknown := 0
		for _, p := range got.Pending {
			if !slices.ContainsFunc(tr.pending, func(q online.Pending) bool { return samePending(p, q) }) {
				unknown++
			}
		}
		if unknown > few || unknown > 0 && len(got.Loss.Notes) == 0 {
			t.Errorf("%s: %d pending samples that did not wait, notes %q", tr.name, unknown, got.Loss.Notes)
		}
		missing := tr.last() - end
		if got.State == nil {
			missing += got.Seq
		}
		if (missing > 0 || len(got.Pending)-unknown < len(tr.pending)) && len(got.Loss.Notes) == 0 {
			t.Errorf("%s: %d records and %d pending samples are missing, and nothing says so", tr.name, missing, len(tr.pending)-len(got.Pending))
		}
		if got.Loss.Samples > missing {
			t.Errorf("%s: %d samples reported as lost, %d are missing", tr.name, got.Loss.Samples, missing)
		}
		for _, r := range got.Records {
			if r.Key != 0 && !s.Seen(tr.name, r.Key) {
				t.Errorf("%s: key of record %d is not seen", tr.name, r.Seq)
			}
		}
		// It goes on from there, without a gap.
		c := &online.Commit{Records: []online.Record{sample(tr.name, end+1)}}
		if err := s.Commit(c); err != nil || c.Records[0].Seq != end+1 {
			t.Errorf("%s: the next record got seq %d, %v, want %d", tr.name, c.Records[0].Seq, err, end+1)
		}
	}
	if recovery != nil {
		if _, err := os.Stat(recovery.Aside); err != nil {
			t.Errorf("the damaged file is not kept: %v", err)
		}
		if len(recovery.Problems) == 0 {
			t.Error("repaired without a problem")
		}
	}
	return recovery
}

// foretold fails unless Verify has found what Open then repaired.
func foretold(t *testing.T, v *Outcome, r *Recovery) {
	t.Helper()
	if r == nil {
		if len(v.Problems) > 0 {
			t.Errorf("Verify found %q, Open repaired nothing", v.Problems)
		}
		return
	}
	losses := make(map[string]Loss)
	for _, m := range v.Models {
		losses[m.Model] = m.Loss
	}
	if diff := cmp.Diff(r.Models, losses); diff != "" || len(v.Problems) < len(r.Problems) {
		t.Errorf("Verify found %q, Open %q; the losses, −Open +Verify:\n%s", v.Problems, r.Problems, diff)
	}
}

// TestDamagedPages zeroes each page, fills each with noise, swaps it for
// another, and cuts the file there.
func TestDamagedPages(t *testing.T) {
	h := makeHistory(t, 6_000)
	pages := len(h.file) / pageSize
	rng := rand.New(rand.NewPCG(7, 0))
	repaired := 0
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
			t.Run(fmt.Sprintf("%s/page=%d", name, n), func(t *testing.T) {
				path := tempPath(t)
				writeFile(t, path, damage(slices.Clone(h.file), n))
				if h.judge(t, path, 1) != nil {
					repaired++
				}
			})
		}
	}
	if repaired < pages {
		t.Errorf("only %d of %d damaged files needed repair: the damage does not bite", repaired, 4*pages)
	}
}

// TestLostWrites puts back what stood in a page, or in all data pages, some
// commits ago: a disk that confirmed writes it then forgot.
func TestLostWrites(t *testing.T) {
	h := makeHistory(t, 6_000)
	bites := 0
	for ago, old := range h.before {
		// Not the meta pages: a meta page that never reached the disk is a commit
		// that was never confirmed.
		for n := 2; n <= len(h.file)/pageSize; n++ { // the last n: all of them
			from, to := n*pageSize, min((n+1)*pageSize, len(old))
			if to == len(old) && from >= to {
				from = 2 * pageSize
			}
			if from >= to || bytes.Equal(h.file[from:to], old[from:to]) {
				continue
			}
			t.Run(fmt.Sprintf("ago=%d/page=%d", 2*ago+1, n), func(t *testing.T) {
				path := tempPath(t)
				file := slices.Clone(h.file)
				copy(file[from:to], old[from:to])
				writeFile(t, path, file)
				if h.judge(t, path, 20) != nil {
					bites++
				}
			})
		}
	}
	if bites == 0 {
		t.Error("no lost write was noticed")
	}
}

// TestLostCheckpoint: generations of one size take turns on the same pages, so
// that a write which is lost leaves a state that is sound, but an older one.
func TestLostCheckpoint(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	newTruths(t, s, "m")
	var files [][]byte
	for n := range uint64(8) {
		if err := s.Checkpoint("m", 0, stateOf(n, 3000)); err != nil {
			t.Fatal(err)
		}
		files = append(files, readFile(t, path))
	}
	closeStore(t, s)
	last := files[len(files)-1]
	bites := 0
	for _, old := range files[:len(files)-1] {
		for at := 2 * pageSize; at < len(last); at += pageSize {
			if bytes.Equal(old[at:at+pageSize], last[at:at+pageSize]) {
				continue
			}
			path := tempPath(t)
			file := slices.Clone(last)
			copy(file[at:at+pageSize], old[at:])
			writeFile(t, path, file)
			s := newStore(t, path, Options{})
			r, err := s.Load("m", testShape)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(r.State, stateOf(7, 3000)) {
				bites++
				if len(r.Loss.Notes) == 0 {
					t.Errorf("page %d as it was: an older state came back, and nothing says so", at/pageSize)
				}
			}
		}
	}
	if bites == 0 {
		t.Error("no lost write cost the newest state: the test does not bite")
	}
}

// TestStaleTree: a meta page that points to a tree older than itself.
func TestStaleTree(t *testing.T) {
	h := makeHistory(t, 6_000)
	metas, _, err := readMetas(bytes.NewReader(h.file), int64(len(h.file)))
	if err != nil {
		t.Fatal(err)
	}
	file := slices.Clone(h.file)
	newer := file[metas[0].txid%2*pageSize:]
	older := file[metas[1].txid%2*pageSize:]
	copy(newer[pageHeader+16:pageHeader+48], older[pageHeader+16:]) // root to high-water mark
	sum := fnv.New64a()
	_, _ = sum.Write(newer[pageHeader : pageHeader+metaSize-8])
	byteOrder.PutUint64(newer[pageHeader+metaSize-8:], sum.Sum64())
	path := tempPath(t)
	writeFile(t, path, file)
	r := h.judge(t, path, 1)
	if r == nil || !strings.Contains(strings.Join(r.Problems, "\n"), "lost a write") {
		t.Errorf("Recovery() = %+v, want a lost write", r)
	}
}

// TestWrongMeta: one meta page in the other's place is not taken for it.
func TestWrongMeta(t *testing.T) {
	h := makeHistory(t, 6_000)
	for n := range 2 {
		path := tempPath(t)
		file := slices.Clone(h.file)
		copy(file[n*pageSize:(n+1)*pageSize], h.file[(1-n)*pageSize:])
		writeFile(t, path, file)
		if h.judge(t, path, 1) == nil {
			t.Errorf("meta page %d in both places went unnoticed", 1-n)
		}
	}
}

// TestTangled makes every branch point to itself, and swaps neighbours on
// every leaf: reading ends, and notices.
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
		h.judge(t, path, 1)
	}
	if branches == 0 || leaves < 5 {
		t.Errorf("%d branches and %d leaves: the test does not bite", branches, leaves)
	}
}

// TestGap: a journal with a gap is damaged even where its ledger agrees.
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
		l, err := readLedger(tx, "bearing")
		if err != nil {
			return err
		}
		l.remove(b.Get(numberKey(120)))
		return errors.Join(b.Delete(numberKey(120)), putLedger(tx, "bearing", l), stamp(tx))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if r := h.judge(t, path, 0); r == nil || r.Models["bearing"].Samples != 31 {
		t.Errorf("Recovery() = %+v, want 31 samples lost", r)
	}
}

// TestCrafted: values that are sealed, but make no sense where they are.
func TestCrafted(t *testing.T) {
	ev := events["plain"]
	record, cp := appendRecord(nil, &ev), append(appendCheckpoint(nil, &checkpoint{generation: 1, seq: 1}), 'x')
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
		{kindLedger, bucketLedger, "", appendLedger(nil, ledger{})},
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

// TestMetaLost: without any meta page the newest tree is found again.
func TestMetaLost(t *testing.T) {
	h := makeHistory(t, 6_000)
	path := tempPath(t)
	file := slices.Clone(h.file)
	clear(file[:2*pageSize])
	writeFile(t, path, file)
	h.judge(t, path, 1)
	s := newStore(t, path, Options{})
	r, err := s.Load("bearing", testShape)
	if err != nil || r.Seq+uint64(len(r.Records)) < h.truths[0].last() {
		t.Errorf("%d records after %d came back, %v, want all up to %d", len(r.Records), r.Seq, err, h.truths[0].last())
	}
}

// TestBits flips bits all over the file: whatever is not noticed makes no difference.
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
	for i := rng.IntN(11); i < len(file); i += 1 + rng.IntN(160) {
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
				h.judge(t, path, 1)
			}
		} else if got = survey(bytes.NewReader(file), size, metas[0], true); !sameContents(want, got) {
			t.Fatalf("bit %#x of byte %d changed what is read, and nothing was noticed", bit, i)
		}
		file[i] ^= bit
	}
	if noticed == 0 {
		t.Error("no bit mattered: the test does not bite")
	}
}

func sameContents(a, b *contents) bool {
	return a.version == b.version && reflect.DeepEqual(a.models, b.models)
}

// TestLosses damages one thing each, and looks at what is said and done about it.
func TestLosses(t *testing.T) {
	h := makeHistory(t, 6_000)
	bearing := h.truths[0]
	spoil := func(bucket string, key []byte) func(t *testing.T, file []byte) {
		return func(t *testing.T, file []byte) {
			metas, _, _ := readMetas(bytes.NewReader(file), int64(len(file)))
			found := false
			var pr problems
			newPages(bytes.NewReader(file), int64(len(file)), metas[0], &pr).entries(metas[0].root, func(b string, k, v []byte) {
				if b == bucket && bytes.Equal(k, key) {
					for at := 0; ; at++ { // every copy of the value, in older trees too
						n := bytes.Index(file[at:], v)
						if n < 0 {
							break
						}
						at += n
						file[at+len(v)-1] ^= 1
						found = true
					}
				}
			})
			if !found {
				t.Fatalf("%s %x is not in the file", bucket, key)
			}
		}
	}
	for _, test := range []struct {
		name    string
		damage  []func(*testing.T, []byte)
		seq     uint64 // of the state that Load gives
		records int
		samples uint64 // lost
		pending uint64
		says    string
	}{
		{name: "newest checkpoint", damage: []func(*testing.T, []byte){spoil("checkpoint/bearing/1", stateKey)},
			seq: 50, records: 100, says: "the checkpoint at 50 and 100 records"},
		{name: "older checkpoint", damage: []func(*testing.T, []byte){spoil("checkpoint/bearing/0", stateKey)},
			seq: 90, records: 60, says: "the checkpoint at 90 and 60 records"},
		{name: "both checkpoints", damage: []func(*testing.T, []byte){spoil("checkpoint/bearing/0", stateKey), spoil("checkpoint/bearing/1", stateKey)},
			seq: 50, records: 100, samples: 50, says: "from nothing and 100 records"},
		{name: "record after the checkpoint", damage: []func(*testing.T, []byte){spoil("journal/bearing", numberKey(101))},
			seq: 90, records: 10, samples: 50, says: "50 samples"},
		{name: "record between the checkpoints", damage: []func(*testing.T, []byte){spoil("journal/bearing", numberKey(60))},
			seq: 90, records: 60, says: "0 samples"},
		{name: "that record and the newest checkpoint", damage: []func(*testing.T, []byte){spoil("journal/bearing", numberKey(60)), spoil("checkpoint/bearing/1", stateKey)},
			seq: 50, records: 9, samples: 91, says: "91 samples"},
		{name: "last record", damage: []func(*testing.T, []byte){spoil("journal/bearing", numberKey(150))},
			seq: 90, records: 59, samples: 1, says: "1 samples"},
		{name: "pending sample", damage: []func(*testing.T, []byte){spoil("pending/bearing", numberKey(100))},
			seq: 90, records: 60, pending: 1, says: "1 pending"},
		{name: "ledger", damage: []func(*testing.T, []byte){spoil("ledger", []byte("bearing"))},
			seq: 90, records: 60, says: "differ from the ledger"},
		{name: "shape", damage: []func(*testing.T, []byte){spoil("meta", shapeKey("bearing"))},
			seq: 90, records: 60, says: "shape is lost"},
		{name: "format", damage: []func(*testing.T, []byte){spoil("meta", []byte(keyFormat))},
			seq: 90, records: 60, says: "format"},
		{name: "another model", damage: []func(*testing.T, []byte){spoil("journal/pump", numberKey(7))},
			seq: 90, records: 60, says: "journal/pump"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := tempPath(t)
			file := slices.Clone(h.file)
			for _, damage := range test.damage {
				damage(t, file)
			}
			writeFile(t, path, file)

			verdict, err := Verify(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := OpenReadOnly(path, Options{}); !errors.Is(err, ErrDamaged) {
				t.Errorf("OpenReadOnly of the damaged file: %v, want %v", err, ErrDamaged)
			}
			s := newStore(t, path, Options{})
			recovery := s.Recovery()
			if recovery == nil {
				t.Fatal("nothing was repaired")
			}
			foretold(t, verdict, recovery)
			if !bytes.Equal(file, readFile(t, recovery.Aside)) {
				t.Error("what is kept aside is not the damaged file")
			}
			r, err := s.Load("bearing", testShape)
			if err != nil {
				t.Fatal(err)
			}
			if r.Seq != test.seq || len(r.Records) != test.records || r.Loss.Samples != test.samples || r.Loss.Pending != test.pending {
				t.Errorf("seq %d and %d records, %d samples and %d pending ones lost; want %d, %d, %d, %d",
					r.Seq, len(r.Records), r.Loss.Samples, r.Loss.Pending, test.seq, test.records, test.samples, test.pending)
			}
			said := strings.Join(append(slices.Clone(recovery.Problems), r.Loss.Notes...), "\n")
			if !strings.Contains(said, test.says) {
				t.Errorf("nothing says %q:\n%s", test.says, said)
			}
			if test.name == "shape" {
				closeStore(t, s)
				s = newStore(t, path, Options{})
				if _, err := s.Load("bearing", "another"); !errors.Is(err, ErrShape) {
					t.Errorf("the shape that replaces a lost one is not kept: %v", err)
				}
			}
			closeStore(t, s)
			s = newStore(t, path, Options{})
			if s.Recovery() != nil {
				t.Errorf("repaired again: %v", s.Recovery().Problems)
			}
			again, err := s.Load("bearing", testShape)
			if err != nil {
				t.Fatal(err)
			}
			r.Loss = Loss{}
			if diff := cmp.Diff(r, again); diff != "" {
				t.Errorf("after another start, −want +got:\n%s", diff)
			}
		})
	}
	if bearing.last() != 150 {
		t.Fatalf("the history has %d records, the table expects 150", bearing.last())
	}
}

// TestDamagedKept: the latest three damaged files are kept.
func TestDamagedKept(t *testing.T) {
	path := tempPath(t)
	for range 5 {
		writeFile(t, path, make([]byte, 4*pageSize))
		s := newStore(t, path, Options{})
		if r := s.Recovery(); r == nil || !strings.HasPrefix(r.Aside, path+".damaged-") {
			t.Errorf("Recovery() = %+v", r)
		}
		closeStore(t, s)
	}
	got, _ := filepath.Glob(path + ".damaged-*")
	want := []string{path + ".damaged-3", path + ".damaged-4", path + ".damaged-5"}
	if !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
}

// TestFaultInMap: a fault in bbolt's memory map is an error, not the end of the
// process, and the next start repairs.
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
			t.Fatalf("Commit on a file that was cut: %v, want %v", err, ErrDamaged)
		}
	}
	if _, err := s.Load("m", testShape); !errors.Is(err, ErrDamaged) {
		t.Errorf("Load on a file that was cut: %v, want %v", err, ErrDamaged)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	s.db = nil // closed already
	s = newStore(t, path, Options{})
	if s.Recovery() == nil {
		t.Error("the cut file was taken for sound")
	}
}

// TestDamagedLater: what goes wrong while the store is open is an error that
// says what to do, never wrong data; the next start repairs it.
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
		if h.judge(t, path, 1) == nil {
			t.Error("the damage was not found by the next start")
		}
	}
}

// TestStoredFreelist: bbolt's own tool stores a list of free pages, which is
// checked before bbolt may act on it.
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
	if h.judge(t, compacted, 0) != nil {
		t.Error("a file that bbolt's tool has compacted was taken for damaged")
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
		if h.judge(t, path, 1) == nil {
			t.Errorf("a free page that is %s went unnoticed", name)
		}
	}
}

// TestAsideCopied: where no second link to the damaged file can be made, it is copied.
func TestAsideCopied(t *testing.T) {
	path := tempPath(t)
	want := bytes.Repeat([]byte("damaged"), 1000)
	writeFile(t, path, want)
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := os.Remove(path); err != nil { // so that the link fails
		t.Fatal(err)
	}
	aside, err := keepAside(file, path, "damaged")
	if err != nil || !bytes.Equal(readFile(t, aside), want) {
		t.Errorf("keepAside = %q, %v: not a copy", aside, err)
	}
}

// FuzzSurvey reads arbitrary files.
func FuzzSurvey(f *testing.F) {
	h := makeHistory(f, 6_000)
	f.Add(h.file[:12*pageSize], uint16(3), byte(1))
	f.Add(h.file[:2*pageSize], uint16(20), byte(0xff))
	f.Fuzz(func(t *testing.T, file []byte, at uint16, flip byte) {
		// Flips within a sound file reach further than noise does.
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
