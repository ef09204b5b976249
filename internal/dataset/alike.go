package dataset

import (
	"fmt"

	"edge/stream/codec"
	"edge/stream/field"
)

// alike describes the first two classes that a person may take for one; "": there are none.
// With more than a few such pairs their case has a meaning, as in a file of letters.
func alike(classes []string) string {
	const few = 5
	pairs, text, before := 0, "", map[string]string{}
	for _, class := range classes {
		spelling := codec.Spelling(class)
		if other, ok := before[spelling]; !ok {
			before[spelling] = class
		} else if pairs++; pairs == 1 {
			text = fmt.Sprintf("the labels %s and %s are two classes, although they are spelt almost alike: if they are one, write it the same way in all rows", field.Quote(other), field.Quote(class))
		}
	}
	if pairs > few {
		return ""
	}
	return text
}
