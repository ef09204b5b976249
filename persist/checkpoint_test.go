package persist

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"edge/online"
)

// TestCheckpoints checks that generations alternate, and that the journal begins after
// the older one.
func TestCheckpoints(t *testing.T) {
	s := newStore(t, tempPath(t), Options{})
	newTruths(t, s, "m")
	for i := range uint64(6) {
		n := i * 10
		for range 10 {
			n++
			if err := s.Commit(&online.Commit{Records: []online.Record{sample("m", n)}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Checkpoint("m", n, stateOf(n, 5000)); err != nil {
			t.Fatal(err)
		}
		info, err := s.Info("m")
		if err != nil {
			t.Fatal(err)
		}
		want := Info{Model: "m", Shape: testShape, First: 1, Last: n, Dedupe: info.Dedupe,
			Checkpoints: []Generation{{Generation: i + 1, Seq: n, Bytes: 5000}}}
		if i > 0 {
			want.Checkpoints = append(want.Checkpoints, Generation{Generation: i, Seq: n - 10, Bytes: 5000})
			want.First = n - 10 + 1
		}
		if diff := cmp.Diff(want, info); diff != "" {
			t.Fatalf("after checkpoint %d, −want +got:\n%s", i+1, diff)
		}
	}
	if err := s.Checkpoint("m", 59, []byte("x")); !errors.Is(err, ErrSequence) {
		t.Errorf("a checkpoint behind the newest: %v, want %v", err, ErrSequence)
	}
	// Several checkpoints at one seq, as after training without records: Load returns the latest.
	for _, state := range []string{"one", "two", "three"} {
		if err := s.Checkpoint("m", 60, []byte(state)); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Load("m", testShape); err != nil || string(r.State) != state || r.Seq != 60 || len(r.Records) != 0 {
			t.Errorf("after checkpoint %q at the same seq: %+v, %v", state, r, err)
		}
	}
}

// TestNoCheckpointYet checks that a missing checkpoint is no unknown model.
func TestNoCheckpointYet(t *testing.T) {
	s := newStore(t, tempPath(t), Options{})
	newTruths(t, s, "m")
	if err := s.Commit(&online.Commit{Records: []online.Record{sample("m", 1)}}); err != nil {
		t.Fatal(err)
	}
	for _, older := range []bool{false, true} {
		if _, _, err := s.State("m", older); !errors.Is(err, ErrCheckpoint) || errors.Is(err, ErrModel) {
			t.Errorf("State with older %v: %v, want %v", older, err, ErrCheckpoint)
		}
		if err := s.Checkpoint("m", 1, stateOf(1, 5000)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.State("m", true); err != nil {
		t.Errorf("State of the older checkpoint: %v", err)
	}
	if _, _, err := s.State("n", true); !errors.Is(err, ErrModel) {
		t.Errorf("State of an unknown model: %v, want %v", err, ErrModel)
	}
}

// The buffers of a commit with a large state, as of a rollback, are not kept.
func TestBuffersOfALargeRecord(t *testing.T) {
	s := newStore(t, tempPath(t), Options{})
	if _, err := s.Load("m", "shape"); err != nil {
		t.Fatal(err)
	}
	state := make([]byte, 2*maxBuffer)
	if err := s.Commit(&online.Commit{Records: []online.Record{{Model: "m", Event: online.Event{Kind: online.Replace, State: state}}}}); err != nil {
		t.Fatal(err)
	}
	if kept := cap(s.scratch.values) + cap(s.scratch.payload) + cap(s.log.buffer); kept > 2*maxBuffer {
		t.Errorf("the store keeps buffers of %d bytes", kept)
	}
	closeStore(t, s)
}
