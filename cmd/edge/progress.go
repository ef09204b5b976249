//go:build !minimal

package main

import (
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress is a progress bar, or nothing at all where nobody watches.
type progress struct{ bar *progressbar.ProgressBar }

// newProgress starts a bar on w if that is a terminal; total −1 is unknown.
func newProgress(w io.Writer, total int, name string) progress {
	if !isTerminal(w) {
		return progress{}
	}
	return progress{progressbar.NewOptions(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(name),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)}
}

// Add moves the bar by n.
func (p progress) Add(n int) {
	if p.bar != nil {
		p.bar.Add(n)
	}
}

// Describe changes the text before the bar.
func (p progress) Describe(text string) {
	if p.bar != nil {
		p.bar.Describe(text)
	}
}

// Close takes the bar off the screen.
func (p progress) Close() {
	if p.bar != nil {
		p.bar.Finish()
	}
}
