package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"edge/internal/broker/brokertest"
	"edge/internal/exit"
	"edge/test/harness"
)

// written passes on each write of a command.
type written chan string

func (w written) Write(p []byte) (int, error) { w <- string(p); return len(p), nil }

// Rows that come one by one are answered one by one: each is written once the one before is answered.
func TestPredictAnswersEachRowOfAPipe(t *testing.T) {
	state, _ := learntState(t, "wave", 40)
	text, err := os.ReadFile(harness.WaveformFile(t, 3))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	in, rows := io.Pipe()
	out, errOut := make(written, 10), make(written, 10)
	ended := make(chan int, 1)
	go func() { ended <- execute(t.Context(), []string{"predict", "--state", state, "-"}, in, out, errOut) }()
	go io.WriteString(rows, lines[0]+lines[1])
	for i := 1; i <= 3; i++ {
		select {
		case line := <-out:
			if answers := answersOf(t, line); len(answers) != 1 || answers[0].Row != i {
				t.Errorf("row %d: the answer is %s", i, line)
			}
		case text := <-errOut:
			t.Fatal(text)
		case <-time.After(brokertest.Patience):
			rows.Close()
			t.Fatalf("row %d is not answered while no other comes", i)
		}
		if i < 3 {
			go io.WriteString(rows, lines[i+1])
		}
	}
	rows.Close()
	if code := <-ended; code != exit.OK {
		t.Errorf("code %d", code)
	}
}
