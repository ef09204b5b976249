// Command quickstart runs the commands of a guide, from an empty folder, one after the
// other in one shell, and fails if a command fails or prints other output than the
// guide:
//
//	quickstart FILE.md...
//
// It runs each block fenced as sh, unless a comment <!-- not run: REASON --> precedes
// the block. The output must contain each line of a following block fenced as text; …
// in a line matches any characters.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

const timeout = 3 * time.Minute // of one guide

// block is a block of commands with their expected output.
type block struct {
	line    int
	text    string
	skipped string   // reason why it is not run, "" if it is run
	want    []string // lines of the output
}

func main() {
	failed := false
	for _, path := range os.Args[1:] {
		if err := try(path); err != nil {
			fmt.Fprintf(os.Stderr, "%s:%v\n", path, err)
			failed = true
		}
	}
	if failed || len(os.Args) < 2 {
		os.Exit(1)
	}
}

var notRun = regexp.MustCompile(`^<!-- not run: (.+) -->$`)

// blocks returns the blocks of a guide.
func blocks(text string) (all []block) {
	var fence string // of the current block
	var body []string
	var reason string
	for i, line := range strings.Split(text, "\n") {
		switch {
		case fence == "" && strings.HasPrefix(line, "```"):
			fence, body = line, nil
		case fence != "" && line == "```":
			switch {
			case fence == "```sh":
				all = append(all, block{line: i - len(body) + 1, text: strings.Join(body, "\n"), skipped: reason})
			case fence == "```text" && len(all) > 0:
				last := &all[len(all)-1]
				last.want = append(last.want, body...)
			}
			fence, reason = "", ""
		case fence != "":
			body = append(body, line)
		default:
			if m := notRun.FindStringSubmatch(line); m != nil {
				reason = m[1]
			} else if line != "" {
				reason = ""
			}
		}
	}
	return all
}

// mark returns the line that the shell prints before the output of block i.
func mark(i int) string { return fmt.Sprintf("== block %d ==", i) }

// try runs the blocks of a guide and checks their output.
func try(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	all := blocks(string(text))
	script := "set -eu -o pipefail\n"
	for i, b := range all {
		if b.skipped == "" {
			script += fmt.Sprintf("echo; echo '%s'\n%s\n", mark(i), b.text)
		}
	}
	folder, err := os.MkdirTemp("", "quickstart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = folder
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	end := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // the shell and the processes that it started
	cmd.Cancel = end
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.Process != nil {
		_ = end() // processes that the commands left running
	}
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(folder, "edge.log"))
		return fmt.Errorf(" %w; output:\n%s\nlog of the daemon:\n%s", err, out, log)
	}
	for i, b := range all {
		if b.skipped != "" {
			fmt.Printf("%s:%d: not run: %s\n", path, b.line, b.skipped)
			continue
		}
		_, printed, _ := strings.Cut(string(out), mark(i)+"\n")
		printed, _, _ = strings.Cut(printed, "\n== block ")
		for _, want := range b.want {
			if !occurs(printed, want) {
				return fmt.Errorf("%d: want %q in the output; got:\n%s", b.line, want, printed)
			}
		}
	}
	fmt.Printf("%s: %d blocks match the guide\n", path, len(all))
	return nil
}

// occurs reports whether a line of the output contains the parts of want in order. A
// run of spaces counts as one: the width of a column depends on all rows of a table.
func occurs(output, want string) bool {
	want = oneSpace(want)
	for line := range strings.SplitSeq(output, "\n") {
		line = oneSpace(line)
		found := true
		for part := range strings.SplitSeq(want, "…") {
			var ok bool
			if _, line, ok = strings.Cut(line, part); !ok {
				found = false
				break
			}
		}
		if found {
			return true
		}
	}
	return false
}

// oneSpace replaces each run of spaces by one space.
func oneSpace(s string) string { return strings.Join(strings.Fields(s), " ") }
