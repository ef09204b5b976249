package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every document is in a package, and every link of one leads to another, to the
// source, or out.
func TestDocuments(t *testing.T) {
	const root = ".."
	all, err := documents(root)
	if err != nil {
		t.Fatal(err)
	}
	there, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(there) < 15 {
		t.Fatalf("%d documents, %v", len(there), err)
	}
	for _, doc := range there {
		if !slices.Contains(all, "docs/"+filepath.Base(doc)) {
			t.Errorf("%s is in no package", doc)
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
				t.Errorf("%s shows %s, which is in no package", doc, to)
			}
		}
	}
}
