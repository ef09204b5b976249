package doctor

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// unit returns the settings of a systemd unit and its drop-in files by their names,
// with the environment variables that they set. Later settings replace earlier
// ones.
func (h host) unit(name string) map[string]string {
	settings := map[string]string{}
	read := func(path string) {
		for line := range strings.SplitSeq(h.read(path), "\n") {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if key == "Environment" {
				for word := range strings.FieldsSeq(value) {
					k, v, _ := strings.Cut(strings.Trim(word, `"'`), "=")
					settings[k] = v
				}
				continue
			}
			settings[key] = value
		}
	}
	folders := []string{"usr/lib/systemd/system", "lib/systemd/system", "etc/systemd/system"}
	for _, folder := range slices.Backward(folders) { // the last folder that has the unit counts
		if path := folder + "/" + name; h.read(path) != "" {
			read(path)
			break
		}
	}
	for _, folder := range folders {
		files, _ := filepath.Glob(filepath.Join(h.root, folder, name+".d", "*.conf")) // sorted; only the pattern could be wrong
		for _, file := range files {
			read(strings.TrimPrefix(file, h.root))
		}
	}
	return settings
}

// unitSize reads a size as systemd writes it; not a percentage, nor infinity.
func unitSize(text string) (uint64, bool) {
	digits := strings.TrimRight(text, "KMGT")
	n, err := strconv.ParseUint(digits, 10, 64)
	shift := 0
	if len(digits) < len(text) {
		shift = 10 * (1 + strings.IndexByte("KMGT", text[len(digits)]))
	}
	if err != nil || n == 0 || len(text)-len(digits) > 1 || n > 1<<20 && shift > 0 && n > 1<<(62-shift) {
		return 0, false
	}
	return n << shift, true
}
