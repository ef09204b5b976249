package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"edge/internal/broker/brokertest"
	"edge/test/harness"
)

// One Ctrl-C ends a command that reads: of each a file waits for more, as a pipe does.
func TestOneSignalEndsCommandsThatRead(t *testing.T) {
	state, _ := learntState(t, "m", 40)
	for _, args := range [][]string{
		{"check", "-c"},
		{"inspect", state, "-c"},
		{"predict", "--state", state},
		{"windows", "--signals", "a,b"},
		{"windows", "--signals", "a,b", "-o", filepath.Join(t.TempDir(), "samples.csv")},
		{"train"},
		{"eval", "split"},
	} {
		t.Run(args[0], func(t *testing.T) {
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := harness.Command(t, append(args, pipe)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { cmd.Wait(); close(ended) }()
			defer func() { cmd.Process.Kill(); <-ended }()
			writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // once the command opens it
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			cmd.Process.Signal(os.Interrupt)
			select {
			case <-ended:
			case <-time.After(brokertest.Patience):
				t.Errorf("edge %s goes on after a signal", args[0])
			}
		})
	}
}
