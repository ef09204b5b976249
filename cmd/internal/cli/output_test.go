package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/cmd/internal/cli"
)

// A file that cannot be completed leaves nothing under its name, and no temporary file.
func TestOutputThatCannotBeCompletedLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	output, err := cli.CreateOutput("-o", filepath.Join(folder, "report.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if err := output.File.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "report.csv")
	if _, err := output.Write([]byte("x")); err == nil || !strings.Contains(err.Error(), path+": ") {
		t.Errorf("a write ends with %v, which does not name %s", err, path)
	}
	if err := output.Finish(nil); err == nil || !strings.Contains(err.Error(), path+": ") {
		t.Errorf("a file that could not be written to the disk ends with %v, which does not name %s", err, path)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		t.Errorf("%s is left", entry.Name())
	}
}
