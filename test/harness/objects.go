package harness

import (
	"encoding/json"
	"strings"
	"testing"

	"edge/internal/exit"
)

// Objects returns the JSON objects that a command line, run by run, prints. A member that T
// lacks is an error.
func Objects[T any](t testing.TB, run func(t testing.TB, args ...string) (code int, out, errOut string), args ...string) (all []T) {
	t.Helper()
	code, out, errOut := run(t, args...)
	if code != exit.OK {
		t.Fatalf("edge %s exits with %d: %s", strings.Join(args, " "), code, errOut)
	}
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	for d.More() {
		var one T
		if err := d.Decode(&one); err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		all = append(all, one)
	}
	return all
}
