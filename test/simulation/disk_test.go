package simulation

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"syscall"
	"time"

	"edge/online"
)

const (
	page   = 4096
	sector = 512 // what a disk writes at once
)

var errDead = errors.New("the process has ended")

// disk is where the state file is. It can be slow, refuse, and lose what was not
// synced when the power is cut.
type disk struct {
	world     *world
	rng       *rand.Rand
	path      string
	latency   time.Duration
	slow      time.Duration // more
	late      bool          // the last transaction is in the file, and has failed
	forgetful bool          // the node could not remember what it is subscribed to
	broken    bool          // every operation fails
	image     []byte        // that the next life finds; nil: what was written last

	unsynced bool // the sync after the meta page fails: the transaction is in the file, and is none

	fault string // of the next commit: "kill before", "kill after", "power"; empty: none
}

func newDisk(w *world, path string) *disk {
	rng := w.random("disk")
	return &disk{world: w, rng: rng, path: path, latency: pick(rng, 50*time.Microsecond, time.Millisecond, 20*time.Millisecond)}
}

// journal is the store as one life of a node sees it: as stream.Journal,
// stream.Subscriptions and online.Checkpointer.
type journal struct{ *life }

// operate carries out a transaction on the disk, at a moment of its own: nothing
// else happens meanwhile.
func (j journal) operate(what string, do func() error) error {
	w, d := j.world, j.world.disk
	w.mu.Lock()
	pause := d.latency + time.Duration(d.rng.Int64N(int64(d.latency))) + d.slow
	w.mu.Unlock()
	time.Sleep(pause)
	w.mu.Lock()
	defer w.mu.Unlock()
	if j.dead {
		return errDead
	}
	if d.broken {
		w.log("%s fails", what)
		return syscall.EIO
	}
	fault := d.fault
	d.fault = ""
	if fault == "power" && d.late { // the store writes the file anew
		fault = "kill after"
	}
	var before []byte
	switch fault {
	case "kill before":
		j.die("before %s", what)
		return errDead
	case "power":
		before = d.read()
	}
	d.late = false
	err := do()
	if d.late {
		err = syscall.EIO // without the name of the file, which no other run has
	}
	w.log("%s %v", what, err)
	switch fault {
	case "kill after":
		j.die("after %s", what)
		return errDead
	case "power":
		d.image = d.cut(before, d.read())
		w.truth.cut = what == "commit" && err == nil
		j.die("power cut in %s", what)
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

// step lets the sync after the meta page fail. World.mu is held.
func (d *disk) step(step string) error {
	if d.unsynced && step == "commit" {
		d.late = true
		return syscall.EIO
	}
	return nil
}

// cut returns what a power cut during a transaction leaves. bbolt writes its
// pages, syncs, writes the meta page, and syncs.
func (d *disk) cut(before, after []byte) []byte {
	left := bytes.Clone(before)
	if len(after) > len(before) && d.rng.IntN(2) == 0 {
		left = append(left, make([]byte, len(after)-len(before))...)
	}
	how := d.rng.IntN(4)
	d.world.log("the power is cut, %d", how)
	switch how {
	case 0: // nothing was written
		return left
	case 1: // any part of the pages
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
	case 2: // all pages, and any sectors of the meta page
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
	j.bounded()
	return j.operate("commit", func() error {
		err := j.store.Commit(c)
		switch {
		case err == nil:
			j.world.truth.committed(c)
		case j.world.disk.late:
			j.world.truth.doubted(c)
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
	if j.isDead() {
		return nil, errDead
	}
	return j.store.Filters()
}

// RememberFilters implements stream.Subscriptions.
func (j journal) RememberFilters(filters []string) error {
	err := j.operate("remember", func() error { return j.store.RememberFilters(filters) })
	if err != nil {
		j.world.mu.Lock()
		j.world.disk.forgetful = true
		j.world.mu.Unlock()
	}
	return err
}
