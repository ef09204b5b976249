package online

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"edge/model"
)

// shelf is a Checkpointer in memory that can be made to fail.
type shelf struct {
	mu    sync.Mutex
	seq   uint64
	state []byte
	saves int
	fail  error
}

func (s *shelf) Checkpoint(_ string, seq uint64, state []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.seq, s.state, s.saves = seq, append([]byte(nil), state...), s.saves+1
	return nil
}

func records(rng *rand.Rand, from, n int) []Record {
	out := make([]Record, n)
	for i := range out {
		out[i] = Record{Model: "m", Seq: uint64(from + i), Event: blob(rng, 3)}
	}
	return out
}

// The losses of the minibatch that is filling begin with each minibatch, and are those
// that the scores have counted meanwhile.
func TestLossOfOpenMinibatch(t *testing.T) {
	cfg := testConfig(3, "a", "b", "c")
	l, rng := newTestLearner(t, cfg), rand.New(rand.NewPCG(1, 1))
	total := func() float64 {
		if s := l.Scores(); s.N > 0 {
			return float64(s.N) * s.NLL
		}
		return 0
	}
	closed := 0.0
	for i := range 203 {
		ev := blob(rng, 3)
		if out := l.Add(&ev); out.Closed {
			closed = total()
		}
		if got, want := l.batch.nll, total()-closed; math.Abs(got-want) > 1e-6*total() || l.Pending() == 0 && got != 0 {
			t.Fatalf("after %d labels, %d of them open, the loss of these is %g, want %g", i+1, l.Pending(), got, want)
		}
	}
	if l.Pending() == 0 {
		t.Error("no label is open at the end: the test shows less")
	}
}

// For any grouping and any checkpoints in between, the loop ends in the state of a
// learner that was fed directly.
func TestLoopEqualsLearner(t *testing.T) {
	defer goleak.VerifyNone(t)
	cfg := testConfig(3, "a", "b", "c")
	direct := newTestLearner(t, cfg)
	feed(direct, rand.New(rand.NewPCG(1, 1)), 500)

	var kinds []string
	built := ""
	disk := &shelf{}
	l := newTestLearner(t, cfg)
	lp := NewLoop(l, LoopOptions{Model: "m", Queue: 2, Checkpointer: disk, Samples: 64, Notify: func(n Notice) {
		if kinds = append(kinds, n.Kind); n.Kind == NoticeBuilt {
			built = n.Detail
		}
	}})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- lp.Run(ctx) }()
	rng := rand.New(rand.NewPCG(1, 1))
	for seq := 1; seq <= 500; {
		n := min(1+seq%7, 501-seq)
		if err := lp.Learn(ctx, records(rng, seq, n)); err != nil {
			t.Fatal(err)
		}
		seq += n
	}
	if err := lp.Idle(ctx); err != nil {
		t.Fatal(err)
	}
	if s := lp.Status(); s.Seq != 500 || s.Scores.N != 500 || !s.Built || !s.WarmedUp {
		t.Errorf("status %+v", s)
	}
	if got, want := lp.Posterior().Version(), uint64(500); got != want {
		t.Errorf("snapshot of version %d, want %d", got, want)
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if disk.seq != 500 || disk.saves < 6 {
		t.Errorf("last checkpoint at %d, %d of them", disk.seq, disk.saves)
	}
	restored, err := Restore(cfg, disk.state)
	if err != nil {
		t.Fatal(err)
	}
	if restored.Digest() != direct.Digest() {
		t.Error("the loop's state differs from that of a learner fed directly")
	}
	if len(kinds) == 0 || kinds[0] != "model_built" {
		t.Errorf("notices %v", kinds)
	}
	if !strings.HasPrefix(built, "from 35 observations, features by mean") || !strings.Contains(built, ", in ") {
		t.Errorf("the last build is described as %q", built)
	}
}

// The status has the classes after the record of a notice when that is given, also of a loop
// that recovers.
func TestStatusHasTheClassesOfANotice(t *testing.T) {
	cfg := testConfig(2, "a", "b")
	events := []Event{
		{Kind: Observe, X: []float64{1, 2}, Label: "new"}, {Kind: ClassRename, Label: "new", Name: "other"}, {Kind: ClassRemove, Label: "none"},
		{Kind: ClassRemove, Label: "a"},
	}
	for name, old := range map[string]int{"": 0, "recovering": 2} {
		t.Run(name, func(t *testing.T) {
			j := &ledger{size: 1}
			var records []Record
			for i, ev := range events {
				records = append(records, Record{Model: "m", Seq: uint64(i + 1), Event: ev})
			}
			j.commit(records[:old])
			var lp *Loop
			var got []string
			opts := LoopOptions{Queue: 1, Recovery: &Recovery{Ready: func(*Learner) {}}, Notify: func(n Notice) {
				s := lp.Status()
				got = append(got, fmt.Sprint(n.Kind, n.Seq, s.Seq, s.Classes.Names, s.Classes.Former))
			}}
			lp = recoveringLoop(t, j, &shelf{}, opts, func([]byte) (*Learner, error) { return NewLearner(cfg) })
			j.commit(records[old:])
			ctx, stop := context.WithCancel(context.Background())
			if err := lp.Learn(ctx, records[old:]); err != nil {
				t.Fatal(err)
			}
			done := make(chan error)
			go func() { done <- lp.Run(ctx) }()
			<-lp.Recovered()
			if err := lp.Idle(ctx); err != nil {
				t.Fatal(err)
			}
			stop()
			<-done
			want := []string{
				"class_added1 1 [a b new] map[]", "class_renamed2 2 [a b other] map[new:other]", "event_refused3 3 [a b other] map[new:other]",
				"class_removed4 4 [b other] map[new:other]",
			}
			if old > 0 {
				want = append(want, "model_recovered4 4 [b other] map[new:other]")
			}
			if want = want[old:]; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestLoopCheckpointsWhatWasReplayed(t *testing.T) {
	l := newTestLearner(t, testConfig(3))
	feed(l, rand.New(rand.NewPCG(1, 1)), 70)
	disk := &shelf{}
	lp := NewLoop(l, LoopOptions{Model: "m", Seq: 70, Saved: 10, Checkpointer: disk, Samples: 50})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := lp.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if disk.saves != 1 || disk.seq != 70 {
		t.Errorf("%d checkpoints, the last at %d", disk.saves, disk.seq)
	}
}

// A few large records fill a journal as many small ones do.
func TestLoopCheckpointsBySize(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	few := records(rng, 1, 10)
	size := uint64(few[0].Size())
	for name, c := range map[string]struct {
		bytes, behind uint64
		want          int
	}{
		"never":                 {0, 1 << 40, 0},
		"not yet":               {10*size + 1, 0, 0},
		"in time":               {10 * size, 0, 1},
		"with replayed records": {20 * size, 10 * size, 1},
	} {
		disk := &shelf{}
		lp := NewLoop(newTestLearner(t, testConfig(3)), LoopOptions{Model: "m", Checkpointer: disk, Bytes: c.bytes, Unsaved: c.behind})
		lp.learn(t.Context(), few)
		if disk.saves != c.want || c.want > 0 && lp.checkpoints.unsaved != 0 {
			t.Errorf("%s: %d checkpoints, want %d; %d bytes since", name, disk.saves, c.want, lp.checkpoints.unsaved)
		}
	}
}

// A checkpoint by time, one that fails, and one that works again.
func TestLoopCheckpointsByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &shelf{fail: errors.New("disk full")}
		failed := 0
		lp := NewLoop(newTestLearner(t, testConfig(3)), LoopOptions{Model: "m", Checkpointer: disk, Every: time.Minute,
			Notify: func(n Notice) {
				if n.Kind == "checkpoint_failed" {
					failed++
				}
			}})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- lp.Run(ctx) }()
		rng := rand.New(rand.NewPCG(1, 1))
		if err := lp.Learn(ctx, records(rng, 1, 20)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(90 * time.Second)
		synctest.Wait()
		if failed != 1 || disk.saves != 0 {
			t.Errorf("after 90 s: %d failed, %d saved", failed, disk.saves)
		}
		disk.mu.Lock()
		disk.fail = nil
		disk.mu.Unlock()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if disk.saves != 1 || disk.seq != 20 {
			t.Errorf("%d checkpoints, the last at %d; want one: nothing was learnt since", disk.saves, disk.seq)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A full journal gets two checkpoints, after which it can be shortened, and no third
// while nothing is learnt; on a disk that refuses them the loop tries again a minute
// later. Only then is all done that can be done.
func TestLoopMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &shelf{}
		lp := NewLoop(newTestLearner(t, testConfig(3)), LoopOptions{Model: "m", Checkpointer: disk, Samples: 1e9})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- lp.Run(ctx) }()
		rng := rand.New(rand.NewPCG(1, 1))
		ask := func(done bool, saves int, seq uint64) {
			t.Helper()
			if got := lp.MakeRoom(); got != done {
				t.Errorf("done %t, want %t", got, done)
			}
			synctest.Wait()
			if disk.saves != saves || disk.seq != seq {
				t.Errorf("%d checkpoints, the last at %d, want %d and %d", disk.saves, disk.seq, saves, seq)
			}
		}
		ask(false, 0, 0) // the state is empty
		if err := lp.Learn(ctx, records(rng, 1, 20)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ask(false, 2, 20)
		ask(true, 2, 20)
		if err := lp.Learn(ctx, records(rng, 21, 1)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		disk.fail = errors.New("disk full")
		ask(false, 2, 20)
		disk.fail = nil
		ask(true, 2, 20) // too soon
		time.Sleep(checkpointRetry)
		ask(true, 4, 21)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A loop that may not linger leaves the queue to the journal; its state is that of a
// learner that was fed the records before it.
func TestLoopLingersNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testConfig(3, "a", "b", "c")
		disk := &shelf{}
		lp := NewLoop(newTestLearner(t, cfg), LoopOptions{Model: "m", Queue: 10, Checkpointer: disk, Linger: time.Second,
			// A slow processor.
			Learnt: func(time.Duration) { time.Sleep(300 * time.Millisecond) }})
		all := records(rand.New(rand.NewPCG(1, 1)), 1, 500)
		ctx, stop := context.WithCancel(t.Context())
		for at := 0; at < len(all); at += 100 {
			if err := lp.Learn(ctx, all[at:at+100]); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		if err := lp.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if disk.seq == 0 || disk.seq >= 500 {
			t.Fatalf("the checkpoint has %d records, want some of 500", disk.seq)
		}
		direct := newTestLearner(t, cfg)
		for i := range disk.seq {
			direct.Add(&all[i].Event)
		}
		restored, err := Restore(cfg, disk.state)
		if err != nil {
			t.Fatal(err)
		}
		if restored.Digest() != direct.Digest() {
			t.Errorf("the state after %d records differs from that of a learner fed directly", disk.seq)
		}
		if err := lp.Idle(t.Context()); err != nil {
			t.Errorf("a caller that waits for the loop is not released: %v", err)
		}
	})
}

// The loop has a heartbeat, idle and at work, until it is stuck.
func TestLoopSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		lp := NewLoop(newTestLearner(t, testConfig(3, "a", "b", "c")), LoopOptions{Model: "m", Learnt: func(time.Duration) { <-stuck }})
		if s := lp.Silence(); s != 0 {
			t.Errorf("silent for %v when it is made", s)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- lp.Run(ctx) }()
		time.Sleep(time.Hour)
		if s := lp.Silence(); s > time.Second {
			t.Errorf("idle, it is silent for %v", s)
		}
		if err := lp.Learn(ctx, records(rand.New(rand.NewPCG(1, 1)), 1, 100)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if s := lp.Silence(); s < 59*time.Second {
			t.Errorf("stuck for a minute, it is silent for %v", s)
		}
		close(stuck)
		time.Sleep(time.Second)
		if s := lp.Silence(); s > time.Second {
			t.Errorf("at work again, it is silent for %v", s)
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}

// slowShelf is a shelf that takes its time.
type slowShelf struct {
	shelf
	takes time.Duration
}

func (s *slowShelf) Checkpoint(model string, seq uint64, state []byte) error {
	time.Sleep(s.takes)
	return s.shelf.Checkpoint(model, seq, state)
}

// A loop that waits for the disk is not stuck: the watchdog would end a daemon that answers.
func TestSlowCheckpointIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &slowShelf{takes: time.Hour}
		lp := NewLoop(newTestLearner(t, testConfig(3, "a", "b", "c")), LoopOptions{Model: "m", Checkpointer: disk, Samples: 10})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- lp.Run(ctx) }()
		if err := lp.Learn(ctx, records(rand.New(rand.NewPCG(1, 1)), 1, 100)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if s := lp.Silence(); s > time.Second {
			t.Errorf("a minute into a checkpoint it is silent for %v", s)
		}
		stop()
		if err := <-done; err != nil || disk.saves == 0 {
			t.Errorf("%d checkpoints, %v", disk.saves, err)
		}
	})
}

// While the loop builds the model, however long that takes, predictions are answered
// from the snapshot before, records are taken until the queue is full, and the
// heartbeat goes on between the pieces of the build.
func TestPredictionsDoNotWaitForABuild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTestLearner(t, testConfig(3, "a", "b", "c"))
		lp := NewLoop(l, LoopOptions{Model: "m", Queue: 2})
		const piece = time.Minute
		pieces, first := 0, make(chan struct{})
		l.progress = func() {
			if pieces++; pieces == 1 {
				close(first)
			}
			time.Sleep(piece)
			lp.heartbeat()
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- lp.Run(ctx) }()
		rng := rand.New(rand.NewPCG(1, 1))
		if err := lp.Learn(ctx, records(rng, 1, 64)); err != nil { // the whole warm-up
			t.Fatal(err)
		}
		<-first
		began := time.Now()
		for _, from := range []int{65, 70} {
			if err := lp.Learn(ctx, records(rng, from, 5)); err != nil {
				t.Fatal(err)
			}
		}
		ws := model.NewWorkspace()
		for range 100 {
			ev := blob(rng, 3)
			if probs, _, err := lp.Posterior().PredictTo(nil, ev.X, ws); err != nil || len(probs) != 3 {
				t.Fatalf("prediction %v, error %v", probs, err)
			}
		}
		if lp.Posterior().Built() || time.Since(began) > 0 {
			t.Errorf("the answers waited for the build: %v passed", time.Since(began))
		}
		short, cancel := context.WithTimeout(ctx, piece)
		defer cancel()
		if err := lp.Learn(short, records(rng, 75, 5)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a full queue gave %v", err)
		}
		for range 10 {
			time.Sleep(piece)
			if s := lp.Silence(); s > piece {
				t.Errorf("silent for %v, one piece takes %v", s, piece)
			}
		}
		if err := lp.Idle(ctx); err != nil {
			t.Fatal(err)
		}
		if p := lp.Posterior(); !p.Built() || p.Version() != 70 {
			t.Errorf("built %v, version %d; want 70 samples learnt", p.Built(), p.Version())
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
