package online

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// ledger is a Journal in memory.
type ledger struct {
	mu      sync.Mutex
	records []Record // the first has number 1
	size    int      // records of an answer, at most
	read    func()   // called before each read; nil: none
}

func (j *ledger) Records(_ string, seq uint64, n int) ([]Record, error) {
	if j.read != nil {
		j.read()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	rest := j.records[seq:]
	return slices.Clone(rest[:min(n, j.size, len(rest))]), nil
}

func (j *ledger) commit(records []Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.records = append(j.records, records...)
}

// recoveringLoop is a loop that continues from a checkpoint and a journal.
func recoveringLoop(t *testing.T, j *ledger, disk *shelf, opts LoopOptions, revive func(state []byte) (*Learner, error)) *Loop {
	t.Helper()
	l, err := revive(disk.state)
	if err != nil {
		t.Fatal(err)
	}
	opts.Model, opts.Seq, opts.Saved, opts.Checkpointer = "m", disk.seq, disk.seq, disk
	opts.Recovery.Journal, opts.Recovery.Last = j, uint64(len(j.records))
	opts.Recovery.Revive = func() (*Learner, uint64, error) {
		l, err := revive(disk.state)
		return l, disk.seq, err
	}
	return NewLoop(l, opts)
}

// TestKilledWhileItRecovers kills loops while they recover and while new records come:
// the last one ends in the state of a learner that was fed directly.
func TestKilledWhileItRecovers(t *testing.T) {
	defer goleak.VerifyNone(t)
	cfg := testConfig(3, "a", "b", "c")
	for _, samples := range []uint64{0, 40} { // between checkpoints
		rng, kills := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(2, samples))
		j, disk := &ledger{size: 7}, &shelf{}
		j.commit(records(rng, 1, 100))
		ready, recovered := 0, 0
		for run := range 12 {
			ctx, kill := context.WithCancel(t.Context())
			disk.fail = nil
			reads, end, last := 0, 1+kills.IntN(12), run == 11
			j.read = func() {
				if reads++; reads == end && !last {
					disk.fail = errors.New("killed")
					kill()
				}
			}
			newest := uint64(len(j.records))
			var at uint64
			lp := recoveringLoop(t, j, disk, LoopOptions{Samples: samples, Queue: 1, Notify: func(n Notice) {
				if n.Kind == NoticeRecovered {
					recovered++
				}
			}, Recovery: &Recovery{Ready: func(l *Learner) { at = l.view.N + uint64(l.Pending()); ready++ }}}, func(state []byte) (*Learner, error) { return RestoreOrNew(cfg, state) })
			if s := lp.Status(); s.Recovering != (disk.seq < newest) || s.Behind != newest-disk.seq {
				t.Fatalf("a loop at %d of %d begins with %+v", disk.seq, newest, s)
			}
			done := make(chan error, 1)
			go func() { done <- lp.Run(ctx) }()
			for range 10 {
				next := records(rng, len(j.records)+1, 5)
				j.commit(next)
				if lp.Learn(ctx, next) != nil {
					break
				}
			}
			if last {
				select {
				case <-lp.Recovered():
				case err := <-done:
					t.Fatalf("the loop ends with %v", err)
				}
				if s, all := lp.Status(), lp.Posterior().Version(); s.Behind != 0 || all < newest-4 { // the minibatch that is filling
					t.Errorf("recovered with %d records to learn and %d learnt", s.Behind, all)
				}
				if err := lp.Idle(ctx); err != nil {
					t.Fatal(err)
				}
				kill()
			}
			if err := <-done; last && err != nil {
				t.Fatal(err)
			}
			if at != 0 && at != newest {
				t.Errorf("Ready came with %d samples, want %d", at, newest)
			}
			kill()
		}
		direct := newTestLearner(t, cfg)
		for i := range j.records {
			direct.Add(&j.records[i].Event)
		}
		if l, err := RestoreOrNew(cfg, disk.state); err != nil || disk.seq != uint64(len(j.records)) || l.Digest() != direct.Digest() {
			t.Errorf("checkpoints every %d: after %d of %d records the state differs (%v)", samples, disk.seq, len(j.records), err)
		}
		if ready == 0 || recovered == 0 {
			t.Errorf("checkpoints every %d: %d loops reached the end of their journal, %d recovered", samples, ready, recovered)
		}
	}
}

// TestRefusesWhileItRecovers holds a recovery: the loop answers from its checkpoint,
// takes records, and refuses requests that need all of them.
func TestRefusesWhileItRecovers(t *testing.T) {
	defer goleak.VerifyNone(t)
	cfg := testConfig(3, "a", "b", "c")
	rng := rand.New(rand.NewPCG(1, 1))
	held, release := make(chan struct{}), make(chan struct{})
	j, disk := &ledger{size: 20}, &shelf{}
	reads := 0
	j.read = func() {
		if reads++; reads == 3 { // 40 records are learnt
			close(held)
			<-release
		}
	}
	j.commit(records(rng, 1, 100))
	lp := recoveringLoop(t, j, disk, LoopOptions{Recovery: &Recovery{Ready: func(*Learner) {}}}, func(state []byte) (*Learner, error) { return RestoreOrNew(cfg, state) })
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- lp.Run(ctx) }()
	<-held
	for range 200 { // more than its queue holds
		next := records(rng, len(j.records)+1, 1)
		j.commit(next)
		if err := lp.Learn(ctx, next); err != nil {
			t.Fatal(err)
		}
	}
	if s := lp.Status(); !s.Recovering || lp.Idle(ctx) != ErrRecovering {
		t.Errorf("idle while it recovers: %+v", s)
	}
	if !lp.Busy() { // its records are in the journal, not in its queue
		t.Error("not busy while it recovers")
	}
	refused := make(chan error, 2)
	go func() {
		_, _, err := lp.State(ctx)
		refused <- err
	}()
	close(release)
	if err := <-refused; err != nil && !errors.Is(err, ErrRecovering) { // the recovery may have ended before
		t.Error(err)
	}
	<-lp.Recovered()
	if seq, _, err := lp.State(ctx); err != nil || seq != 300 {
		t.Errorf("the state after the recovery is that of %d records, want 300: %v", seq, err)
	}
	if err := lp.Idle(ctx); err != nil {
		t.Error(err)
	}
	if lp.Busy() {
		t.Error("busy with nothing to learn")
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestRecoveryLeavesOutWhatPanics has records that make the learner panic, in the
// journal after a checkpoint and among the new ones.
func TestRecoveryLeavesOutWhatPanics(t *testing.T) {
	cfg := testConfig(3, "a", "b", "c")
	cfg.Classes.Open = false
	untouched := newTestLearner(t, cfg)
	all := records(rand.New(rand.NewPCG(9, 9)), 1, 240)
	disk := &shelf{}
	for i := range all {
		switch i {
		case 50:
			disk.seq = 50
			disk.state, _ = untouched.AppendBinary(nil)
		case 70, 120, 220:
			all[i].Label = "poison"
		case 80:
			all[i].Label = "of no class"
		}
		if all[i].Label != "poison" {
			untouched.Add(&all[i].Event)
		}
	}
	untouched.counters.StepsRefused += 3
	j := &ledger{size: 16}
	j.commit(all[:200])
	var left, other []uint64
	var lp *Loop
	lp = recoveringLoop(t, j, disk, LoopOptions{Notify: func(n Notice) {
		if n.Kind == NoticeRecovered {
			delete(lp.learner.classes.index, "poison") // which cannot be encoded
		}
	}, Recovery: &Recovery{Ready: func(*Learner) {}, Refused: func(r Refused) {
		if r.LeftOut != nil {
			left = append(left, r.Seq)
		} else {
			other = append(other, r.Seq)
		}
	}}}, func(state []byte) (*Learner, error) {
		l, err := RestoreOrNew(cfg, state)
		if err == nil {
			l.classes.index["poison"] = 99 // there are three
		}
		return l, err
	})
	j.commit(all[200:])
	if err := lp.Learn(t.Context(), all[200:]); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- lp.Run(ctx) }()
	<-lp.Recovered()
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(left, []uint64{71, 121, 221}) || !slices.Equal(other, []uint64{81}) {
		t.Errorf("left out %d, otherwise refused %d", left, other)
	}
	if l, err := RestoreOrNew(cfg, disk.state); err != nil || l.Digest() != untouched.Digest() {
		t.Errorf("the state is not that of a learner without the records that were left out: %v", err)
	}
}
