package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/internal/exit"
	"edge/test/files"
	"edge/test/harness"
)

// A command whose output is lost fails, and says so.
func TestLostOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		brokertest.Missing(t, "/dev/full")
	}
	defer full.Close()
	table := harness.TableFile(t, "table.csv", 100)
	config := files.Write(t, "edge.yaml", "mqtt: {servers: [mqtt://h]}\nstreams: {s: {topics: [t], features: [a]}}\nmodels: {m: {streams: [s]}}\n")
	for _, args := range [][]string{
		{"check", "-c", config}, {"version"}, {"version", "--json"}, {"eval", table}, {"eval", table, "--json"}, {"config", "show", "-c", config}, {"config", "sample"}, {"--help"}, {"completion", "bash"},
	} {
		var errOut bytes.Buffer
		code := execute(t.Context(), args, strings.NewReader(""), full, &errOut)
		if code != exit.Runtime || !strings.Contains(errOut.String(), "no space left on device") {
			t.Errorf("edge %s exits with %d: %s", strings.Join(args, " "), code, &errOut)
		}
	}
}

// A command that fails leaves the file as it was that it would have written.
func TestOutputStaysAfterAnError(t *testing.T) {
	dir := t.TempDir()
	table := harness.TableFile(t, "table.csv", 100)
	halves := filepath.Join(dir, "halves.csv")
	if err := os.WriteFile(halves, []byte("x,label\n1,a\nno number,a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"report of no file":   {"eval", filepath.Join(dir, "nofile.csv"), "--report"},
		"report of an error":  {"eval", halves, "--report"},
		"windows of no file":  {"windows", filepath.Join(dir, "nofile.csv"), "--signals", "x", "--length", "10", "-o"},
		"windows of an error": {"windows", halves, "--signals", "x", "--length", "2", "-o"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "out")
			if err := os.WriteFile(path, []byte("good"), 0o640); err != nil {
				t.Fatal(err)
			}
			if code, _, _ := edge(t, append(args, path)...); code == exit.OK {
				t.Fatal("the command has no error")
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != "good" {
				t.Errorf("the file has %q, %v", got, err)
			}
			if there, err := os.ReadDir(dir); err != nil || len(there) != 1 {
				t.Errorf("beside the file: %v, %v", there, err)
			}
		})
	}
	link := filepath.Join(dir, "null")
	if err := os.Symlink(os.DevNull, link); err != nil {
		brokertest.Missing(t, "no symbolic link can be made here: "+err.Error())
	}
	if code, _, errOut := edge(t, "eval", table, "--inducing", "10", "--report", link); code != exit.OK {
		t.Errorf("a report to %s exits with %d: %s", os.DevNull, code, errOut)
	}
	edge(t, "eval", halves, "--report", link)
	if _, err := os.Lstat(link); err != nil {
		t.Error(err)
	}
}

// A file is written to where a symbolic link points, also if none is there yet.
func TestOutputFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	table := harness.TableFile(t, "table.csv", 100)
	link, chain, folder := filepath.Join(dir, "link"), filepath.Join(dir, "chain"), filepath.Join(dir, "pages")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Symlink(filepath.Join("pages", "new.html"), link), os.Symlink("link", chain)); err != nil {
		brokertest.Missing(t, "no symbolic link can be made here: "+err.Error())
	}
	for _, path := range []string{chain, link} {
		if code, _, errOut := edge(t, "eval", table, "--inducing", "10", "--report", path); code != exit.OK {
			t.Fatalf("a report to %s exits with %d: %s", path, code, errOut)
		}
		for _, l := range []string{link, chain} {
			if info, err := os.Lstat(l); err != nil || info.Mode()&os.ModeSymlink == 0 {
				t.Errorf("%s is no link any more: %v", l, err)
			}
		}
		page := filepath.Join(folder, "new.html")
		if got, err := os.ReadFile(page); err != nil || !strings.Contains(string(got), "</html>") {
			t.Errorf("%s has %d bytes, %v", page, len(got), err)
		}
		os.Remove(page)
	}
}

// A command refuses to write over a file that it reads.
func TestOutputIsNoInput(t *testing.T) {
	table := harness.TableFile(t, "table.csv", 100)
	before, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(table, link); err != nil {
		brokertest.Missing(t, "no symbolic link can be made here: "+err.Error())
	}
	for _, args := range [][]string{
		{"eval", table, "--report", table},
		{"eval", table, "--report", link},
		{"windows", link, "--signals", "x,y", "--length", "10", "-o", table},
	} {
		if code, _, errOut := edge(t, args...); code != exit.Usage || !strings.Contains(errOut, "is read as well") {
			t.Errorf("edge %s exits with %d: %s", strings.Join(args, " "), code, errOut)
		}
		if after, err := os.ReadFile(table); err != nil || string(after) != string(before) {
			t.Fatalf("edge %s has changed the file, %v", strings.Join(args, " "), err)
		}
	}
}

// A file has the mode that it had, and a new one that of any new file.
func TestOutputMode(t *testing.T) {
	dir := t.TempDir()
	table := harness.TableFile(t, "table.csv", 100)
	plain, written, fresh := filepath.Join(dir, "plain"), filepath.Join(dir, "old.html"), filepath.Join(dir, "new.html")
	for path, mode := range map[string]os.FileMode{plain: 0o666, written: 0o604} {
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for path, like := range map[string]string{written: written, fresh: plain} {
		want, err := os.Stat(like)
		if err != nil {
			t.Fatal(err)
		}
		if code, _, errOut := edge(t, "eval", table, "--inducing", "10", "--report", path); code != exit.OK {
			t.Fatalf("exits with %d: %s", code, errOut)
		}
		got, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got.Mode() != want.Mode() || got.Size() == 0 {
			t.Errorf("%s has mode %v and %d bytes, want mode %v", path, got.Mode(), got.Size(), want.Mode())
		}
	}
}
