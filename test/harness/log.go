package harness

import (
	"bytes"
	"strings"
	"sync"
)

// Log is a text that several goroutines may write and read. The zero value is ready.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends to the text.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns the text so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Lines returns the number of lines that begin with a text.
func (l *Log) Lines(begin string) int { return strings.Count("\n"+l.String(), "\n"+begin) }
