package online

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// On a disk that refuses checkpoints, one by samples is tried twice and then once a minute, not after
// each minibatch: an attempt writes the whole state, and each is a line of the log and an event.
func TestLoopCheckpointsAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, failed := &shelf{fail: errors.New("disk full")}, 0
		lp := NewLoop(newTestLearner(t, testConfig(3)), LoopOptions{Model: "m", Checkpointer: disk, Samples: 10,
			Notify: func(n Notice) {
				if n.Kind == NoticeCheckpointFailed {
					failed++
				}
			}})
		rng := rand.New(rand.NewPCG(1, 1))
		for i := range 30 {
			lp.learn(t.Context(), records(rng, 1+10*i, 10))
			time.Sleep(4 * time.Second)
		}
		if failed != 3 || disk.saves != 0 {
			t.Errorf("in two minutes: %d failed, %d saved, want 3 and none", failed, disk.saves)
		}
		disk.fail = nil
		time.Sleep(checkpointRetry)
		for i := range 2 { // the pause ends with a success
			lp.learn(t.Context(), records(rng, 301+10*i, 10))
		}
		if disk.saves != 2 || disk.seq != 320 {
			t.Errorf("%d checkpoints, the last at %d, want 2 and 320", disk.saves, disk.seq)
		}
	})
}
