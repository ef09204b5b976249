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

// TestDocuments checks that the packages contain every document, and that every link
// of a document leads to another packaged file, to a source file, or to a URL.
func TestDocuments(t *testing.T) {
	const root = ".."
	all, err := documents(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{".", "docs", "docs/guide", "docs/reference", "docs/results"} {
		found, err := filepath.Glob(filepath.Join(root, folder, "*.md"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%d documents in %s, %v", len(found), folder, err)
		}
		for _, doc := range found {
			if !slices.Contains(all, path.Join(folder, filepath.Base(doc))) {
				t.Errorf("no package contains %s", doc)
			}
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
			if strings.Contains(to, "://") {
				continue
			}
			to = path.Join(path.Dir(doc), to)
			if path.Ext(to) == ".go" { // in the sources alone
				if _, err := os.Stat(filepath.Join(root, to)); err != nil {
					t.Errorf("%s links to %s: %v", doc, to, err)
				}
			} else if !slices.Contains(all, to) {
				t.Errorf("%s links to %s, which no package contains", doc, to)
			}
		}
	}
}

// TestAnchors checks that each link to a part of a document leads to a heading of it.
func TestAnchors(t *testing.T) {
	all, err := documents("..")
	if err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	for _, doc := range all {
		if path.Ext(doc) == ".md" {
			text[doc] = read(t, doc)
		}
	}
	link := regexp.MustCompile(`\]\(([^)#:]*)#([^)]+)\)`)
	for doc, content := range text {
		for _, m := range link.FindAllStringSubmatch(content, -1) {
			to := doc
			if m[1] != "" {
				to = path.Join(path.Dir(doc), m[1])
			}
			if !slices.Contains(anchors(text[to]), m[2]) {
				t.Errorf("%s links to %s#%s, which has no such heading", doc, to, m[2])
			}
		}
	}
}

// anchors returns the names by which a document's headings are linked to: in lower case,
// without punctuation, with hyphens for spaces.
func anchors(document string) []string {
	var names []string
	heading := regexp.MustCompile(`(?m)^#+ (.+)$`)
	dropped := regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	for _, m := range heading.FindAllStringSubmatch(document, -1) {
		names = append(names, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return names
}
