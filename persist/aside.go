package persist

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// keptAside is the number of files that keepAside keeps of each reason; it removes
// the oldest first.
const keptAside = 3

// keepAside links a file to <path>.<reason>-<n>, with the next free n, and returns
// that path. It copies the file where path does not name it, or where the file
// system has no links. reason is "damaged" or "replaced".
func keepAside(file *os.File, path, reason string) (string, error) {
	prefix := filepath.Base(path) + "." + reason + "-"
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return "", err
	}
	var numbers []int
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), prefix); ok {
			if n, err := strconv.Atoi(rest); err == nil && n > 0 {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	name := func(n int) string { return path + "." + reason + "-" + strconv.Itoa(n) }
	for ; len(numbers) >= keptAside; numbers = numbers[1:] {
		if err := os.Remove(name(numbers[0])); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	next := 1
	if len(numbers) > 0 {
		next = numbers[len(numbers)-1] + 1
	}
	mine, err := file.Stat()
	if err != nil {
		return "", err
	}
	if named, err := os.Stat(path); err == nil && os.SameFile(mine, named) && os.Link(path, name(next)) == nil {
		return name(next), nil
	}
	to, err := CreateTemp(name(next))
	if err != nil {
		return "", err
	}
	defer to.Close()
	_, err = io.Copy(to, io.NewSectionReader(file, 0, math.MaxInt64))
	if err = cmp.Or(err, to.Sync()); err == nil {
		err = renameNew(to.Name(), name(next))
	}
	if err != nil {
		return "", join(Named(err, name(next)), os.Remove(to.Name()))
	}
	return name(next), nil
}
