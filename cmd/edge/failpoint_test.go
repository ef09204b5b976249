//go:build slow && linux && (amd64 || arm64 || arm)

package main

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

	"edge/internal/broker"
	"edge/internal/broker/brokertest"
	"edge/internal/dataset"
	"edge/stream/mqtt"
)

// failpoint is a place in the program where a test lets it panic, fail or wait.
// The program itself has none: they are put in when it is built for the test.
type failpoint struct {
	name string
	file string
	line string // which occurs once, and before which the failpoint is
	fail string // statement that returns err; "": an error cannot come up here
	when string // condition; "": always
}

// failpoints are between the steps of a sample's way: journal, commit,
// acknowledgement, step, snapshot, checkpoint, truncation, rename.
var failpoints = []failpoint{
	{"before the journal write", "persist/journal.go", "	seq = d.ledger.last + 1", "return 0, err", ""},
	{"after the journal write", "persist/journal.go", "	d.ledger.last = seq", "return 0, err", ""},
	{"before the commit", "persist/ledger.go", "		return ds.finish()", "return err", ""},
	{"after the commit", "persist/ledger.go", "	for _, d := range ds.list {\n		d.apply()", "", ""},
	{"before the acknowledgement", "stream/committer.go", "	for _, it := range g.items {\n		it.msg.Ack()", "", ""},
	{"after the acknowledgement", "stream/committer.go", "	for _, f := range g.done {", "", ""},
	{"before learning", "online/loop.go", "		out := lp.learner.Add(&r.Event)", "", ""},
	{"after learning", "online/loop.go", "		lp.seq = r.Seq", "", ""},
	{"after the snapshot", "online/loop.go", "	lp.publishUncertainty()\n	lp.stale = true", "", ""},
	{"before the checkpoint", "online/checkpoint.go", "	if err := lp.opts.Checkpointer.Checkpoint(", "", ""},
	{"before the truncation", "persist/checkpoint.go", "		if d.slots[kept].generation > 0 {", "return err", ""},
	{"after the truncation", "persist/checkpoint.go", "		d.slots[1-kept] = slot{c.generation, seq}", "return err", ""},
	{"after the checkpoint", "online/checkpoint.go", "	lp.checkpoints.twice = lp.checkpoints.saved == lp.seq", "", ""},
	{"before the rename", "persist/compact.go", "	err = s.opts.Fault(\"rename\")", "return err", ""},
	{"after the rename", "persist/compact.go", "	if s.db != nil {", "", ""},
}

// inTheLearner are failpoints that a learner meets again whenever it is taught
// the same.
var inTheLearner = []failpoint{
	{"in a step", "online/learner.go", "	return l.bank.Learn(sep.Minibatch{", "return err", "l.view.N == 32"},
	{"over a sample", "online/learner.go", "	last, ahead := l.view.Pool.Last, l.batch.len()+1", "", "poisonous(ev.X[0])"},
}

const (
	// failpointVariable: NAME=ACTION, or NAME=ACTION@N for the N-th time only.
	failpointVariable = "EDGE_TEST_FAILPOINT"
	poisonVariable    = "EDGE_TEST_POISON" // bits of a sample's first feature
)

const failpointSource = `package online

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"strings"
	"time"
)

var failpointHits atomic.Int64

func Failpoint(name string) error {
	at, do, _ := strings.Cut(os.Getenv("` + failpointVariable + `"), "=")
	do, n, once := strings.Cut(do, "@")
	if at != name || failpointHits.Add(1) != 1 && !once || once && fmt.Sprint(failpointHits.Load()) != n {
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

func poisonous(v float64) bool { return fmt.Sprint(math.Float64bits(v)) == os.Getenv("` + poisonVariable + `") }
`

// edgeWithFailpoints builds edge from the sources with the failpoints put in.
func edgeWithFailpoints(t *testing.T) (path string) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		brokertest.Missing(t, "go is not installed: "+err.Error())
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	replace, sources := map[string]string{}, map[string]string{}
	for _, p := range append(failpoints, inTheLearner...) {
		source, ok := sources[p.file]
		if !ok {
			data, err := os.ReadFile(filepath.Join(root, p.file))
			if err != nil {
				t.Fatal(err)
			}
			source = string(data)
		}
		if strings.Count(source, p.line) != 1 {
			t.Fatalf("%s: %q has to be there once", p.file, p.line)
		}
		call := fmt.Sprintf("online.Failpoint(%q)", p.name)
		if strings.HasPrefix(p.file, "online/") {
			call = strings.TrimPrefix(call, "online.")
		}
		if p.fail != "" {
			call = fmt.Sprintf("if err := %s; err != nil { %s }", call, p.fail)
		}
		if p.when != "" {
			call = fmt.Sprintf("if %s { %s }", p.when, call)
		}
		sources[p.file] = strings.Replace(source, p.line, call+"\n"+p.line, 1)
	}
	sources["online/failpoint.go"] = failpointSource
	for name, source := range sources {
		if strings.Contains(source, "online.Failpoint(") && !strings.Contains(source, `"edge/online"`) {
			source = strings.Replace(source, "import (", "import (\n\"edge/online\"", 1)
		}
		replace[filepath.Join(root, name)] = writeFile(t, filepath.Base(name), source)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(folder, "edge")
	build := exec.Command("go", "build", "-overlay", writeFile(t, "overlay.json", string(overlay)), "-o", path, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// startWithFailpoint starts a daemon that was built with failpoints.
func startWithFailpoint(t *testing.T, binary, config string, environment ...string) *daemonProcess {
	t.Helper()
	return startDaemonWith(t, config, func(cmd *exec.Cmd) {
		cmd.Path, cmd.Args[0] = binary, binary
		cmd.Env = append(cmd.Env, environment...)
	})
}

// TestFailpoints lets a daemon panic, fail or wait between any two steps of a
// sample's way. What was taught is known at the end all the same, once and in
// order, and no hand was needed but that of a service manager. Where
// EDGE_OPERATIONS is 1 it does so in one life the first time, in another the
// second; otherwise it panics and fails only, the first time.
func TestFailpoints(t *testing.T) {
	times, actions := 1, []string{"panic", "fail"}
	if tortureNumber(t, "EDGE_OPERATIONS", 9) == 1 {
		times, actions = 2, []string{"panic", "wait", "fail"}
	}
	binary := edgeWithFailpoints(t)
	s := newScenario(t)
	lives := 0
	for _, p := range failpoints {
		for _, action := range actions {
			for n := 1; n <= times; n++ {
				if action == "fail" && p.fail == "" || n > 1 && strings.HasSuffix(p.name, "rename") {
					continue
				}
				at := fmt.Sprintf("%s=%s=%s@%d", failpointVariable, p.name, action, n)
				starts := 0
				log := s.live(func(config, _ string) *daemonProcess {
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
				lives++
			}
		}
	}
	t.Logf("%d failpoints, %d lives", len(failpoints), lives)
}

// TestPanicInTheLearner: a step that panics whenever it is taught the same is
// refused, by the daemon that lives on and by the one that replays it; a sample
// that panics outside of a step ends the daemon once, and is left out by the
// next one. Nothing else is lost.
func TestPanicInTheLearner(t *testing.T) {
	binary := edgeWithFailpoints(t)
	s := newScenario(t)
	// alive is the daemon, or where that has ended the next one.
	alive := func(d *daemonProcess, tap *tap, again func() *daemonProcess) *daemonProcess {
		select {
		case <-d.end:
			tap.settle()
			return again()
		default:
			return d
		}
	}
	teach := func(d *daemonProcess, tap *tap, life int, again func() *daemonProcess) *daemonProcess {
		t.Helper()
		if !brokertest.Eventually(tap.subscribed) {
			t.Fatalf("the daemon never subscribes:\n%s", d.wholeLog())
		}
		if err := s.publish(life, 1, operationRows); err != nil {
			t.Fatal(err)
		}
		if !brokertest.Eventually(func() bool {
			d = alive(d, tap, again)
			return tap.acknowledged() == operationRows
		}) {
			t.Fatalf("%d of %d samples are acknowledged:\n%s", tap.acknowledged(), operationRows, d.wholeLog())
		}
		return d
	}
	lifeOf := func(life int) (config, store string, tap *tap) {
		tap = newTap(t, s.broker.Addr)
		config, store = s.configure(t, "mqtt://"+tap.listener.Addr().String(), life)
		data, err := os.ReadFile(config)
		if err != nil {
			t.Fatal(err)
		}
		return writeFile(t, "edge.yaml", strings.Replace(string(data), "samples: 25", "samples: 1000", 1)), store, tap
	}

	t.Run("in a step", func(t *testing.T) {
		fail := failpointVariable + "=in a step=panic"
		config, _, tap := lifeOf(1)
		d := teach(startWithFailpoint(t, binary, config, fail), tap, 1, nil)
		lived := d.stop()
		if line, said := d.said("learning refused"); !said || !strings.Contains(line.Get("reason").String(), "panic: failpoint") {
			t.Errorf("the daemon does not say that a step was refused:\n%s", d.wholeLog())
		}
		if _, said := d.said("learning panicked, which is an error of this program"); !said {
			t.Errorf("the daemon does not say where:\n%s", d.wholeLog())
		}
		config, _, tap = lifeOf(2)
		teach(startWithFailpoint(t, binary, config, fail), tap, 2, nil).kill()
		d = startWithFailpoint(t, binary, config, fail)
		if ready := d.await("model ready"); ready.Get("replayed").Int() != operationRows || ready.Get("digest").String() != lived.Get("digest").String() {
			t.Errorf("the daemon that lived on ended with %s, the one that replays has %s", lived, ready)
		}
		d.kill()
		tap.settle()
		if n := lived.Get("samples").Int(); n != operationRows || lived.Get("digest").String() == s.truth {
			t.Errorf("%d samples were judged, digest %s", n, lived.Get("digest"))
		}
	})

	t.Run("over a sample", func(t *testing.T) {
		const poison = 22
		var row dataset.Row
		for rows := dataset.NewWaveform(tortureRows); row.Number < poison; {
			rows.Next(&row)
		}
		fail := []string{failpointVariable + "=over a sample=panic", poisonVariable + "=" + strconv.FormatUint(math.Float64bits(row.X[0]), 10)}
		config, store, tap := lifeOf(3)
		var events struct {
			sync.Mutex
			heard []string
		}
		cfg := mqtt.DefaultConfig()
		cfg.Servers = []string{s.broker.URL()}
		listener, err := broker.NewPublisher(t.Context(), cfg, 1, []string{"edge/test/event"}, func(_ string, payload []byte, _ bool) {
			events.Lock()
			defer events.Unlock()
			events.heard = append(events.heard, gjson.GetBytes(payload, "event").String()+": "+gjson.GetBytes(payload, "detail").String())
		}, func() {})
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		starts := 1
		again := func() *daemonProcess {
			starts++
			return startWithFailpoint(t, binary, config, fail...)
		}
		d := teach(startWithFailpoint(t, binary, config, fail...), tap, 3, again)
		if !brokertest.Eventually(func() bool {
			d = alive(d, tap, again) // all may have been acknowledged before the sample was learnt
			events.Lock()
			defer events.Unlock()
			return strings.Contains(strings.Join(events.heard, "\n"), "event_refused: left out: panic: failpoint")
		}) {
			t.Errorf("the events are %q", events.heard)
		}
		if starts > 2 {
			t.Errorf("%d starts were needed", starts)
		}
		if line, said := d.said("a record of the journal is left out: learning it panics, which is an error of this program"); !said || line.Get("seq").Int() != poison {
			t.Errorf("the daemon does not say what is left out:\n%s", d.wholeLog())
		}
		lived := d.stop()
		if n := lived.Get("samples").Int(); n != operationRows-1 {
			t.Errorf("%d samples are known, want all but one of %d", n, operationRows)
		}
		_, out, _ := edge(t, "inspect", store, "--json")
		if n := gjson.Get(out, "models.0.counters.StepsRefused").Int(); n != 1 {
			t.Errorf("%d steps are counted as refused, want 1: %s", n, out)
		}
	})
}
