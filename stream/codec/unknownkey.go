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
