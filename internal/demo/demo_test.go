package demo

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"edge/internal/exit"
	"edge/internal/timing"
	"edge/online"
	"edge/stream"
)

// slowLearner takes a minute for each group of ten samples.
type slowLearner struct {
	groups int // not yet learnt
	status online.Status
}

// The demo waits for a busy learner, even for minutes, but not for rows that the
// learner never receives.
func TestDemoWaitsForTheLearner(t *testing.T) {
	for name, tc := range map[string]struct {
		rows uint64
		took time.Duration
	}{
		"all are scored": {30, 3 * time.Minute}, "two are refused": {32, 3*time.Minute + learntWait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, begun := &slowLearner{groups: 3}, time.Now()
				if err := learnt(t.Context(), l, tc.rows); err != nil || l.status.Scores.N != 30 || time.Since(begun) != tc.took {
					t.Errorf("after %v %d of 30 samples are learnt: %v; want %v", time.Since(begun), l.status.Scores.N, err, tc.took)
				}
			})
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := learnt(ended, &slowLearner{groups: 1}, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// A demo on a busy machine may end before its last samples are learnt; any other
// error is reported.
func TestUnfinishedDemo(t *testing.T) {
	late := exit.With(exit.Runtime, stream.ErrUnfinished)
	broken := exit.With(exit.Store, errors.New("the disk is gone"))
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {late, true}, {broken, false}, {errors.Join(late, nil), true}, {errors.Join(nil, errors.Join(late)), true},
		{errors.Join(late, broken), false}, {errors.Join(errors.Join(late, broken)), false},
	} {
		if got := unfinished(tc.err); got != tc.want {
			t.Errorf("unfinished(%v) = %v, want %v", tc.err, got, tc.want)
		}
	}
}

func (l *slowLearner) Status() *online.Status { s := l.status; return &s }

func (l *slowLearner) Idle(ctx context.Context) error {
	for ; l.groups > 0; l.groups-- {
		if err := timing.Sleep(ctx, time.Minute); err != nil {
			return err
		}
		l.status.Seq += 10
		l.status.Scores.N += 10
	}
	return nil
}
