package harness

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/test/files"
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

// TableConfig writes a configuration of one model with the columns of a data file; more are
// further keys of the model, after a comma.
func TableConfig(t testing.TB, table, more string) (path string) {
	t.Helper()
	d, err := dataset.Open(table, dataset.Format{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	return files.Write(t, "edge.yaml", fmt.Sprintf(`
streams: {s: {topics: [t], features: [%s]}}
models: {m: {streams: [s], inducing: 10, window: 20%s}}
`, strings.Join(d.Features, ", "), more))
}
