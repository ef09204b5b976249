package daemon

import (
	"errors"
	"time"

	"edge/online"
	"edge/persist"
	"edge/stream"
)

// journal is the store as the node's journal. It reports how long each commit took, when
// the store is full, and when its file is damaged or replaced.
type journal struct {
	*persist.Store
	onCommit func(took time.Duration)
	onFull   func() (done bool) // done: checkpoints make no more room
	onFailed func(error)
}

// Commit implements stream.Journal. Its error is no online.ErrLimit while checkpoints may
// make room: the node then drops nothing.
func (j *journal) Commit(c *online.Commit) error {
	began := time.Now()
	err := j.Store.Commit(c)
	switch {
	case err == nil:
		j.onCommit(time.Since(began))
	case errors.Is(err, persist.ErrFull):
		if !j.onFull() {
			err = errors.New(err.Error())
		}
	case errors.Is(err, persist.ErrDamaged), errors.Is(err, persist.ErrReplaced):
		j.onFailed(err)
	}
	return err
}

// Records implements online.Journal.
func (j *journal) Records(model string, seq uint64, n int) ([]online.Record, error) {
	records, err := j.Store.Records(model, seq, n)
	if errors.Is(err, persist.ErrDamaged) || errors.Is(err, persist.ErrReplaced) {
		j.onFailed(err)
	}
	return records, err
}

// readable returns the journal from which models recover.
func (d *Daemon) readable() online.Journal {
	return &journal{Store: d.store, onFailed: d.onStoreFailed}
}

// onStoreFailed ends the daemon: its next start repairs the file.
func (d *Daemon) onStoreFailed(err error) {
	select {
	case d.storeFailed <- err:
	default:
	}
}

// journal returns the node's journal. When the store is full, checkpoints shorten
// the journals: the next one may be due much later, or never while no commit
// succeeds. If they do not suffice, the node drops pending samples. A damaged file is
// repaired when it is opened, and a file that replaced the store's must not be overwritten,
// so both end the daemon.
func (d *Daemon) journal() stream.Journal {
	return &journal{d.store, d.monitor.OnCommit, func() (done bool) {
		done = true
		for _, m := range d.current().Models {
			done = m.Loop.MakeRoom() && done
		}
		return done
	}, d.onStoreFailed}
}
