package harness

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/config"
	"edge/internal/dataset"
	"edge/test/files"
)

// Minimal is the text of a configuration with what it has to have.
const Minimal = `
mqtt: {servers: [mqtt://broker.lan]}
streams: {vibration: {topics: [factory/+/vibration], features: [rms, kurtosis, peak_hz]}}
models: {bearing: {streams: [vibration]}}
`

// Parsed returns the configuration of a text, whose state is in a folder of its own.
func Parsed(t testing.TB, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("edge.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Store.Path = filepath.Join(t.TempDir(), "edge.db")
	return cfg
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
