package persist

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"syscall"
	"testing"

	"edge/online"
)

// group returns a commit of n records.
func group(tr *truth, n int) *online.Commit {
	c := &online.Commit{}
	for i := range n {
		c.Records = append(c.Records, sample(tr.name, tr.last()+uint64(i)+1))
	}
	return c
}

func commitGroup(t *testing.T, s *Store, tr *truth, n int) {
	t.Helper()
	c := group(tr, n)
	if err := s.Commit(c); err != nil {
		t.Fatal(err)
	}
	tr.commit(c)
}

// clone returns a truth that further commits do not change.
func (tr *truth) clone() *truth {
	c := *tr
	c.records, c.pending = slices.Clone(tr.records), slices.Clone(tr.pending)
	return &c
}

// checkFile opens a file as a crash left it, and compares it with the truth.
func checkFile(t *testing.T, file []byte, tr *truth) {
	t.Helper()
	path := tempPath(t)
	writeFile(t, path, file)
	s := newStore(t, path, Options{})
	if s.Recovery() != nil {
		t.Fatalf("the file was repaired: %v", s.Recovery().Problems)
	}
	tr.check(t, s)
	closeStore(t, s)
}

// TestRedoTorn cuts the power while a frame of several pages is written over the rest of
// another: any sectors of it may be on the disk. The commit is there as a whole or not.
func TestRedoTorn(t *testing.T) {
	path, fail := tempPath(t), false
	s := newStore(t, path, Options{Fault: func(step string) error {
		if fail && step == "commit" {
			return syscall.EIO
		}
		return nil
	}})
	tr := newTruths(t, s, "m")[0]
	commitGroup(t, s, tr, 3)
	rng := rand.New(rand.NewPCG(5, 0))
	for range 3 {
		before, earlier := readFile(t, path), tr.clone()
		commitGroup(t, s, tr, 150)
		after := readFile(t, path)
		var changed []int
		for at := 0; at < len(after); at += 512 {
			if !bytes.Equal(before[at:at+512], after[at:at+512]) {
				changed = append(changed, at)
			}
		}
		if len(changed) < 2*pageSize/512 {
			t.Fatalf("%d sectors changed: the frame is too short", len(changed))
		}
		checkFile(t, before, earlier)
		checkFile(t, after, tr)
		for n := range 20 {
			cut := slices.Clone(before)
			left := rng.IntN(len(changed))
			for i, at := range changed {
				if n%2 == 0 && i != left || n%2 == 1 && rng.IntN(2) == 0 {
					copy(cut[at:at+512], after[at:])
				}
			}
			checkFile(t, cut, earlier)
		}
	}
	closeStore(t, s)
}

// TestRedoGap clears a frame that others follow, and the last one: a power cut leaves the
// second, and a disk that lost a write the first.
func TestRedoGap(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	tr := newTruths(t, s, "m")[0]
	for range 9 {
		commitGroup(t, s, tr, 1)
	}
	at := s.log.at + int64(int(s.log.epoch%2)*redoPages+s.log.pages)*pageSize
	file := readFile(t, path)
	closeStore(t, s)

	last := slices.Clone(file)
	clear(last[at-pageSize : at])
	tr.records = tr.records[:8]
	checkFile(t, last, tr)

	fifth := slices.Clone(file)
	clear(fifth[at-5*pageSize : at-4*pageSize])
	path = tempPath(t)
	writeFile(t, path, fifth)
	v, err := Verify(path, nil)
	if err != nil || len(v.Problems) == 0 {
		t.Errorf("Verify: %+v, %v", v, err)
	}
	s = newStore(t, path, Options{})
	if r := s.Recovery(); r == nil || r.Models["m"].Samples != 5 {
		t.Errorf("Recovery: %+v, want 5 lost samples", r)
	}
	tr.records = tr.records[:4]
	if r, err := s.Load("m", testShape); err != nil || len(r.Records) != 4 {
		t.Errorf("Load: %d records, %v, want 4", len(r.Records), err)
	}
}

// TestRedoFails lets frames fail after they are in the file: the store goes on without
// them, and the next start does not find them.
func TestRedoFails(t *testing.T) {
	path, fail := tempPath(t), ""
	s := newStore(t, path, Options{Fault: func(step string) error {
		if step == fail {
			return syscall.EIO
		}
		return nil
	}})
	tr := newTruths(t, s, "m")[0]
	for _, step := range []string{"commit", "write"} {
		commitGroup(t, s, tr, 2)
		fail = step
		if err := s.Commit(group(tr, 100)); !errors.Is(err, syscall.EIO) {
			t.Fatalf("Commit: %v, want %v", err, syscall.EIO)
		}
		fail = ""
		tr.check(t, s)
		commitGroup(t, s, tr, 1) // a transaction
		checkFile(t, readFile(t, path), tr)
		commitGroup(t, s, tr, 1)
		checkFile(t, readFile(t, path), tr)
	}
	closeStore(t, s)
}

// TestLater commits boundaries that become durable with the next commit, or with a
// checkpoint, and that a crash before loses.
func TestLater(t *testing.T) {
	path, fail := tempPath(t), false
	s := newStore(t, path, Options{Fault: func(step string) error {
		if fail && step == "write" {
			return syscall.EIO
		}
		return nil
	}})
	tr := newTruths(t, s, "m")[0]
	later := func() {
		t.Helper()
		before, err := s.Stats()
		if err != nil {
			t.Fatal(err)
		}
		c := &online.Commit{Later: true, Records: []online.Record{{Model: "m", Event: online.Event{Kind: online.Boundary}}}}
		if err := s.Commit(c); err != nil || c.Records[0].Seq != tr.last()+1 {
			t.Fatalf("Commit: record %d, %v, want %d", c.Records[0].Seq, err, tr.last()+1)
		}
		tr.commit(c)
		if after, err := s.Stats(); err != nil || after.WrittenBytes != before.WrittenBytes {
			t.Errorf("%d bytes written, %v", after.WrittenBytes-before.WrittenBytes, err)
		}
		tr.check(t, s)
	}
	commitGroup(t, s, tr, 3)
	durable := tr.clone()
	later()
	checkFile(t, readFile(t, path), durable)
	commitGroup(t, s, tr, 1)
	checkFile(t, readFile(t, path), tr)

	later()
	fail = true
	if err := s.Commit(group(tr, 1)); !errors.Is(err, syscall.EIO) {
		t.Fatalf("Commit: %v, want %v", err, syscall.EIO)
	}
	fail = false
	tr.check(t, s)
	commitGroup(t, s, tr, 1)
	checkFile(t, readFile(t, path), tr)

	later()
	tr.seq, tr.state = tr.last(), stateOf(tr.last(), 3000)
	if err := s.Checkpoint("m", tr.seq, tr.state); err != nil {
		t.Fatal(err)
	}
	checkFile(t, readFile(t, path), tr)

	for range maxLater + 1 { // more than may wait
		c := &online.Commit{Later: true, Records: []online.Record{{Model: "m", Event: online.Event{Kind: online.Boundary}}}}
		if err := s.Commit(c); err != nil {
			t.Fatal(err)
		}
		tr.commit(c)
	}
	if len(s.log.later) > maxLater {
		t.Errorf("%d changes wait, at most %d may", len(s.log.later), maxLater)
	}
	closeStore(t, s)
	checkFile(t, readFile(t, path), tr)
}

// TestRedoIsRead reads a file whose newest commits are in the redo log, without changing
// it, and a backup of it.
func TestRedoIsRead(t *testing.T) {
	live := tempPath(t)
	s := newStore(t, live, Options{})
	tr := newTruths(t, s, "m")[0]
	play(t, rand.New(rand.NewPCG(6, 0)), s, []*truth{tr}, 30)
	commitGroup(t, s, tr, 2)
	copied := tempPath(t)
	if _, err := Backup(live, copied); err != nil {
		t.Fatal(err)
	}
	checkFile(t, readFile(t, copied), tr)
	file := readFile(t, live)
	closeStore(t, s)

	path := tempPath(t)
	writeFile(t, path, file)
	r, err := OpenReadOnly(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.log.frames == 0 {
		t.Fatal("the redo log is empty")
	}
	tr.check(t, r)
	closeStore(t, r)
	v, err := Verify(path, nil)
	if err != nil || len(v.Problems) > 0 || v.Models[0].Last != tr.last() {
		t.Errorf("Verify: %+v, %v, want record %d as the last", v, err, tr.last())
	}
	if !bytes.Equal(file, readFile(t, path)) {
		t.Error("reading changed the file")
	}
}

// TestRedoWrittenOver copies an older state of the file over it, which differs in the
// redo log alone.
func TestRedoWrittenOver(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	tr := newTruths(t, s, "m")[0]
	commitGroup(t, s, tr, 1)
	older := readFile(t, path)
	commitGroup(t, s, tr, 1)
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(older, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(group(tr, 1)); !errors.Is(err, ErrReplaced) {
		t.Errorf("Commit: %v, want %v", err, ErrReplaced)
	}
}

// A commit that was reported as failed may be in the file: an orderly end leaves nothing of it, also
// where it is the only one since the transaction, and the next commit is a transaction.
func TestFailedFrame(t *testing.T) {
	for _, before := range []int{0, 3} {
		path, fail := tempPath(t), ""
		s := newStore(t, path, Options{Fault: func(step string) error {
			if step == fail {
				return errors.New("no sync")
			}
			return nil
		}})
		tr := newTruths(t, s, "m")[0]
		for range before {
			commitGroup(t, s, tr, 1)
		}
		for _, again := range []bool{true, false} {
			fail = "commit"
			if err := s.Commit(group(tr, 2)); err == nil {
				t.Fatal("the commit has not failed")
			}
			if fail = ""; again {
				frames := s.log.frames
				if commitGroup(t, s, tr, 1); s.log.frames != 0 {
					t.Errorf("a frame follows the failed one, after %d", frames)
				}
			}
		}
		closeStore(t, s)
		checkFile(t, readFile(t, path), tr)
	}
}

// FuzzRedo reads any changes, and two frames of them in which a byte may be damaged: what is read
// is what was written, or nothing.
func FuzzRedo(f *testing.F) {
	list := []change{{place{bucketLedger, "m"}, []byte("value")}, {place{"journal/m", "12345678"}, bytes.Repeat([]byte("x"), 60)}, {place{"pending/m", "1"}, nil}}
	for _, payload := range [][]byte{appendChanges(nil, list), appendChanges(nil, list[:1]), nil, {2}} {
		f.Add(payload, uint64(3), uint16(0), byte(0))
		f.Add(payload, uint64(4), uint16(40), byte(1))
	}
	f.Fuzz(func(t *testing.T, payload []byte, epoch uint64, at uint16, flip byte) {
		want, err := decodeChanges(payload)
		if again, e := decodeChanges(appendChanges(nil, want)); err == nil && (e != nil || !reflect.DeepEqual(again, want)) {
			t.Errorf("round trip of %v gave %v, %v", want, again, e)
		}
		half := appendFrame(appendFrame(nil, epoch, 1, payload), epoch, 2, payload)
		half[int(at)%len(half)] ^= flip
		read := 0
		r := readHalf(half, epoch, anyFrame, func(got []change) {
			if read++; !reflect.DeepEqual(got, want) {
				t.Errorf("frame %d has %v, want %v", read, got, want)
			}
		})
		if r.pages > len(half)/pageSize || read > 2 || err != nil && read > 0 || flip == 0 && err == nil && (read != 2 || r.gap) {
			t.Errorf("%d frames on %d of %d pages, gap %v; the changes: %v", read, r.pages, len(half)/pageSize, r.gap, err)
		}
	})
}
