package terminal

import (
	"io"
	"sync"
	"time"
)

const (
	patience  = time.Second // for which a line of the log is waited for
	maxUnread = 64 << 10    // bytes of lines that wait for a log that stalls
)

// stallWriter writes the lines of a log to a writer that may block for any time: a pipe whose
// reader has stopped, a terminal after Ctrl-S. A call returns when its line is written, but after
// patience at the latest; until the writer has taken that line, further ones wait in a queue of
// maxUnread bytes, and lines without room there are dropped and counted.
type stallWriter struct {
	to     io.Writer
	report func(lines int) // logs the number of dropped lines

	mu      sync.Mutex
	queue   []byte
	dropped int           // lines
	stalled bool          // no call waits
	written chan struct{} // closed when all of the queue is written; nil: no goroutine writes
}

// Write implements io.Writer. Its error is always nil: no caller of a log handles one.
func (w *stallWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	if len(w.queue)+len(line) > maxUnread && len(w.queue) > 0 {
		w.dropped++
		w.mu.Unlock()
		return len(line), nil
	}
	w.queue = append(w.queue, line...)
	if w.written == nil {
		w.written = make(chan struct{})
		go w.drain(w.written)
	}
	written, stalled := w.written, w.stalled
	w.mu.Unlock()
	if stalled {
		return len(line), nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C:
		w.mu.Lock()
		w.stalled = w.written == written
		w.mu.Unlock()
	}
	return len(line), nil
}

// drain writes the queue until it is empty, and then closes written.
func (w *stallWriter) drain(written chan struct{}) {
	defer close(written)
	for {
		w.mu.Lock()
		lines, dropped := w.queue, w.dropped
		w.queue = nil
		if len(lines) == 0 {
			w.dropped = 0
			if dropped == 0 {
				w.stalled, w.written = false, nil
				w.mu.Unlock()
				return
			}
		}
		w.mu.Unlock()
		if len(lines) > 0 {
			w.to.Write(lines)
		} else {
			w.report(dropped) // stalled is true: this does not wait for its own line
		}
	}
}
