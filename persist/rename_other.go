//go:build !linux

package persist

// renameNew renames a file to a path where there is none; fs.ErrExist if there
// is one.
func renameNew(from, to string) error { return renameIfNew(from, to) }
