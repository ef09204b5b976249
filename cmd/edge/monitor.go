package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"edge/online"
	"edge/persist"
	"edge/stream"
)

const (
	lookAtStore   = time.Second
	keptSamples   = 24  // of each model, to be looked at
	keptEvents    = 40  // of the node
	coursePoints  = 240 // of each model; every other goes when they are so many
	courseMinStep = 1   // seconds between two of them, before any went
)

// monitor remembers what the page, the metrics and the health checks say of a
// running daemon beyond the snapshots that its parts offer: the last samples
// and events, the course of the scores, how long things took. Its methods may
// be called from any goroutine and do not wait for the disk or for learning.
type monitor struct {
	started time.Time
	build   Version
	http    *httpStats

	at    atomic.Pointer[Deployment]
	store atomic.Pointer[storeSample]

	mu         sync.Mutex
	recent     map[string]*recent // by model
	events     []stream.Event     // latest last
	commitTime *histogram
}

// storeSample is how the store was at a moment.
type storeSample struct {
	persist.Stats
	at  time.Time
	err error // why it cannot be read or written
}

// recent is what a monitor remembers of one model.
type recent struct {
	samples []sample // latest last
	present present
	course  []coursePoint
	skip    int // looks between two points of the course
	skipped int

	predicted              map[string]uint64 // by the most probable class; "" while none is known
	predictTime, learnTime *histogram
}

// sample is a prediction and when it was made. Its label is there once it is
// known, whichever way it came.
type sample struct {
	*stream.Prediction
	at    time.Time
	label string
}

// coursePoint is what the scores were at a moment.
type coursePoint struct {
	N             uint64  `json:"n"`
	Error         float64 `json:"error"`
	LogLoss       float64 `json:"log_loss"`
	WindowError   float64 `json:"window_error"`
	WindowLogLoss float64 `json:"window_log_loss"`

	Time time.Time `json:"ts"`
}

// newMonitor returns the monitor of a daemon, which lets it follow a deployment
// before anything runs.
func newMonitor() *monitor {
	return &monitor{started: time.Now(), build: buildVersion(), http: newHTTPStats(), recent: map[string]*recent{}, commitTime: newHistogram(slowTimes)}
}

// Bounds of histograms, in seconds.
var (
	fastTimes = []float64{50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 1}
	slowTimes = []float64{500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 0.5, 1, 2.5, 10}
)

// now returns the deployment that it follows.
func (m *monitor) now() *Deployment { return m.at.Load() }

// follow takes a deployment for the present one. What is remembered of a model
// that has gone is kept: it may come back.
func (m *monitor) follow(p *Deployment) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range p.cfg.Models {
		if m.recent[name] == nil {
			m.recent[name] = &recent{
				skip: courseMinStep, predicted: map[string]uint64{}, predictTime: newHistogram(fastTimes), learnTime: newHistogram(slowTimes),
			}
		}
	}
	m.at.Store(p)
}

// onPrediction is the node's hook.
func (m *monitor) onPrediction(p *stream.Prediction) {
	class := ""
	if p.Class >= 0 {
		class = p.Classes[p.Class]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.recent[p.Model]
	r.predicted[class]++
	r.predictTime.observe(p.Latency.Seconds())
	var kept *stream.Prediction
	if len(r.samples) == keptSamples {
		kept = r.samples[0].Prediction // whose turn to go it is
	} else {
		kept = new(stream.Prediction)
	}
	p.CopyTo(kept)
	now := time.Now()
	r.samples = append(keepLast(r.samples, keptSamples-1), sample{kept, now, p.Label})
	r.present.add(p.Device, class, kept, now)
}

// onLearnt is the hook of the loops.
func (m *monitor) onLearnt(model string, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.recent[model].learnTime.observe(took.Seconds())
}

// onCommit is the hook of the journal.
func (m *monitor) onCommit(took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.commitTime.observe(took.Seconds())
}

// onEvent is the node's other hook.
func (m *monitor) onEvent(e stream.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(keepLast(m.events, keptEvents-1), e)
}

// keepLast drops all but the last n, in place.
func keepLast[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	return append(list[:0], list[len(list)-n:]...)
}

// newest returns the newest sample of a model.
func (m *monitor) newest(model string) (seq uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.recent[model]; r != nil && len(r.samples) > 0 {
		return r.samples[len(r.samples)-1].Seq, true
	}
	return 0, false
}

// labelled remembers the label of a sample. It is the node's hook, too.
func (m *monitor) labelled(model string, seq uint64, label string) {
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

// remembered returns copies of what is remembered of a model.
func (m *monitor) remembered(model string) (samples []sample, course []coursePoint) {
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

// devices returns what the devices of a model are doing.
func (m *monitor) devices(model string) presentView {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.recent[model].present.view(time.Now())
}

func (m *monitor) lastEvents() []stream.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.events)
}

// run follows the store and the scores until ctx ends. A disk that does not
// answer holds up nothing else: the sample of the store grows old.
func (m *monitor) run(ctx context.Context, store *persist.Store, path string) {
	var looks sync.WaitGroup
	defer looks.Wait()
	looks.Go(func() {
		every(ctx, time.Second, func() {
			for _, served := range m.now().models {
				m.trace(served.name, &served.loop.Status().Scores)
			}
		})
	})
	every(ctx, lookAtStore, func() {
		s := storeSample{}
		if s.Stats, s.err = store.Stats(); s.err == nil {
			s.err = writable(path)
		} else {
			m.now().node.CheckJournal()
		}
		s.at = time.Now()
		m.store.Store(&s)
	})
}

// every calls f at once and then at intervals, until ctx ends.
func every(ctx context.Context, interval time.Duration, f func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		f()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// trace adds a point to the course of a model's scores, if there is news.
func (m *monitor) trace(model string, s *online.Scores) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.recent[model]
	if s.N == 0 || len(r.course) > 0 && r.course[len(r.course)-1].N == s.N {
		return
	}
	if r.skipped++; r.skipped < r.skip {
		return
	}
	r.skipped = 0
	r.course = append(r.course, coursePoint{s.N, s.Error, s.NLL, s.Window.Error, s.Window.NLL, time.Now().Round(time.Millisecond)})
	if len(r.course) < coursePoints {
		return
	}
	for i := range coursePoints / 2 {
		r.course[i] = r.course[2*i+1]
	}
	r.course, r.skip = r.course[:coursePoints/2], 2*r.skip
}

// timedJournal measures the commits of a journal.
type timedJournal struct {
	stream.Journal
	took func(time.Duration)
}

// Commit is that of the journal.
func (j timedJournal) Commit(c *online.Commit) error {
	began := time.Now()
	err := j.Journal.Commit(c)
	if err == nil {
		j.took(time.Since(began))
	}
	return err
}

// healthOfStore is what the store adds to the health that the node publishes.
func (m *monitor) healthOfStore() map[string]any {
	st := m.store.Load()
	if st == nil || st.err != nil {
		return nil
	}
	return map[string]any{"store_bytes": st.FileBytes, "store_written_bytes": st.WrittenBytes}
}
