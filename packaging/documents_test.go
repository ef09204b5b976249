package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocuments checks that the packages contain every document, and that every link
// of a document leads to another packaged file, to a source file, or to a URL.
func TestDocuments(t *testing.T) {
	const root = ".."
	all, err := documents(root)
	if err != nil {
		t.Fatal(err)
	}
	found, err := fs.Glob(os.DirFS(root), "docs/*/*.md")
	if err != nil || len(found) < 15 {
		t.Fatalf("%d documents, %v", len(found), err)
	}
	for _, doc := range found {
		if !slices.Contains(all, doc) {
			t.Errorf("no package contains %s", doc)
		}
	}
	link := regexp.MustCompile(`\]\(([^)#]+)[^)]*\)|src="([^"]+)"`)
	for _, doc := range all {
		if path.Ext(doc) != ".md" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, doc))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			to := m[1] + m[2]
			if strings.Contains(to, "://") || path.Ext(to) == ".go" {
				continue
			}
			if to = path.Join(path.Dir(doc), to); !slices.Contains(all, to) {
				t.Errorf("%s links to %s, which no package contains", doc, to)
			}
		}
	}
}
