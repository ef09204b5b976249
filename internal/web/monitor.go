package web

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"edge/internal/process"
	"edge/internal/report"
	"edge/model"
	"edge/persist"
	"edge/stream"
	"edge/stream/field"
)

const (
	keptSamples = 24 // of each model, for display
	keptEvents  = 40 // of the node
)

// Monitor keeps the figures of a running daemon that the page, the metrics and the
// health checks need beside the snapshots of its parts: the last samples and events,
// the course of the scores, and durations. Any goroutine may call its methods; they
// do not wait for the disk or for learning.
type Monitor struct {
	started time.Time         // for reading
	began   *stream.Beginning // for people
	Build   process.Version
	http    *httpStats

	current atomic.Pointer[Deployment]
	store   atomic.Pointer[storeSample]
	reading atomic.Int64  // beginning of the present read of the store, in ns since started; 0: none
	looked  chan struct{} // has an element when newer figures of the store are wanted; capacity 1
	scored  chan struct{} // has an element when a loop has a new status; capacity 1

	mu         sync.Mutex
	recent     map[string]*recent // by model
	events     []stream.Event     // latest last
	happened   map[string]uint64  // number of events, by kind
	commitTime *histogram
}

// recent is the history of one model.
type recent struct {
	samples   []sample // latest last
	timelines timelines
	course    []report.CoursePoint
	skip      int // traces between two points of the course
	skipped   int

	predicted              map[string]uint64 // by the most probable class; "" while no class is known
	predictTime, learnTime *histogram
}

const (
	maxPredicted = 4 * model.MaxClasses // classes of a model whose predictions are counted apart: resets and a fleet bring others
	otherClasses = "other"              // counts those of the rest
)

// sample is a prediction, its time, and its label once that is known, from any
// source.
type sample struct {
	*stream.Prediction
	at    time.Time
	label string
}

// NewMonitor returns the monitor of a daemon. The daemon calls Follow before anything
// runs.
func NewMonitor() *Monitor {
	return &Monitor{
		started: time.Now(), began: stream.NewBeginning(), Build: process.Build(), http: newHTTPStats(),
		looked: make(chan struct{}, 1), scored: make(chan struct{}, 1),
		recent: map[string]*recent{}, happened: map[string]uint64{}, commitTime: newHistogram(slowTimes),
	}
}

// Bounds of histograms, in seconds.
var (
	fastTimes = []float64{50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 1}
	slowTimes = []float64{500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 0.5, 1, 2.5, 10}
)

// deployment returns the present deployment.
func (m *Monitor) deployment() *Deployment { return m.current.Load() }

// Follow replaces the present deployment. The history of a removed model is kept,
// because another deployment may have the model again.
func (m *Monitor) Follow(p *Deployment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range p.Config.Models {
		if m.recent[name] == nil {
			m.recent[name] = &recent{
				predicted: map[string]uint64{}, predictTime: newHistogram(fastTimes), learnTime: newHistogram(slowTimes),
			}
		}
	}
	m.current.Store(p)
}

// OnPrediction records a prediction of the node.
func (m *Monitor) OnPrediction(p *stream.Prediction) {
	class := ""
	if p.Class >= 0 {
		class = p.Classes[p.Class]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.recent[p.Model]
	counted := class
	if _, known := r.predicted[class]; !known && len(r.predicted) >= maxPredicted {
		counted = otherClasses
	}
	r.predicted[counted]++
	r.predictTime.observe(p.Latency.Seconds())
	var kept *stream.Prediction
	if len(r.samples) == keptSamples {
		kept = r.samples[0].Prediction // the oldest, which is dropped
	} else {
		kept = new(stream.Prediction)
	}
	p.CopyTo(kept)
	now := time.Now()
	r.samples = append(report.KeepLast(r.samples, keptSamples-1), sample{kept, now, p.Label})
	r.timelines.add(p.Device, class, kept, now)
}

// OnLearnt records the duration of a learning step of a loop.
func (m *Monitor) OnLearnt(model string, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recent[model].learnTime.observe(took.Seconds())
}

// OnCommit records the duration of a commit.
func (m *Monitor) OnCommit(took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.commitTime.observe(took.Seconds())
}

// OnEvent records an event of the node.
func (m *Monitor) OnEvent(e stream.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(report.KeepLast(m.events, keptEvents-1), e)
	m.happened[e.Kind]++
}

// newest returns the sequence number of a model's newest sample.
func (m *Monitor) newest(model string) (seq uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.recent[model]; r != nil && len(r.samples) > 0 {
		return r.samples[len(r.samples)-1].Seq, true
	}
	return 0, false
}

// Labelled records the label of a sample, from the node or from the page.
func (m *Monitor) Labelled(model string, seq uint64, label string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.recent[model]
	if r == nil {
		return
	}
	samples := r.samples
	for i := range samples {
		if samples[i].Seq == seq {
			samples[i].label = label
		}
	}
}

// history returns copies of the last samples and the course of a model.
func (m *Monitor) history(model string) (samples []sample, course []report.CoursePoint) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.recent[model]
	samples = slices.Clone(r.samples)
	for i := range samples {
		own := new(stream.Prediction)
		samples[i].CopyTo(own)
		samples[i].Prediction = own
	}
	return samples, slices.Clone(r.course)
}

// devices returns the timelines of a model's devices.
func (m *Monitor) devices(model string) timelinesView {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.recent[model].timelines.view(time.Now())
}

// observations are copies of the counts and times that a monitor has observed.
type observations struct {
	models     []modelObservations // in the order of their names
	happened   map[string]uint64   // number of events, by kind
	commitTime *histogram
}

// modelObservations are the observations of one model.
type modelObservations struct {
	model                  string
	predicted              map[string]uint64
	predictTime, learnTime *histogram
}

// observations returns copies of the observations so far.
func (m *Monitor) observations() observations {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := observations{happened: maps.Clone(m.happened), commitTime: m.commitTime.clone()}
	for _, name := range field.Names(m.recent) {
		r := m.recent[name]
		o.models = append(o.models, modelObservations{name, maps.Clone(r.predicted), r.predictTime.clone(), r.learnTime.clone()})
	}
	return o
}

// recentEvents returns the latest events, the oldest first.
func (m *Monitor) recentEvents() []stream.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.events)
}

// OnStatus notes that a loop has a new status. It never waits.
func (m *Monitor) OnStatus() { wake(m.scored) }

// wake makes sure that a channel of capacity 1 has an element.
func wake(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// Run samples the store and the scores until ctx ends. A disk that does not answer
// delays only the samples of the store.
func (m *Monitor) Run(ctx context.Context, store *persist.Store, path string) {
	var tracing sync.WaitGroup
	defer tracing.Wait()
	tracing.Go(func() { m.traceAll(ctx) })
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-m.looked:
		case <-again.C:
		case <-ctx.Done():
			return
		}
		rest := storeRest
		if m.sampleStore(store, path) != nil {
			rest = storeInterval
		}
		again.Reset(rest)
	}
}

// Health returns the figures of the process and of the store for the health that the node
// publishes.
func (m *Monitor) Health() map[string]any {
	figures := map[string]any{}
	if rss := process.Memory("VmRSS"); rss > 0 { // else the system does not report it
		figures["rss_bytes"] = rss
	}
	if st := m.storeFigures(); st != nil && st.err == nil {
		figures["store_bytes"], figures["store_written_bytes"] = st.FileBytes, st.WrittenBytes
	}
	return figures
}

// Summary describes the state of the daemon on one line.
func (m *Monitor) Summary() string {
	s := m.deployment().Node.Stats()
	b := strings.Builder{}
	switch {
	case !s.Connected:
		b.WriteString("not connected to the broker")
	case s.Degraded:
		b.WriteString("connected; the journal cannot be written")
	default:
		b.WriteString("connected")
	}
	for _, served := range m.deployment().Models {
		st := served.Loop.Status()
		sc := &st.Scores
		fmt.Fprintf(&b, "; %s: %d samples", served.Name, sc.N)
		if st.Recovering {
			fmt.Fprintf(&b, ", recovering, %d records to learn", st.Behind)
		}
		if sc.N > 0 {
			fmt.Fprintf(&b, ", error %.3f", sc.Window.Error)
		}
	}
	return b.String()
}
