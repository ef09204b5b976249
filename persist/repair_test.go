package persist

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"edge/online"
)

// corrupt returns a function that changes the last byte of a value wherever the
// file contains it, in older trees as well.
func corrupt(bucket string, key []byte) func(t *testing.T, file []byte) {
	return func(t *testing.T, file []byte) {
		metas, _, _ := readMetas(bytes.NewReader(file), int64(len(file)))
		found := false
		var pr problems
		newPages(bytes.NewReader(file), int64(len(file)), metas[0], &pr).entries(metas[0].root, func(b string, k, v []byte) {
			if b == bucket && bytes.Equal(k, key) {
				for at := 0; ; at++ {
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

// lossTest is a case of TestLosses.
type lossTest struct {
	name    string
	damage  []func(*testing.T, []byte)
	seq     uint64 // of the state that Load returns
	records int
	state   bool   // lost
	samples uint64 // lost
	pending uint64
	report  string // a problem or a note contains it
}

// TestLosses damages chosen values of a file, and checks the report, the repaired
// state and the next start.
func TestLosses(t *testing.T) {
	h := makeHistory(t, 6_000)
	bearing := h.truths[0]
	for _, test := range []lossTest{
		{name: "newest checkpoint", damage: []func(*testing.T, []byte){corrupt("checkpoint/bearing/1", stateKey)},
			seq: 50, records: 100, report: "the checkpoint at 50 and 100 records"},
		{name: "older checkpoint", damage: []func(*testing.T, []byte){corrupt("checkpoint/bearing/0", stateKey)},
			seq: 90, records: 60, report: "the checkpoint at 90 and 60 records"},
		{name: "both checkpoints", damage: []func(*testing.T, []byte){corrupt("checkpoint/bearing/0", stateKey), corrupt("checkpoint/bearing/1", stateKey)},
			seq: 50, records: 100, state: true, samples: 50, report: "from nothing and 100 records"},
		{name: "record after the checkpoint", damage: []func(*testing.T, []byte){corrupt("journal/bearing", numberKey(101))},
			seq: 90, records: 10, samples: 50, report: "50 samples"},
		{name: "record between the checkpoints", damage: []func(*testing.T, []byte){corrupt("journal/bearing", numberKey(60))},
			seq: 90, records: 60, report: "0 samples"},
		{name: "that record and the newest checkpoint", damage: []func(*testing.T, []byte){corrupt("journal/bearing", numberKey(60)), corrupt("checkpoint/bearing/1", stateKey)},
			seq: 50, records: 9, samples: 91, report: "91 samples"},
		{name: "last record", damage: []func(*testing.T, []byte){corrupt("journal/bearing", numberKey(150))},
			seq: 90, records: 59, samples: 1, report: "1 samples"},
		{name: "pending sample", damage: []func(*testing.T, []byte){corrupt("pending/bearing", numberKey(100))},
			seq: 90, records: 60, pending: 1, report: "1 pending"},
		{name: "ledger", damage: []func(*testing.T, []byte){corrupt("ledger", []byte("bearing"))},
			seq: 90, records: 60, report: "differ from the ledger"},
		{name: "shape", damage: []func(*testing.T, []byte){corrupt("meta", shapeKey("bearing"))},
			seq: 90, records: 60, report: "shape is lost"},
		{name: "format", damage: []func(*testing.T, []byte){corrupt("meta", []byte(keyFormat))},
			seq: 90, records: 60, report: "format"},
		{name: "another model", damage: []func(*testing.T, []byte){corrupt("journal/pump", numberKey(7))},
			seq: 90, records: 60, report: "journal/pump"},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, h.file) })
	}
	if bearing.last() != 150 {
		t.Fatalf("the history has %d records, the table expects 150", bearing.last())
	}
}

// A checkpoint is newer than the ledger where the ledger is that of the transaction before, and the
// redo log after that is lost: no sample is lost that the checkpoint has.
func TestLedgerBehindCheckpoint(t *testing.T) {
	h := newModelContents()
	h.slots[0], h.ledger = slot{generation: 1, seq: 10}, &ledger{last: 5}
	if loss := h.reconcile(); loss.Samples != 0 || h.ledger.last != 10 {
		t.Errorf("%d samples are lost, and the journal ends at %d; want 0 and 10", loss.Samples, h.ledger.last)
	}
}

// The older generation is kept with all records after it, and dropped if one is missing, be it the first.
func TestOlderGenerationNeedsItsRecords(t *testing.T) {
	for missing, want := range map[uint64]slot{0: {1, 50}, 51: {}, 70: {}, 90: {}} {
		h := newModelContents()
		h.slots, h.ledger = [2]slot{{1, 50}, {2, 90}}, &ledger{last: 100}
		for seq := uint64(51); seq <= 100; seq++ {
			if seq != missing {
				h.journal[seq] = []byte{1}
			}
		}
		loss := h.reconcile()
		first, records := uint64(91), 10
		if want.generation > 0 {
			first, records = 51, 50
		}
		if h.slots[0] != want || len(h.journal) != records || h.journal[first] == nil || loss.Samples != 0 {
			t.Errorf("record %d missing: older generation %+v, %d records, %d samples lost; want %+v, %d, 0", missing, h.slots[0], len(h.journal), loss.Samples, want, records)
		}
	}
}

// run damages a copy of a sound file, and checks Verify, Open and Load.
func (test lossTest) run(t *testing.T, sound []byte) {
	path := tempPath(t)
	file := slices.Clone(sound)
	for _, damage := range test.damage {
		damage(t, file)
	}
	writeFile(t, path, file)

	outcome, err := Verify(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenReadOnly(path, Options{}); !errors.Is(err, ErrDamaged) {
		t.Errorf("OpenReadOnly of the damaged file: %v, want %v", err, ErrDamaged)
	}
	s := newStore(t, path, Options{})
	recovery := s.Recovery()
	if recovery == nil {
		t.Fatal("Open repaired nothing")
	}
	checkOutcome(t, outcome, recovery)
	if !bytes.Equal(file, readFile(t, recovery.Aside)) {
		t.Error("the file kept aside is not the damaged one")
	}
	r, err := s.Load("bearing", testShape)
	if err != nil {
		t.Fatal(err)
	}
	if r.Seq != test.seq || len(r.Records) != test.records || r.Loss.State != test.state || r.Loss.Samples != test.samples || r.Loss.Pending != test.pending {
		t.Errorf("seq %d and %d records, state %v, %d samples and %d pending ones lost; want %d, %d, %v, %d, %d",
			r.Seq, len(r.Records), r.Loss.State, r.Loss.Samples, r.Loss.Pending, test.seq, test.records, test.state, test.samples, test.pending)
	}
	report := strings.Join(append(slices.Clone(recovery.Problems), r.Loss.Notes...), "\n")
	if !strings.Contains(report, test.report) {
		t.Errorf("no problem or note contains %q:\n%s", test.report, report)
	}
	if test.name == "shape" {
		closeStore(t, s)
		s = newStore(t, path, Options{})
		if _, err := s.Load("bearing", "another"); !errors.Is(err, ErrShape) {
			t.Errorf("the shape that replaced a lost one was not stored: %v", err)
		}
	}
	closeStore(t, s)
	s = newStore(t, path, Options{})
	if s.Recovery() != nil {
		t.Errorf("the next start repaired again: %v", s.Recovery().Problems)
	}
	again, err := s.Load("bearing", testShape)
	if err != nil {
		t.Fatal(err)
	}
	r.Loss = Loss{}
	if diff := cmp.Diff(r, again, stored); diff != "" {
		t.Errorf("after another start, −want +got:\n%s", diff)
	}
}

// A state that was trained offline is in no record: a repair says that it is lost, and
// does not say so of a model that had no checkpoint.
func TestTrainedStateIsLost(t *testing.T) {
	state := func(slot string) func(*testing.T, []byte) { return corrupt("checkpoint/m/"+slot, stateKey) }
	for name, tc := range map[string]struct {
		checkpoints, records int // each checkpoint before the records
		damage               []func(*testing.T, []byte)
		want                 bool
	}{
		"the state":                       {1, 0, []func(*testing.T, []byte){state("1")}, true},
		"the state, records after it":     {1, 5, []func(*testing.T, []byte){state("1")}, true},
		"the state and records":           {1, 5, []func(*testing.T, []byte){state("1"), corrupt("journal/m", numberKey(4))}, true},
		"both states":                     {2, 5, []func(*testing.T, []byte){state("0"), state("1")}, true},
		"one of two":                      {2, 5, []func(*testing.T, []byte){state("0")}, false},
		"a record after the state":        {1, 5, []func(*testing.T, []byte){corrupt("journal/m", numberKey(4))}, false},
		"a record of a model without":     {0, 5, []func(*testing.T, []byte){corrupt("journal/m", numberKey(4))}, false},
		"the shape of a model without":    {0, 5, []func(*testing.T, []byte){corrupt("meta", shapeKey("m"))}, false},
		"the shape of a model in waiting": {0, 0, []func(*testing.T, []byte){corrupt("meta", shapeKey("m"))}, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := tempPath(t)
			s := newStore(t, path, Options{})
			newTruths(t, s, "m")
			for n := range tc.checkpoints {
				if err := s.Checkpoint("m", 0, stateOf(uint64(n), 3000)); err != nil {
					t.Fatal(err)
				}
			}
			var commit online.Commit
			for n := range tc.records {
				r := sample("m", uint64(n)+1)
				r.Seq = uint64(n) + 1
				commit.Records = append(commit.Records, r)
			}
			if err := s.Commit(&commit); err != nil {
				t.Fatal(err)
			}
			closeStore(t, s)
			file := readFile(t, path)
			for _, damage := range tc.damage {
				damage(t, file)
			}
			writeFile(t, path, file)
			outcome, err := Verify(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			s = newStore(t, path, Options{})
			if s.Recovery() == nil {
				t.Fatal("Open repaired nothing")
			}
			checkOutcome(t, outcome, s.Recovery())
			if loss := s.Recovery().Models["m"]; loss.State != tc.want {
				t.Errorf("the state is lost: %v, want %v: %+v", loss.State, tc.want, loss)
			}
		})
	}
}
