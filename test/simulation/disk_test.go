package simulation

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"edge/online"
)

const (
	page   = 4096
	sector = 512 // bytes that a disk writes atomically
)

var errDead = errors.New("the process has ended")

// disk contains the state file. It can be slow, fail, and lose unsynced writes in a
// power cut.
type disk struct {
	world       *world
	rng         *rand.Rand
	path        string
	latency     time.Duration
	slow        time.Duration // additional latency
	syncFailed  bool          // the last transaction failed in its last sync and is visible in the file
	filtersLost bool          // the store may lack the list of subscriptions
	broken      bool          // every operation fails
	restart     []byte        // state file of the next process, as a kill or a power cut left it; nil: the file as it is

	failSync atomic.Bool // the sync after the meta page fails: the transaction is in the file, but failed

	fault string // of the next operation: "kill before", "kill after", "power" or ""
}

func newDisk(w *world, path string) *disk {
	rng := w.random("disk")
	return &disk{world: w, rng: rng, path: path, latency: pick(rng, 50*time.Microsecond, time.Millisecond, 20*time.Millisecond)}
}

// journal implements stream.Journal, stream.Subscriptions and online.Checkpointer for
// one process of the node.
type journal struct{ *process }

// operate executes a transaction on the disk after a delay; no other event happens
// during it.
func (j journal) operate(what string, do func() error) error {
	w, d := j.world, j.world.disk
	w.mu.Lock()
	pause := d.latency + time.Duration(d.rng.Int64N(int64(d.latency))) + d.slow
	w.mu.Unlock()
	time.Sleep(pause)
	w.mu.Lock()
	defer w.mu.Unlock()
	if j.killed {
		return errDead
	}
	if d.broken {
		w.log("%s fails", what)
		return syscall.EIO
	}
	fault := d.fault
	d.fault = ""
	if fault == "power" && d.syncFailed { // the store writes the file anew
		fault = "kill after"
	}
	var before []byte
	switch fault {
	case "kill before":
		j.kill("before %s", what)
		return errDead
	case "power":
		before = d.read()
	}
	d.syncFailed = false
	err := do()
	if d.syncFailed {
		err = syscall.EIO // without the name of the file, which differs in every run
	}
	w.log("%s %v", what, err)
	if what != "commit" && err == nil && fault != "power" {
		w.truth.durable()
	}
	switch fault {
	case "kill after":
		j.kill("after %s", what)
		return errDead
	case "power":
		d.restart = d.powerCut(before, d.read())
		if w.truth.cut = what == "commit" && err == nil; w.truth.cut {
			w.unproven.cut()
		}
		j.kill("power cut in %s", what)
		return errDead
	}
	return err
}

func (d *disk) read() []byte {
	data, err := os.ReadFile(d.path)
	if err != nil {
		d.world.fail("%v", err)
	}
	return data
}

// step makes the sync after the meta page fail if failSync is set. World.mu is held.
func (d *disk) step(step string) error {
	if d.failSync.Load() && step == "commit" {
		d.syncFailed = true
		return syscall.EIO
	}
	return nil
}

// powerCut returns the file after a power cut during a commit or a transaction. The redo
// log is written and synced; bbolt writes its pages, syncs, writes the meta page, and syncs.
func (d *disk) powerCut(before, after []byte) []byte {
	left := bytes.Clone(before)
	if len(after) > len(before) && d.rng.IntN(2) == 0 {
		left = append(left, make([]byte, len(after)-len(before))...)
	}
	how := d.rng.IntN(4)
	d.world.log("the power is cut, %d", how)
	switch how {
	case 0: // no page was written
		return left
	case 1: // some sectors of the pages
		whole := d.rng.IntN(2) == 0
		keep := false
		for at := 2 * page; at < len(after); at += sector {
			if !whole || at%page == 0 {
				keep = d.rng.IntN(2) == 0
			}
			if keep && at < len(left) {
				copy(left[at:], after[at:min(at+sector, len(left))])
			}
		}
		return left
	case 2: // all pages, and some sectors of the meta pages
		left = bytes.Clone(after)
		copy(left[:2*page], before[:2*page])
		for at := 0; at < 2*page; at += sector {
			if d.rng.IntN(2) == 0 {
				copy(left[at:at+sector], after[at:])
			}
		}
		return left
	}
	return after
}

// Commit implements stream.Journal.
func (j journal) Commit(c *online.Commit) error {
	j.checkQueues()
	return j.operate("commit", func() error {
		err := j.store.Commit(c)
		switch {
		case err == nil:
			j.world.truth.committed(c)
		case j.world.disk.syncFailed:
			j.world.truth.uncertain(c)
		}
		return err
	})
}

// Seen implements stream.Journal.
func (j journal) Seen(model string, key uint64) bool { return j.store.Seen(model, key) }

// Checkpoint implements online.Checkpointer.
func (j journal) Checkpoint(model string, seq uint64, state []byte) error {
	return j.operate("checkpoint", func() error { return j.store.Checkpoint(model, seq, state) })
}

// Filters implements stream.Subscriptions.
func (j journal) Filters() ([]string, error) {
	if j.isKilled() {
		return nil, errDead
	}
	return j.store.Filters()
}

// RememberFilters implements stream.Subscriptions.
func (j journal) RememberFilters(filters []string) error {
	err := j.operate("remember", func() error { return j.store.RememberFilters(filters) })
	if err != nil {
		j.world.mu.Lock()
		j.world.disk.filtersLost = true
		j.world.mu.Unlock()
	}
	return err
}
