package simulation

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"edge/online"
	"edge/stream"
	"edge/stream/codec"
	"edge/stream/signal"
)

// rows are the messages of a stream with signals, and the samples that they make without
// any fault.
type rows struct {
	stage    signal.Config
	messages map[*meaning]*signal.Message
	exact    bool // no process ended before all was committed: the samples are those of rows, in their order
}

// harmless are the faults after which the samples of signals are the same; losing are those
// that lose the windows in progress.
var (
	harmless = []string{"cut", "cut", "stall", "refuse", "stop", "reload", "takeover"}
	losing   = []string{"kill", "kill before", "kill after", "power", "slow disk", "broken disk"}
)

// newSignalsPlan plans rows of two devices with times of their own, far from those of
// their arrival, so that the node's clock closes no window, and their labels.
func newSignalsPlan(w *world) *plan {
	rng := w.random("signals")
	p := &plan{name: w.name, rng: rng, classes: []string{"a", "b"}, pending: stream.DefaultPending(), dedupe: 4096, every: pick(rng, 0, time.Second), samples: pick[uint64](rng, 0, 10)}
	p.configure()
	s := codec.DefaultStream()
	s.Topics, s.TopicTemplate, s.ID, s.OnMissing = []string{"in/one/+"}, "in/one/{device}", "", codec.OnMissingMarginalise
	s.Stage.Signals = []string{"x", "y"}
	win := &s.Stage.Window
	win.Features, win.Correlations, win.MinRows = signal.Choice{All: []string{"mean"}}, false, 1
	switch kind := rng.IntN(4); kind {
	case 0:
		win.Length, win.Hop, win.MaxGap = signal.Span{Rows: pick(rng, 3, 8)}, signal.Span{Rows: pick(rng, 1, 2, 3)}, 10*time.Second
	case 3:
		s.Stage.Hold.Every = time.Second
		fallthrough
	default:
		win.Length, win.Hop = signal.Span{Time: pick(rng, 3*time.Second, 8*time.Second)}, signal.Span{Time: pick(rng, time.Second, 3*time.Second)}
		win.MaxGap = 10 * time.Second
	}
	p.node.Streams = map[string]codec.Stream{"one": s}
	learner := p.models[0].learner
	learner.Features = []string{"x.mean", "y.mean"}
	p.models = []modelPlan{{name: "m", streams: []string{"one"}, learner: learner}}
	p.rows = &rows{stage: s.StageConfig(), messages: map[*meaning]*signal.Message{}, exact: true}
	p.publishRows(150 + rng.IntN(150))
	for range rng.IntN(8) {
		f := fault{at: time.Duration(rng.Int64N(int64(p.length))), what: pick(rng, harmless...), long: time.Duration(rng.Int64N(int64(8 * time.Second)))}
		if rng.IntN(3) == 0 {
			f.what, p.rows.exact = pick(rng, losing...), false
		}
		p.faults = append(p.faults, f)
	}
	return p
}

// publishRows plans n messages of one to three rows.
func (p *plan) publishRows(n int) {
	rng, at := p.rng, time.Second
	clock := map[string]int64{} // of each device, in ms
	for i := range n {
		at += time.Duration(rng.Int64N(int64(100*time.Millisecond))) + time.Microsecond
		device := pick(rng, "s", "s", "q")
		if rng.IntN(50) == 0 {
			clock[device] += 30_000 // a silence
		}
		m := &signal.Message{Device: device, Own: true}
		payload, k := `{"batch":[`, 1+rng.IntN(3)
		for j := range k {
			clock[device] += 1 + rng.Int64N(1000)
			ts := 500_000_000_000 + clock[device]
			x, y := math.Round(rng.NormFloat64()*1e6)/1e6, float64(i)
			label := pick(rng, "a", "a", "a", "a", "a", "a", "b")
			if j > 0 {
				payload += ","
			}
			payload += fmt.Sprintf(`{"ts":%d,"x":%s,"y":%s,"label":%q}`, ts, strconv.FormatFloat(x, 'g', -1, 64), strconv.FormatFloat(y, 'g', -1, 64), label)
			m.Rows = append(m.Rows, signal.Row{Time: ts * int64(time.Millisecond), X: []float64{x, y}, Label: label})
		}
		sent := &meaning{}
		p.rows.messages[sent] = m
		p.messages = append(p.messages, planned{at, publication{topic: "in/one/" + device, payload: []byte(payload + "]}"), qos: byte(1 + rng.IntN(2)), meaning: sent}})
	}
	p.length = at + time.Second
}

// undisturbed returns the labelled samples that the messages of the node's session make
// without a fault, in order, and those of windows by count at any row.
func (w *world) undisturbed() (all []string, anywhere map[string]bool) {
	r := w.plan.rows
	run := func(stage signal.Config) (all []string) {
		s, err := signal.NewStage(signal.Options{Config: stage}, nil)
		if err != nil {
			panic(err)
		}
		for _, d := range w.history { // the broker's queue may have been full for others
			m := r.messages[d.meaning]
			if m == nil {
				continue
			}
			for _, sample := range s.Take(m) {
				if sample.Label != "" {
					all = append(all, describe(&online.Event{Kind: online.Observe, X: sample.X, Label: sample.Label}))
				}
			}
		}
		return all
	}
	anywhere = map[string]bool{}
	every := r.stage
	if every.Window.Length.Rows > 0 {
		every.Window.Hop.Rows = 1
	}
	for _, sample := range run(every) {
		anywhere[sample] = true
	}
	return run(r.stage), anywhere
}

// ended notes the result of a node, which may have had no time to commit all that it had
// taken: its windows in progress are then lost.
func (w *world) ended(err error) {
	if err != nil && w.plan.rows != nil {
		w.plan.rows.exact = false
	}
}

// checkRows compares the records of the model with the samples of an undisturbed run:
// they are the same where no windows in progress were lost, else each is one of them, or
// for windows by count one of windows that begin at another row; none occurs twice. Rows
// at fixed times begin with other values after a crash.
func (w *world) checkRows(model string) error {
	var got []string
	var keys []uint64
	for i := range w.truth.models[model].records {
		if r := &w.truth.models[model].records[i]; r.Kind != online.Boundary {
			got, keys = append(got, describe(&r.Event)), append(keys, r.Key)
		}
	}
	want, anywhere := w.undisturbed()
	if w.plan.rows.exact && w.losses == 0 {
		if !slices.Equal(got, want) {
			i := 0
			for i < len(got) && i < len(want) && got[i] == want[i] {
				i++
			}
			return fmt.Errorf("the samples differ from number %d on: got %d, want %d; %.3q, want %.3q", i, len(got), len(want), got[min(i, len(got)):min(i+2, len(got))], want[min(i, len(want)):min(i+2, len(want))])
		}
		return nil
	}
	seen := map[uint64]bool{}
	for i, sample := range got {
		switch {
		case seen[keys[i]]:
			return fmt.Errorf("%s was learnt twice", sample)
		case !anywhere[sample] && !w.plan.rows.stage.Hold.Set() && w.losses == 0:
			return fmt.Errorf("%s is no sample of the undisturbed run", sample)
		}
		seen[keys[i]] = true
	}
	return nil
}

// TestSignalsSimulation simulates seeds of a stream with signals.
func TestSignalsSimulation(t *testing.T) {
	oneProcessor(t)
	exact, learnt := 0, 0
	for seed := *firstSeed; seed < *firstSeed+max(number()*3/10, 1); seed++ {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			w := simulateSignals(t, seed)
			for _, f := range w.failures {
				t.Error(f)
			}
			if len(w.failures) > 0 {
				t.Logf("%v; %v, window %v, hop %v, hold %v", w.plan, w.broker.ids, w.plan.rows.stage.Window.Length, w.plan.rows.stage.Window.Hop, w.plan.rows.stage.Hold.Every)
			}
			if w.plan.rows.exact {
				exact++
			}
			learnt += len(w.truth.models["m"].records)
		})
	}
	if number() >= 20 && (exact == 0 || learnt < 100) {
		t.Errorf("%d runs without a loss, %d samples learnt: the plans check nothing", exact, learnt)
	}
}

func simulateSignals(t *testing.T, seed uint64) *world {
	folder, err := os.MkdirTemp(memory(), "simulation")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	w := newWorld(newScene(seed, nil), nodeID)
	if *verbose {
		w.out = os.Stdout
	}
	synctest.Test(t, func(*testing.T) {
		w.began = time.Now()
		w.plan = newSignalsPlan(w)
		w.net, w.broker, w.disk = newNetwork(w), newBroker(w), newDisk(w, filepath.Join(folder, "edge.db"))
		w.broker.persistent = true
		w.truth, w.unproven = newTruth(w), &unproven{world: w}
		w.scene.run()
	})
	return w
}
