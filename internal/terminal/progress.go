package terminal

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// A line is rewritten in its place. Text beyond the margin of a narrow terminal is not
// shown: it would be in a line of its own, which stays.
const (
	beginLine = "\r\x1b[K"
	wrapOff   = "\x1b[?7l"
	wrapOn    = "\x1b[?7h"
)

const (
	drawProgress  = 100 * time.Millisecond // between two drawings of a progress line
	firstProgress = 30 * time.Second       // until the first line where the output is no terminal; each other comes after twice the time
)

// Progress is a line on a terminal that shows the progress of a loop. Elsewhere, as in a log, a long
// loop writes a few lines. The zero value draws nothing.
type Progress struct{ line *progressLine }

// progressLine is the state of a Progress.
type progressLine struct {
	mu           sync.Mutex
	w            io.Writer
	name         string
	total, done  int
	start, drawn time.Time
	next         time.Duration // after start, of the next line where w is no terminal; 0: it is one
}

// NewProgress starts a line on w. A total of 0 or less is unknown.
func NewProgress(w io.Writer, total int, name string) Progress {
	l := &progressLine{w: w, name: name, total: total, start: time.Now()}
	if !IsTerminal(w) {
		l.next = firstProgress
	}
	return Progress{l}
}

// Add counts n more steps.
func (p Progress) Add(n int) {
	if l := p.line; l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.done += n
		l.draw(time.Now())
	}
}

// draw shows the line, if that is due.
func (l *progressLine) draw(now time.Time) {
	after := now.Sub(l.start)
	switch {
	case l.next > 0 && after >= l.next:
		l.next = 2 * after
		io.WriteString(l.w, l.text(after)+"\n")
	case l.next == 0 && now.Sub(l.drawn) >= drawProgress:
		l.drawn = now
		io.WriteString(l.w, beginLine+wrapOff+l.text(after)+wrapOn)
	}
}

// Describe changes the text before the figures.
func (p Progress) Describe(text string) {
	if l := p.line; l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.name = text
	}
}

// Close clears the line.
func (p Progress) Close() {
	if l := p.line; l != nil && l.next == 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		io.WriteString(l.w, beginLine)
	}
}

// text returns the line after some time.
func (l *progressLine) text(after time.Duration) string {
	rate := float64(l.done) / max(after.Seconds(), 1e-3)
	if l.total <= 0 {
		return fmt.Sprintf("%s %d (%.3g/s)", l.name, l.done, rate)
	}
	left := time.Duration(0)
	if rate > 0 {
		left = time.Duration(float64(l.total-l.done) / rate * float64(time.Second)).Round(time.Second)
	}
	return fmt.Sprintf("%s %3d%% %d/%d (%.3g/s, %s left)", l.name, 100*int64(l.done)/int64(l.total), l.done, l.total, rate, max(left, 0))
}
