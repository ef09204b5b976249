package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"edge/online"
)

// maxStored bounds the windows of a stream that an orderly stop stores, in bytes.
const maxStored = 32 << 20

var errStored = errors.New("the stored windows are not of this version")

// state returns the state from which a later node continues: the recent keys, oldest first,
// and the windows.
func (st *stage) state() []byte {
	b := []byte{1}
	for i := range recentKeys {
		b = binary.LittleEndian.AppendUint64(b, st.recent.keys[(st.recent.at+i)%recentKeys])
	}
	return append(b, st.Save()...)
}

// restore continues from a state.
func (st *stage) restore(state []byte) error {
	if len(state) < 1+8*recentKeys || state[0] != 1 {
		return errStored
	}
	for i := range recentKeys {
		st.recent.keys[i] = binary.LittleEndian.Uint64(state[1+8*i:])
	}
	st.recent.at = 0
	return st.Restore(state[1+8*recentKeys:])
}

// inherit continues the windows of the previous node's stage.
func (st *stage) inherit(old *stage) error {
	st.stored, st.moved, st.teach.latest = old.stored, old.moved, old.teach.latest
	return st.restore(old.state())
}

// storeWindows stores the windows of all stages after the worker has ended and all that
// it made is committed. The next node, or the next process, continues from them.
func (c *committer) storeWindows(ctx context.Context) {
	c.clean = ctx.Err() == nil
	if !c.clean {
		return
	}
	commit := &online.Commit{}
	for _, st := range c.stages {
		if !st.moved || st.Devices() == 0 {
			continue
		}
		state := st.state()
		if len(state) > maxStored {
			c.log.Warn("the windows in progress are too large to be stored; they begin anew at the next start", "stream", st.of.name, "bytes", len(state), "at_most", maxStored)
			continue
		}
		commit.Windows = append(commit.Windows, online.Windows{Stream: st.of.name, State: state})
	}
	if len(commit.Windows) == 0 {
		return
	}
	if err := c.journal.Commit(commit); err != nil {
		c.log.Warn("the windows in progress cannot be stored; they begin anew at the next start", "error", err)
		return
	}
	for _, st := range c.stages {
		if slices.ContainsFunc(commit.Windows, func(w online.Windows) bool { return w.Stream == st.of.name }) {
			st.stored, st.moved = true, false
		}
	}
}
