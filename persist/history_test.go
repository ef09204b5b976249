package persist

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"edge/online"
)

// history is a state file with the commits and checkpoints that led to it.
type history struct {
	redo   int // first page of the redo log, which is empty in file
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
		c := &online.Commit{Records: []online.Record{sample("bearing", n)}, Wait: []online.Pending{pendingSample("bearing", n)}}
		if n > 70 {
			c.Forget = []online.Pending{pendingSample("bearing", n-70)}
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
	h.redo = int(s.log.at / pageSize)
	closeStore(t, s)
	h.file = readFile(t, path)
	return h
}

// checkRepair opens the damaged file at path and compares the recovered models with
// the history: entries may be missing if the notes report it, but no other entry may
// appear, apart from few pending samples that the last transactions had dropped.
func (h *history) checkRepair(t *testing.T, path string, few int) *Recovery {
	t.Helper()
	outcome, err := Verify(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	defer closeStore(t, s)
	recovery := s.Recovery()
	checkOutcome(t, outcome, recovery)
	for _, tr := range h.truths {
		got, err := s.Load(tr.name, testShape)
		if err != nil {
			t.Fatalf("Load: %v", err)
		}
		end := got.Seq + uint64(len(got.Records))
		if got.State != nil && !bytes.Equal(got.State, h.states[tr.name][got.Seq]) {
			t.Errorf("%s: the state at %d was never committed", tr.name, got.Seq)
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
			t.Errorf("%s: %d samples were not pending, notes %q", tr.name, unknown, got.Loss.Notes)
		}
		missing := tr.last() - end
		if got.State == nil {
			missing += got.Seq
		}
		if (missing > 0 || len(got.Pending)-unknown < len(tr.pending)) && len(got.Loss.Notes) == 0 {
			t.Errorf("%s: %d records and %d pending samples are missing, and no note reports it", tr.name, missing, len(tr.pending)-len(got.Pending))
		}
		if got.Loss.Samples < missing && !got.Loss.State && !got.Loss.More {
			t.Errorf("%s: %d records are missing, %d are reported as lost: %q", tr.name, missing, got.Loss.Samples, got.Loss.Notes)
		}
		if got.Loss.Samples > missing {
			t.Errorf("%s: %d samples reported as lost, %d are missing", tr.name, got.Loss.Samples, missing)
		}
		for _, r := range got.Records {
			if r.Key != 0 && !s.Seen(tr.name, r.Key) {
				t.Errorf("%s: key of record %d is not seen", tr.name, r.Seq)
			}
		}
		// The journal continues without a gap.
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
			t.Error("a repair without a problem")
		}
	}
	return recovery
}

// checkOutcome fails unless Verify predicted the repair that Open then made.
func checkOutcome(t *testing.T, v *Outcome, r *Recovery) {
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
