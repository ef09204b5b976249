//go:build slow && linux && (amd64 || arm64 || arm)

package faults

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/dataset"
	"edge/test/files"
	"edge/test/harness"
)

const (
	// failpointVariable: NAME=ACTION, or NAME=ACTION@N for the N-th time only.
	failpointVariable = "EDGE_TEST_FAILPOINT"
	poisonVariable    = "EDGE_TEST_POISON" // bits of a sample's first feature
)

// failpointSource is a package that edgeWithFailpoints adds to the program.
const failpointSource = `package failpoint

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

var hits atomic.Int64

func At(name string) error {
	at, do, _ := strings.Cut(os.Getenv("` + failpointVariable + `"), "=")
	do, n, once := strings.Cut(do, "@")
	if at != name || hits.Add(1) != 1 && !once || once && fmt.Sprint(hits.Load()) != n {
		return nil
	}
	switch do {
	case "panic":
		panic("failpoint")
	case "wait":
		time.Sleep(300 * time.Millisecond)
	case "fail":
		return errors.New("failpoint")
	}
	return nil
}

func Poisonous(v float64) bool { return fmt.Sprint(math.Float64bits(v)) == os.Getenv("` + poisonVariable + `") }
`

// edgeWithFailpoints builds edge from the sources with the failpoints added.
func edgeWithFailpoints(t *testing.T) (path string) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		brokertest.Missing(t, "go is not installed: "+err.Error())
	}
	root, sources := sourcesWithFailpoints(t)
	replace := map[string]string{filepath.Join(root, "internal/failpoint/failpoint.go"): files.Write(t, "failpoint.go", failpointSource)}
	for name, source := range sources {
		source = strings.Replace(source, "import (", "import (\n\"edge/internal/failpoint\"", 1)
		replace[name] = files.Write(t, filepath.Base(name), source)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "edge")
	build := exec.Command("go", "build", "-overlay", files.Write(t, "overlay.json", string(overlay)), "-o", path, "edge/cmd/edge")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// startWithFailpoint starts a daemon that was built with failpoints.
func startWithFailpoint(t *testing.T, binary, config string, environment ...string) *harness.Daemon {
	t.Helper()
	return harness.StartWith(t, config, func(cmd *exec.Cmd) {
		cmd.Path, cmd.Args[0] = binary, binary
		cmd.Env = append(cmd.Env, environment...)
	})
}

// TestFailpoints lets a daemon panic, fail or wait between any two steps of a sample.
// At the end every sample is learnt, once and in order, with no intervention but
// restarts by a service manager. With EDGE_OPERATIONS=1 it does so at the first pass
// of the failpoint in one run, and at the second in another; otherwise it panics and
// fails only, at the first pass.
func TestFailpoints(t *testing.T) {
	times, actions := 1, []string{"panic", "fail"}
	if harness.Number(t, "EDGE_OPERATIONS", 9) == 1 {
		times, actions = 2, []string{"panic", "wait", "fail"}
	}
	binary := edgeWithFailpoints(t)
	s := newScenario(t)
	runs := 0
	for _, p := range failpoints {
		for _, action := range actions {
			for n := 1; n <= times; n++ {
				if action == "fail" && p.fail == "" || n > 1 && strings.HasSuffix(p.name, "rename") {
					continue
				}
				at := fmt.Sprintf("%s=%s=%s@%d", failpointVariable, p.name, action, n)
				starts := 0
				log := s.run(func(config, _ string) *harness.Daemon {
					if starts++; starts == 1 {
						return startWithFailpoint(t, binary, config, at)
					}
					return startWithFailpoint(t, binary, config)
				})
				if action == "panic" && starts == 1 && !strings.Contains(log, "failpoint") {
					t.Errorf("%s: nothing happened:\n%s", at, log)
				}
				if action != "panic" && starts > 1 && !strings.HasSuffix(p.name, "rename") {
					t.Errorf("%s: the daemon ended:\n%s", at, log)
				}
				if t.Failed() {
					t.Fatal(at)
				}
				runs++
			}
		}
	}
	t.Logf("%d failpoints, %d runs", len(failpoints), runs)
}

// TestPanicInTheLearner lets learning panic. A step that panics whenever it meets the
// same samples is refused, by the daemon that continues and by the one that replays
// them. A sample that panics outside of a step ends the daemon once; the next one
// leaves it out. No other sample is lost.
//
// Long: its two cases share their start of daemons.
func TestPanicInTheLearner(t *testing.T) {
	binary := edgeWithFailpoints(t)
	s := newScenario(t)
	// alive is the daemon, or where that has ended the next one.
	alive := func(d *harness.Daemon, tap *harness.Tap, again func() *harness.Daemon) *harness.Daemon {
		select {
		case <-d.Ended:
			tap.Settle()
			return again()
		default:
			return d
		}
	}
	publish := func(d *harness.Daemon, tap *harness.Tap, number int, again func() *harness.Daemon) *harness.Daemon {
		t.Helper()
		if !brokertest.Eventually(tap.Subscribed) {
			t.Fatalf("the daemon never subscribes:\n%s", d.Log())
		}
		if err := s.publish(number, 1, operationRows); err != nil {
			t.Fatal(err)
		}
		if !brokertest.Eventually(func() bool {
			d = alive(d, tap, again)
			return tap.Acknowledged() == operationRows
		}) {
			t.Fatalf("%d of %d samples are acknowledged:\n%s", tap.Acknowledged(), operationRows, d.Log())
		}
		return d
	}
	configure := func(number int) (config, store string, tap *harness.Tap) {
		tap = harness.NewTap(t, s.broker.Addr)
		config, store = s.configure(t, tap.URL(), number)
		data, err := os.ReadFile(config)
		if err != nil {
			t.Fatal(err)
		}
		return files.Write(t, "edge.yaml", strings.Replace(string(data), "samples: 25", "samples: 1000", 1)), store, tap
	}

	t.Run("in a step", func(t *testing.T) {
		fail := failpointVariable + "=in a step=panic"
		config, _, tap := configure(1)
		d := publish(startWithFailpoint(t, binary, config, fail), tap, 1, nil)
		final := d.Stop()
		if line, said := d.Logged("learning refused"); !said || !strings.Contains(line.Get("reason").String(), "panic: failpoint") {
			t.Errorf("the daemon does not say that a step was refused:\n%s", d.Log())
		}
		if _, said := d.Logged("learning panicked, which is an error of this program"); !said {
			t.Errorf("the daemon does not say where:\n%s", d.Log())
		}
		config, _, tap = configure(2)
		publish(startWithFailpoint(t, binary, config, fail), tap, 2, nil).Kill()
		d = startWithFailpoint(t, binary, config, fail)
		if ready := d.Await("model ready"); ready.Get("replayed").Int() != operationRows || ready.Get("digest").String() != final.Get("digest").String() {
			t.Errorf("the daemon that final on ended with %s, the one that replays has %s", final, ready)
		}
		d.Kill()
		tap.Settle()
		if n := final.Get("samples").Int(); n != operationRows || final.Get("digest").String() == s.truth {
			t.Errorf("%d samples were judged, digest %s", n, final.Get("digest"))
		}
	})

	t.Run("over a sample", func(t *testing.T) {
		const poison = 22
		var row dataset.Row
		for rows := dataset.NewWaveform(harness.RowsSeed); row.Number < poison; {
			rows.Next(&row)
		}
		fail := []string{failpointVariable + "=over a sample=panic", poisonVariable + "=" + strconv.FormatUint(math.Float64bits(row.X[0]), 10)}
		config, store, tap := configure(3)
		var events struct {
			sync.Mutex
			received []string
		}
		listener := brokertest.Subscribe(t, s.broker.URL(), []string{"edge/test/event"}, func(_ string, payload []byte) {
			events.Lock()
			defer events.Unlock()
			events.received = append(events.received, gjson.GetBytes(payload, "event").String()+": "+gjson.GetBytes(payload, "detail").String())
		})
		defer listener.Close()
		starts := 1
		again := func() *harness.Daemon {
			starts++
			return startWithFailpoint(t, binary, config, fail...)
		}
		d := publish(startWithFailpoint(t, binary, config, fail...), tap, 3, again)
		if !brokertest.Eventually(func() bool {
			d = alive(d, tap, again) // all may have been acknowledged before the sample was learnt
			events.Lock()
			defer events.Unlock()
			return strings.Contains(strings.Join(events.received, "\n"), "event_refused: left out: panic: failpoint")
		}) {
			t.Errorf("the events are %q", events.received)
		}
		if starts > 2 {
			t.Errorf("%d starts were needed", starts)
		}
		if line, said := d.Logged("a record of the journal is left out: learning it panics, which is an error of this program"); !said || line.Get("seq").Int() != poison {
			t.Errorf("the daemon does not say what is left out:\n%s", d.Log())
		}
		final := d.Stop()
		if n := final.Get("samples").Int(); n != operationRows-1 {
			t.Errorf("%d samples are known, want all but one of %d", n, operationRows)
		}
		_, out, _ := harness.Run(t, "inspect", store, "--json")
		if n := gjson.Get(out, "models.0.counters.steps_refused").Int(); n != 1 {
			t.Errorf("%d steps are counted as refused, want 1: %s", n, out)
		}
	})
}
