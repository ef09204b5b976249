package csvtext

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"
)

// live reads a pipe or a terminal, from which rows may come one by one. Before it waits it calls
// idle. Until begun is called it does not wait without end, so that the format is detected from
// a beginning that is short: once two lines and startPatience have passed, it returns errPause in
// place of waiting.
type live struct {
	idle    func()
	chunks  chan []byte // closed at the end
	rest    []byte      // of a chunk
	err     error       // at the end
	lines   int
	enough  <-chan time.Time // nil: wait
	waiting bool             // enough has passed
}

const startPatience = time.Second

var errPause = errors.New("no more lines so far")

// isLive reports whether r may be silent for long: it is no regular file.
func isLive(r io.Reader) bool {
	file, ok := r.(*os.File)
	if !ok {
		return true
	}
	info, err := file.Stat()
	return err == nil && !info.Mode().IsRegular()
}

// Live returns a reader of r that calls idle before it waits, and is read by NewReader; r itself
// where it is a regular file. Its goroutine ends with r, or stays until the program ends.
func Live(r io.Reader, idle func()) io.Reader {
	if !isLive(r) {
		return r
	}
	l := &live{idle: idle, chunks: make(chan []byte)}
	go func() {
		for l.err == nil {
			var n int
			p := make([]byte, 16<<10)
			if n, l.err = r.Read(p); n > 0 {
				l.chunks <- p[:n]
			}
		}
		close(l.chunks)
	}()
	return l
}

// begun ends the time in which errPause is possible.
func (l *live) begun() { l.enough, l.waiting, l.lines = nil, false, 2 }

// Read implements io.Reader.
func (l *live) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		chunk, more, err := l.next()
		switch {
		case err != nil:
			return 0, err
		case !more:
			return 0, l.err
		}
		l.rest = chunk
		if l.lines < 2 {
			if l.lines += bytes.Count(chunk, []byte("\n")); l.lines >= 2 {
				l.enough = time.After(startPatience)
			}
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// next waits for a chunk; more is false at the end.
func (l *live) next() (chunk []byte, more bool, err error) {
	select {
	case chunk, more = <-l.chunks:
		return chunk, more, nil
	default:
	}
	if l.waiting {
		return nil, true, errPause
	}
	l.idle()
	select {
	case chunk, more = <-l.chunks:
		return chunk, more, nil
	case <-l.enough:
		l.waiting = true
		return nil, true, errPause
	}
}
