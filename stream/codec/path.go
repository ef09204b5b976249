package codec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"edge/stream/field"
)

// checkPath checks a path in the payloads of the stream: the name of a column or a field where
// they consist of lines.
func (s Stream) checkPath(key, path string) error {
	if path != "" && (s.Format == formatCSV || s.Format == formatInflux) {
		return nil
	}
	return checkPath(key, path)
}

// checkPath returns an error unless path is a plain path of keys and array
// indices: gjson's queries, wildcards and modifiers have no bound on their work.
func checkPath(key, path string) error {
	special := false
	for i := 0; i < len(path); i++ {
		if path[i] == '\\' {
			i++ // what follows is literal
			special = special || i == len(path)
		} else {
			special = special || strings.IndexByte(`*?#@|!{}[]`, path[i]) >= 0
		}
	}
	if path == "$" || strings.HasPrefix(path, "$.") { // as in JSONPath
		return field.Check(false, key, fmt.Sprintf("%q", path), "keys and array indices with . between them, and no $ before them (\\$ is a key of that name)")
	}
	if special || slices.Contains(splitPath(path), "") {
		return field.Check(false, key, fmt.Sprintf("%q", path), `keys and array indices with . between them (in a key, \ before each of .*?#@|!{}[])`)
	}
	return nil
}

// splitPath returns the keys of a path, without the backslashes before literal characters.
func splitPath(path string) (keys []string) {
	var key []byte
	for i := 0; i < len(path); i++ {
		switch c := path[i]; {
		case c == '.':
			keys, key = append(keys, string(key)), key[:0]
			continue
		case c == '\\' && i+1 < len(path):
			i++
		}
		key = append(key, path[i])
	}
	return append(keys, string(key))
}

// firstKey returns the key of the outermost object that a path begins with.
func firstKey(path string) string { return splitPath(path)[0] }

// pathOf returns the path of a feature, by default its name.
func (s Stream) pathOf(name string) string {
	return cmp.Or(s.Fields[name], gjson.Escape(name))
}
