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

// A file in a folder that does not exist is refused with the way out.
func TestOutputWithoutItsFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "report.csv")
	if _, err := cli.CreateOutput("-o", path); err == nil || err.Error() != "-o: open "+path+": no such file or directory; make the folder, or choose another path" {
		t.Errorf("it ends with %v", err)
	}
}
