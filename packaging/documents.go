package main

import (
	"path/filepath"
	"slices"
)

// documents returns the paths, relative to root, of the files for
// /usr/share/doc/edge: every document and its figures. They keep their relative
// paths, so that the links between them remain valid.
func documents(root string) ([]string, error) {
	paths := []string{"README.md", "RELIABILITY.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*.svg", "docs/*.png", "configs/*.yaml", "configs/*.json", "configs/edge.service"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			path, err := filepath.Rel(root, path)
			if err != nil {
				return nil, err
			}
			paths = append(paths, filepath.ToSlash(path))
		}
	}
	slices.Sort(paths)
	return paths, nil
}
