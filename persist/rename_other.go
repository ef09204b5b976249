//go:build !linux

package persist

// renameNew renames a file to a path that names no file; it returns fs.ErrExist
// if the path names one.
func renameNew(from, to string) error { return renameIfNew(from, to) }
