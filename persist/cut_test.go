package persist

import (
	"fmt"
	"slices"
	"testing"
)

// TestCutInRedo lets the file end within its redo log: the commits in front of the end are kept,
// whether the tree is there or behind the end, and the loss of the others is told.
func TestCutInRedo(t *testing.T) {
	const frames = 20
	for _, l := range []struct {
		name        string
		checkpoints int
		compacted   bool
	}{{"new", 0, false}, {"tree behind the log", 5, false}, {"compacted", 5, true}} {
		t.Run(l.name, func(t *testing.T) {
			path := tempPath(t)
			s := newStore(t, path, Options{})
			tr := newTruths(t, s, "m")[0]
			for range l.checkpoints {
				commitGroup(t, s, tr, 10)
				if err := s.Checkpoint("m", tr.last(), stateOf(tr.last(), 30_000)); err != nil {
					t.Fatal(err)
				}
			}
			if l.compacted {
				if err := s.rewrite(); err != nil {
					t.Fatal(err)
				}
			}
			before := tr.last()
			for range frames {
				commitGroup(t, s, tr, 1)
			}
			if s.log.frames != frames {
				t.Fatalf("%d frames, want %d", s.log.frames, frames)
			}
			first := int(s.log.at/pageSize) + int(s.log.epoch%2)*redoPages
			file := readFile(t, path) // as a crash leaves it
			closeStore(t, s)
			for n := first; n <= first+redoPages; n++ {
				t.Run(fmt.Sprintf("page=%d", n), func(t *testing.T) {
					checkCut(t, tr, file[:n*pageSize+n%2*64], before+uint64(min(n-first, frames)))
				})
			}
		})
	}
}

// checkCut repairs a file that was cut off, in which end is the last record.
func checkCut(t *testing.T, tr *truth, file []byte, end uint64) {
	t.Helper()
	path := tempPath(t)
	writeFile(t, path, file)
	v, err := Verify(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := newStore(t, path, Options{})
	defer closeStore(t, s)
	checkOutcome(t, v, s.Recovery())
	r, err := s.Load(tr.name, testShape)
	if err != nil {
		t.Fatal(err)
	}
	last := r.Seq + uint64(len(r.Records))
	if last != end {
		t.Errorf("records up to %d are there, want %d: %q", last, end, r.Loss.Notes)
	}
	if !slices.EqualFunc(r.Records, tr.records[r.Seq:last], sameRecord) {
		t.Errorf("records %d to %d are not those that were committed", r.Seq+1, last)
	}
	if last < tr.last() && !r.Loss.More {
		t.Errorf("%d of %d records are lost, and %d are told: %q", tr.last()-last, tr.last(), r.Loss.Samples, r.Loss.Notes)
	}
}

// TestRedoGapOfAnotherModel clears the only frame of a model, which others follow: its loss is told.
func TestRedoGapOfAnotherModel(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	tr := newTruths(t, s, "m", "n")
	for _, model := range []int{0, 1, 0} {
		commitGroup(t, s, tr[model], 1)
	}
	at := s.log.at + int64(int(s.log.epoch%2)*redoPages+1)*pageSize
	file := readFile(t, path)
	closeStore(t, s)
	clear(file[at : at+pageSize])
	path = tempPath(t)
	writeFile(t, path, file)
	s = newStore(t, path, Options{})
	defer closeStore(t, s)
	if r := s.Recovery(); r == nil || !r.Models["n"].More || len(r.Models["n"].Notes) == 0 {
		t.Errorf("Recovery: %+v, want the loss of model n", r)
	}
}
