// Command patch writes an overlay for go build: copies of source files with replaced
// text. The simulation uses it for a deterministic runtime, and for planted defects.
//
//	patch -o DIR FILE...
//
// writes DIR/overlay.json and the copies. Each FILE contains replacements:
//
//	# a comment
//	--- stream/committer.go
//	old text, whole lines
//	+++
//	new text
//
// A path that begins with GOROOT/ is a file of the Go distribution. Old text that does
// not occur exactly once is an error, since the source has changed.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	dir := flag.String("o", "", "folder `DIR` to write to")
	flag.Parse()
	if err := run(*dir, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "patch:", err)
		os.Exit(1)
	}
}

// run writes the overlay of the patch files to dir.
func run(dir string, patches []string) error {
	if dir == "" || len(patches) == 0 {
		return errors.New("want -o DIR and at least one file of replacements")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("find the Go distribution: %w", err)
	}
	copies := map[string]string{} // by path
	for _, name := range patches {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, r := range parse(string(text)) {
			path := r.path
			if rest, ok := strings.CutPrefix(path, "GOROOT/"); ok {
				path = filepath.Join(strings.TrimSpace(string(goroot)), "src", rest)
			}
			if path, err = filepath.Abs(path); err != nil {
				return err
			}
			if copies[path], err = r.apply(path, copies[path]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return write(dir, copies)
}

// replacement is one replacement of a patch file.
type replacement struct{ path, from, to string }

func parse(text string) (all []replacement) {
	var now *replacement
	added := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "--- "):
			all = append(all, replacement{path: strings.TrimSpace(line[4:])})
			now, added = &all[len(all)-1], false
		case now == nil: // a comment
		case line == "+++\n":
			added = true
		case added:
			now.to += line
		default:
			now.from += line
		}
	}
	return all
}

// apply returns the text of a file after the replacement; text is the result of
// earlier replacements, "" before the first.
func (r replacement) apply(path, text string) (string, error) {
	if text == "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		text = string(data)
	}
	if n := strings.Count(text, r.from); n != 1 || r.from == "" {
		return "", fmt.Errorf("%s: the old text occurs %d times, want once; update the replacement:\n%s", r.path, n, r.from)
	}
	return strings.Replace(text, r.from, r.to, 1), nil
}

// write writes the copies and overlay.json.
func write(dir string, copies map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	instead := map[string]string{}
	for path, text := range copies {
		name := filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "-")+".txt") // .txt, so that no package contains it
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
		instead[path] = name
	}
	overlay, err := json.MarshalIndent(map[string]any{"Replace": instead}, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644)
}
