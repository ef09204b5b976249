package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The replacements of the simulation, and each planted defect, still apply to the present source. Those
// of the Go distribution are for one version of it, and are not tried here.
func TestReplacementsApply(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", ".."))
	files, err := filepath.Glob("test/simulation/patches/defects/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d defects: %v", len(files), err)
	}
	for _, file := range append(files, "test/simulation/patches/runtime.txt") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		copies := map[string]string{}
		for _, r := range parse(string(text)) {
			if strings.HasPrefix(r.path, "GOROOT/") {
				continue
			}
			if copies[r.path], err = r.apply(r.path, copies[r.path]); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
		if len(copies) == 0 {
			t.Errorf("%s replaces nothing", file)
		}
	}
}
