package terminal

import (
	"encoding/json"
	"io"
)

// PrintJSON writes v as one line of JSON.
func PrintJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(Writer{w})
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
