package codec

import "strings"

// Spelling returns a text that labels share which a person may take for one: they differ in
// case, in spaces, or as 1 and 1.0 do.
func Spelling(label string) string {
	words := strings.Join(strings.Fields(label), " ")
	if number, _, ok := plainNumber(words); ok {
		return number
	}
	return strings.ToLower(words)
}
