package main

import (
	"io/fs"
	"os"
	"path"
	"slices"
)

// documents returns the paths, relative to root, of the files of /usr/share/doc/edge:
// every document, its pictures, and the sample configurations. They keep their relative
// paths, so that the links between them remain valid.
func documents(root string) ([]string, error) {
	tree := os.DirFS(root)
	var paths []string
	for _, pattern := range []string{"*.md", "configs/*.yaml", "configs/*.json", "configs/edge.service"} {
		found, err := fs.Glob(tree, pattern)
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	err := fs.WalkDir(tree, "docs", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && slices.Contains([]string{".md", ".svg", ".png"}, path.Ext(name)) {
			paths = append(paths, name)
		}
		return err
	})
	slices.Sort(paths)
	return paths, err
}
