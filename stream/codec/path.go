package codec

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"edge/stream/field"
)

// checkPath checks a path in the payloads of the stream: the name of a column or a field where
// they consist of lines.
func (s *Stream) checkPath(key, path string) error {
	if path != "" && (s.Format == formatCSV || s.Format == formatInflux) {
		return nil
	}
	return checkPath(key, path)
}

// checkPath returns an error unless path consists of keys, array indices and selections of
// entries: gjson's queries, wildcards and modifiers have no bound on their work.
func checkPath(key, path string) error {
	if path == "$" || strings.HasPrefix(path, "$.") { // as in JSONPath
		return field.Check(false, key, fmt.Sprintf("%q", path), "keys and array indices with . between them, and no $ before them (\\$ is a key of that name)")
	}
	for rest, more := path, true; more; {
		var step string
		step, rest, more = cutStep(rest)
		valid := isPlain(step)
		if inner, word, ok := selection(step); ok {
			valid = word != "" && checkPath(key, inner) == nil
		}
		if !valid {
			return field.Check(false, key, fmt.Sprintf("%q", path), `keys and array indices with . between them (in a key, \ before each of .*?#@|!{}[]), or [KEY=WORD] for the entry of an array`)
		}
	}
	return nil
}

// isPlain reports whether a step of a path is a key.
func isPlain(step string) bool {
	for i := 0; i < len(step); i++ {
		if step[i] == '\\' {
			if i++; i == len(step) { // the next character is literal
				return false
			}
		} else if strings.IndexByte(`*?#@|!{}[]`, step[i]) >= 0 {
			return false
		}
	}
	return step != ""
}

// cutStep returns the first step of a path, and the rest. The dots in a selection are its own.
func cutStep(path string) (step, rest string, more bool) {
	from := 0
	if strings.HasPrefix(path, "[") {
		from = max(0, indexOf(path, ']'))
	}
	if i := indexOf(path[from:], '.'); i >= 0 {
		return path[:from+i], path[from+i+1:], true
	}
	return path, "", false
}

// indexOf returns the index of a character that has no backslash before it, −1 if there is none.
func indexOf(path string, c byte) int {
	for i := 0; i < len(path); i++ {
		switch path[i] {
		case '\\':
			i++
		case c:
			return i
		}
	}
	return -1
}

// selection returns the parts of a step [KEY=WORD], which is the first entry of an array that
// has the word at the path KEY.
func selection(step string) (key, word string, ok bool) {
	if at := indexOf(step, '='); at > 0 && step[0] == '[' && indexOf(step, ']') == len(step)-1 {
		return step[1:at], literal(step[at+1 : len(step)-1]), true
	}
	return "", "", false
}

// literal returns a text without the backslashes before its characters.
func literal(text string) string {
	var plain []byte
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		plain = append(plain, text[i])
	}
	return string(plain)
}

// at returns what a path finds in a value. A text on the way that is itself an object or an array
// of JSON is read as that.
func at(v gjson.Result, path string) gjson.Result { return new(texts).at(v, path) }

// texts are the contents of texts of JSON on the way of several paths in one value, by the path up
// to each: each is checked once.
type texts map[string]gjson.Result

// at is the function at.
func (t *texts) at(v gjson.Result, path string) gjson.Result {
	done := 0 // bytes of the path
	for i := 0; *t != nil && i < len(path); i++ {
		if path[i] != '.' {
			continue
		}
		if inner, ok := (*t)[path[:i]]; ok {
			v, done = inner, i+1
		}
	}
	if v.Type != gjson.JSON {
		return gjson.Result{}
	}
	if strings.IndexByte(path[done:], '[') < 0 {
		found := v.Get(path[done:])
		if found.Exists() || !strings.Contains(v.Raw, `"{`) && !strings.Contains(v.Raw, `"[`) {
			return found
		}
	}
	for rest, more := path[done:], true; more; {
		var step string
		step, rest, more = cutStep(rest)
		if key, word, ok := selection(step); ok {
			v = entryWith(v, key, word)
		} else {
			v = v.Get(step)
		}
		if more && v.Type == gjson.String {
			if v = opened(v); *t == nil {
				*t = texts{}
			}
			(*t)[path[:len(path)-len(rest)-1]] = v
		}
		if more && v.Type != gjson.JSON {
			return gjson.Result{}
		}
	}
	return v
}

// entryWith returns the first entry of an array that has a word at a path.
func entryWith(v gjson.Result, key, word string) gjson.Result {
	if v.IsArray() {
		for _, e := range v.All() {
			if text, ok := textOf(at(opened(e), key)); ok && text == word {
				return e
			}
		}
	}
	return gjson.Result{}
}

// opened returns the object or the array that a text holds, and any other value as it is.
func opened(v gjson.Result) gjson.Result {
	if v.Type != gjson.String || !holdsJSON(v.Str) || CheckJSON([]byte(v.Str)) != nil {
		return v
	}
	return gjson.Parse(v.Str)
}

// holdsJSON reports whether a text may be an object or an array of JSON.
func holdsJSON(text string) bool {
	return strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")
}

// splitPath returns the keys of a path, without the backslashes before literal characters.
func splitPath(path string) (keys []string) {
	for i := indexOf(path, '.'); i >= 0; i = indexOf(path, '.') {
		keys, path = append(keys, literal(path[:i])), path[i+1:]
	}
	return append(keys, literal(path))
}

// firstKey returns the key of the outermost object that a path begins with.
func firstKey(path string) string { return splitPath(path)[0] }

// beginsWithKey reports whether a path begins with a key, and not with an index or a selection,
// as those of an array do.
func beginsWithKey(path string) bool {
	step, _, _ := cutStep(path)
	_, _, selects := selection(step)
	return !selects && strings.Trim(step, "0123456789") != ""
}

// pathOf returns the path of a feature, by default its name.
func (s *Stream) pathOf(name string) string {
	return cmp.Or(s.Fields[name], gjson.Escape(name))
}
