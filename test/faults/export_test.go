//go:build linux && (amd64 || arm64 || arm)

package faults

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"edge/test/files"
	"edge/test/harness"
)

// TestExportIsDurable asks a daemon for an export: before it is answered, the folder is
// synced after the rename, so that a power cut does not take the export's name back.
func TestExportIsDurable(t *testing.T) {
	s := newScenario(t)
	config, store := s.configure(t, s.broker.URL(), 1)
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	config = files.Write(t, "edge.yaml", string(text)+"control: {enabled: true}\n")
	var mu sync.Mutex
	var done []string
	d := supervised(t, config, func(op operation) decision {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasPrefix(op.path, filepath.Dir(store)) {
			done = append(done, op.name+" "+op.path)
		}
		return decision{}
	})
	d.Await("connected to the broker")
	if code, _, errOut := harness.Run(t, "request", "export", "waveform", "--data", `{"name": "kept"}`, "-c", config); code != 0 {
		t.Fatal(errOut)
	}
	mu.Lock()
	defer mu.Unlock()
	exports := filepath.Join(filepath.Dir(store), "exports")
	named := slices.Index(done, "rename "+filepath.Join(exports, "waveform.kept.db.part"))
	if named < 0 || !slices.Contains(done[named:], "fsync "+exports) {
		t.Errorf("the folder is not synced after the rename: %q", done)
	}
}
