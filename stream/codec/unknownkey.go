package codec

import (
	"strings"

	"github.com/tidwall/gjson"

	"edge/stream/field"
)

// unknownKey refuses a key that is not read, with the known one that is probably meant.
func (s *schema) unknownKey(key string) *Refusal {
	const shortest, longest = 4, 40 // of a key with a typing error
	known := field.Names(s.reserved)
	like := ""
	if len(key) >= shortest && len(key) <= longest {
		like = field.Nearest(key, known)
	}
	for _, name := range append(known, s.names...) {
		if strings.EqualFold(name, key) {
			like = name
		}
	}
	if like != "" {
		return Refuse(UnknownFeature, "key %.40q is not a feature; did you mean %.40q?", key, like)
	}
	return Refuse(UnknownFeature, "key %s is not a feature; list the features in fields to ignore other keys", field.Quote(key))
}

// keysOf lists the first keys of an object.
func keysOf(v gjson.Result) string {
	var keys []string
	for key := range v.Keys() {
		keys = append(keys, strings.ToValidUTF8(key.Str[:min(len(key.Str), 40)], ""))
	}
	return joinWords(keys)
}

// suchAs names the path of a value that is in a member of an object, and has the key by which it was
// looked for at another place; "" without one.
func (s *schema) suchAs(v gjson.Result) string {
	const depth, longest = 4, 200 // of a path, in objects and in bytes
	wanted := map[string]bool{}
	for i, name := range s.names {
		if s.paths != nil {
			keys := splitPath(s.paths[i])
			name = keys[len(keys)-1]
		}
		wanted[name] = true
	}
	path := pathIn(v, wanted, depth)
	if path == "" || len(path) > longest {
		return ""
	}
	return ", such as " + strings.ToValidUTF8(path, "")
}

// pathIn returns the path of the first number, text or boolean in an object, at most so many objects deep, whose key
// is wanted.
func pathIn(v gjson.Result, wanted map[string]bool, depth int) string {
	if !v.IsObject() || depth == 0 {
		return ""
	}
	for key, e := range v.All() {
		if e.Type != gjson.JSON && wanted[key.Str] {
			return gjson.Escape(key.Str)
		}
		if path := pathIn(e, wanted, depth-1); path != "" {
			return gjson.Escape(key.Str) + "." + path
		}
	}
	return ""
}
