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

// PrintJSONLines writes each element of a list as one line of JSON.
func PrintJSONLines[T any](w io.Writer, list []T) error {
	for i := range list {
		if err := PrintJSON(w, &list[i]); err != nil {
			return err
		}
	}
	return nil
}
