package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/test/files"
	"edge/test/harness"
)

// residentMemory reads from /proc the largest resident set of a process so far, and a
// lower bound of its anonymous part, in MB.
func residentMemory(t *testing.T, pid int) (all, anonymous float64) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	field := func(name string) float64 {
		_, rest, _ := strings.Cut(string(status), name+":")
		kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
		return kib * 1024 / 1e6
	}
	all = field("VmHWM")
	return all, all - field("RssFile") // of which there are more and more while the program starts
}

// TestInventedClasses invents class names and repeats each of them: two default models
// stay below the memory limit of the unit.
func TestInventedClasses(t *testing.T) {
	if runtime.GOOS != "linux" || len(harness.Emulator) > 0 {
		t.Skip("NOT TESTED: needs /proc of a process that is not emulated")
	}
	b := brokertest.New(t, brokertest.Mosquitto)
	config := files.Write(t, "edge.yaml", fmt.Sprintf(`
node: test
mqtt: {servers: ["%s"]}
streams: {rows: {topics: [sensors/rows], dimension: 8}}
models: {a: {streams: [rows]}, b: {streams: [rows]}}
store: {path: "%s"}
metrics: {every: 1s}
http: {listen: ""}
`, b.URL(), filepath.Join(t.TempDir(), "edge.db")))
	d := harness.StartWith(t, config, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "GOMEMLIMIT=45MiB") })
	d.Await("connected to the broker")
	ctx, pub := t.Context(), brokertest.Publisher(t, b.URL())
	const names, rounds, most = 64, 12, 51.0 // MB: the goal of the heap and 4 more
	for i := range names * rounds {
		x := make([]float64, 8)
		for j := range x {
			x[j] = float64((i%names*(j+3))%17) + float64(i%5)/5
		}
		text := strings.ReplaceAll(fmt.Sprint(x), " ", ",")
		if err := pub.Publish(ctx, "sensors/rows", fmt.Appendf(nil, `{"id":"%d","features":%s,"label":"name %d"}`, i, text, i%names)); err != nil {
			t.Fatal(err)
		}
	}
	if err := pub.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	for _, m := range []string{"a", "b"} {
		learnt := func() int {
			return int(gjson.Get(brokertest.Retained(t, b.URL(), "edge/test/"+m+"/metrics"), "n").Int())
		}
		if !brokertest.Progress(learnt, 200) {
			t.Fatalf("model %s has learnt %d samples, want 200", m, learnt())
		}
	}
	all, anonymous := residentMemory(t, d.Process.Pid)
	t.Logf("resident at most %.1f MB, without files %.1f MB", all, anonymous)
	if anonymous > most && !harness.RaceDetector { // which has memory of its own
		t.Errorf("%.1f MB without the pages of files, want at most %g", anonymous, most)
	}
	d.Stop()
}
