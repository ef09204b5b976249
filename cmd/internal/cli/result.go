package cli

import (
	"fmt"
	"io"
	"os"
)

// result is the standard output of a command. It keeps the first error of a write: most
// commands print without a look at it.
type result struct {
	to  io.Writer
	err error
}

// Write implements io.Writer.
func (r *result) Write(p []byte) (int, error) {
	n, err := r.to.Write(p)
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("the output is incomplete: %w", err)
	}
	return n, err
}

// writer returns r as the command sees it: a file remains one, since it may be a terminal.
func (r *result) writer() io.Writer {
	if file, ok := r.to.(*os.File); ok {
		return &resultFile{file, r}
	}
	return r
}

// resultFile is a file of which each write goes through a result.
type resultFile struct {
	*os.File
	result *result
}

func (f *resultFile) Write(p []byte) (int, error)       { return f.result.Write(p) }
func (f *resultFile) WriteString(s string) (int, error) { return f.result.Write([]byte(s)) }

func (f *resultFile) ReadFrom(from io.Reader) (int64, error) { return io.Copy(f.result, from) }
