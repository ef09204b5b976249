package eval

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"edge/internal/broker/brokertest"
	"edge/internal/dataset"
	"edge/online/active"
)

// One Ctrl-C ends an evaluation that reads the whole file for a shuffle: this one waits for more.
func TestOneSignalEndsAShuffle(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "rows.csv")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	seed := uint64(1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		e := New()
		e.Selection.Shuffle = &seed
		_, err := e.once(ctx, pipe, dataset.Summary{}, active.Config{}, 0, io.Discard)
		ended <- err
	}()
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	// More than what is read to detect the format, and than the pipe holds.
	if _, err := io.WriteString(writer, "a,label\n"+strings.Repeat("1,x\n", 100_000)); err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, ErrInterrupted) {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(brokertest.Patience):
		t.Error("goes on after a signal")
	}
}
