package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/doctor/diagnosis"
	"edge/internal/exit"
	"edge/test/harness"
)

// TestDoctor runs doctor beside a daemon, with a broker and a configuration that have
// no fault. It must report none, and leave no file, message or session behind.
func TestDoctor(t *testing.T) {
	brokertest.ForEach(t, func(t *testing.T, b *brokertest.Broker) {
		config, store := harness.WaveformConfig(t, b.URL())
		d := harness.Start(t, config)
		d.Await("connected to the broker")
		awaitOnline(t, b)
		before := folderContent(t, filepath.Dir(store))
		code, out, errOut := harness.DoctorFindings(t, harness.Run, config, func(code int, _ string) bool { return code == exit.OK })
		if code != exit.OK {
			t.Fatalf("doctor exits with %d: %s%s", code, out, errOut)
		}
		for _, want := range []string{"rights", "file system", "free space", "kernel", "clock", "memory", "speed of waveform", "writing", "wear", "broker", "name of the node", "subscriptions", "retained messages", "shared subscriptions", "in-flight window", "queue while away", "largest message"} {
			if f := gjson.Get(out, `findings.#(check=="`+want+`")`); !f.Exists() || f.Get("grade").String() == diagnosis.Fail {
				t.Errorf("%s: %s", want, f)
			}
		}
		if diff := cmp.Diff(before, folderContent(t, filepath.Dir(store))); diff != "" {
			t.Errorf("the folder of the state has changed: %s", diff)
		}
		if kept := brokertest.Retained(t, b.URL(), "edge/test/+/kept"); kept != "" {
			t.Errorf("the broker still keeps %q", kept)
		}
		d.Stop()
	})
}

// folderContent is the content of every file in a folder.
func folderContent(t *testing.T, folder string) map[string]string {
	t.Helper()
	content := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		content[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}
