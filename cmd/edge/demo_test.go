package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"edge/internal/exit"
	"edge/internal/report"
	"edge/test/files"
	"edge/test/harness"
)

func TestDemo(t *testing.T) {
	data := harness.WaveformFile(t, 400)
	code, out, errOut := edge(t, "demo", data, "--rate", "0", "--json")
	if code != exit.OK || errOut != "" {
		t.Fatalf("exits with %d: %s", code, errOut)
	}
	var r report.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if r.Dataset != "waveform" || r.Samples != 400 || r.Error > 0.3 || len(r.Digest) != 64 || len(r.Curve) == 0 {
		t.Errorf("the summary is %s", out)
	}
	code, out, errOut = edge(t, "demo", "--for", "1s", "--rate", "100")
	if code != exit.OK || errOut != "" && !strings.Contains(errOut, "this machine is too busy") {
		t.Fatalf("exits with %d: %s", code, errOut)
	}
	if !strings.HasPrefix(out, "edge demo: waveform, 21 features, 3 classes; broker on mqtt://127.0.0.1:") || !strings.Contains(out, "macro-f1") {
		t.Errorf("it shows\n%s", out)
	}
}

// Rows without a feature are left out: the daemon would refuse them, and no prediction of
// the last one would come.
func TestDemoOfEmptyRows(t *testing.T) {
	rows := "a,b,label\n,,x\n" + strings.Repeat("1,2,x\n3,,y\n"+strings.Repeat(",,x\n", 101), 20)
	code, out, errOut := edge(t, "demo", files.Write(t, "gaps.csv", rows), "--rate", "0", "--json")
	if code != exit.OK || !strings.Contains(out, `"samples":40,`) || !strings.Contains(errOut, "gaps.csv: 2021 of 2061 rows are left out, which lack all features\n") {
		t.Errorf("exits with %d: %s%s", code, out, errOut)
	}
	code, out, errOut = edge(t, "demo", files.Write(t, "empty.csv", "a,b,label\n,,x\n,,y\n"))
	if code != exit.Runtime || out != "" || !strings.HasSuffix(errOut, "empty.csv: every row lacks all features\n") {
		t.Errorf("without any feature it exits with %d: %s%s", code, out, errOut)
	}
}

// The demo prints the numbers of rows and windows.
func TestDemoOfSignals(t *testing.T) {
	code, out, errOut := edge(t, "demo", "--signals", "--for", "1s")
	if code != exit.OK || errOut != "" && !strings.Contains(errOut, "this machine is too busy") {
		t.Fatalf("exits with %d: %s", code, errOut)
	}
	for _, want := range []string{"edge demo: vibration, 30 features, 4 classes; ", "raw signals: 640 rows a second of x, y, z; 64 rows become a sample", " windows of 64 rows, of which "} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not show %q:\n%s", want, out)
		}
	}
	if code, _, errOut := edge(t, "demo", "rows.csv", "--signals"); code != exit.Usage || !strings.Contains(errOut, "leave out FILE") {
		t.Errorf("with a file it exits with %d: %s", code, errOut)
	}
}

// A fleet refuses flags that it cannot follow, and a short data file.
func TestDemoOfFleet(t *testing.T) {
	for flags, want := range map[string]string{
		"--fleet 2": "want 3 to 16 nodes", "--fleet 17": "want 3 to 16 nodes", "--fleet 4 --signals": "leave out --signals", "--fleet 4 --rate 5": "leave out --rate",
		harness.WaveformFile(t, 100) + " --fleet 3": "has 100 labelled rows, too few for a fleet of 3 nodes: each needs 192",
	} {
		if code, _, errOut := edge(t, append([]string{"demo"}, strings.Fields(flags)...)...); code != exit.Usage || !strings.Contains(errOut, want) {
			t.Errorf("edge demo %s exits with %d: %s", flags, code, errOut)
		}
	}
}

// startDemo starts a demo in a process of its own, whose state file is in folder.
func startDemo(t *testing.T, flags ...string) (cmd *exec.Cmd, out io.ReadCloser, folder string) {
	t.Helper()
	folder = t.TempDir()
	cmd = harness.Command(t, append([]string{"demo"}, flags...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+folder)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd, out, folder
}

// A demo whose output nobody reads any more ends, and leaves no state file.
func TestDemoOfClosedOutput(t *testing.T) {
	for _, flags := range [][]string{{"--rate", "0"}, {"--fleet", "3"}} {
		cmd, out, folder := startDemo(t, flags...)
		_, readErr := io.ReadFull(out, make([]byte, 10))
		out.Close()
		if err := cmd.Wait(); readErr != nil || cmd.ProcessState.ExitCode() != exit.Runtime {
			t.Errorf("edge demo %v: %v; it ends with %v", flags, readErr, err)
		}
		if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
			t.Errorf("edge demo %v leaves %v, %v", flags, left, err)
		}
	}
}

// The second Ctrl-C ends a demo at once, and leaves no state file.
func TestDemoEndsAtTheSecondSignal(t *testing.T) {
	cmd, out, folder := startDemo(t, "--fleet", "3")
	lines := bufio.NewScanner(out)
	for _, line := range []string{"end it: Ctrl-C", "Ctrl-C again"} {
		for lines.Scan() && !strings.Contains(lines.Text(), line) {
		}
		cmd.Process.Signal(os.Interrupt)
	}
	for lines.Scan() {
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGINT) {
		t.Errorf("it exits with %d", code)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// Without a folder for its state a demo says which variable names one.
func TestDemoWithoutFolder(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	if code, _, errOut := edge(t, "demo", "--for", "1ms"); code != exit.Runtime || !strings.Contains(errOut, "set TMPDIR to a folder in which you may write") {
		t.Errorf("exit %d: %s", code, errOut)
	}
}
