package stream

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"edge/online"
	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/mqtt"
	"edge/stream/signal"
)

// maxStageDevice is the largest number of bytes of a device's name: the ids of its samples are then
// ids of labels.
const maxStageDevice = 96

// checkStageDevice refuses a name of a device that is too long.
func checkStageDevice(device string) *codec.Refusal {
	if len(device) > maxStageDevice {
		return codec.Refuse(codec.BadTopic, "the device %.40q has %d bytes, at most %d are possible in a stream with signals", device, len(device), maxStageDevice)
	}
	return nil
}

// stage makes samples of the rows of one stream, see package signal. A row is taken when
// its message is decoded, before that message is committed; so the committer commits a
// sample even if it drops the message, whose repetition brings the rows in vain. The
// exception are samples whose rows are those of one message without times (tied): they
// come again with their message, and are recognised as its other content is.
//
// The worker owns it; the committer reads it once the worker has ended.
type stage struct {
	*signal.Stage
	of     *source // the stream: of the samples
	inputs []*source
	opts   signal.Options
	zone   *time.Location
	strict bool // a sample with a missing feature is refused
	tied   bool // samples without times belong to their message

	messages []signal.Message // reused, and so are their rows
	rows     []signal.Row
	filling  signal.Windows
	course   Course         // reused
	recent   recentMessages // without times

	sticky bool // its rows may have labels that are a state
	teach  teaching
	clocks limiter // of warnings about times that differ from the node's
	full   limiter // of those about devices that make room for others
	warned bool    // that a payload lacks the time that the configuration names

	stored bool // the journal has windows that a row makes outdated
	moved  bool // rows came since the windows were stored
}

// window is the part of an example that a stage made.
type window struct {
	made     bool
	own      bool  // the times are those of the payloads: the id is the same whenever the sample is formed
	detached bool  // it is committed even if its message is dropped
	known    bool  // the label is a state that was known before
	thin     bool  // it has a label that is not learnt, and waits for none
	from, to int64 // ns since 1970

	course *Course // of the stage, for the worker alone; nil: none
}

// newStage prepares the stage of a stream with signals; nil for another one. start makes
// it complete.
func (n *Node) newStage(s codec.Stream, src *source) error {
	cfg := s.StageConfig()
	if !cfg.Set() {
		return nil
	}
	zone, err := cfg.Zone()
	if err != nil {
		return err
	}
	hold, length := cfg.Hold, cfg.Window.Length
	opts := s.StageOptions()
	opts.LateMessages = 2 * n.cfg.MQTT.InflightWindow
	src.stage = &stage{
		of: src, zone: zone, strict: s.OnMissing == codec.OnMissingReject,
		tied: !hold.Set() && (length.Message || !length.Set()),
		opts: opts, clocks: limiter{interval: time.Hour, burst: 1}, full: limiter{interval: time.Hour, burst: 1},
	}
	return n.newInputs(s, src)
}

// newInputs makes a source for each input of a stream.
func (n *Node) newInputs(s codec.Stream, src *source) error {
	st := src.stage
	for i, in := range s.Raw.Inputs {
		one, err := newSource(src.name, s.From(in))
		if err != nil {
			return err
		}
		one.decoder, one.key = src.decoder.Inputs()[i], "streams."+src.name+".inputs."+in.Name+".topics"
		one.stage, one.input, one.identity = st, i, src.identity
		st.inputs = append(st.inputs, one)
		if i == 0 {
			src.template.Names = slices.Clone(one.template.Names)
		}
		src.template.Names = slices.DeleteFunc(src.template.Names, func(name string) bool { return !slices.Contains(one.template.Names, name) })
	}
	return nil
}

// start makes the stage, with the windows that the journal has.
func (st *stage) start(windows []online.Windows) (restored bool, err error) {
	if st.Stage, err = signal.NewStage(st.opts, &st.of.signals); err != nil {
		return false, err
	}
	st.course.Signals = st.CourseSignals()
	i := slices.IndexFunc(windows, func(w online.Windows) bool { return w.Stream == st.of.name })
	if i < 0 {
		return false, nil
	}
	st.stored = true
	return true, st.restore(windows[i].State)
}

// startStages makes the stages. A node that replaces another one gets its windows from
// Inherit.
func (n *Node) startStages(windows []online.Windows) error {
	if n.previous != nil {
		windows = nil
	}
	for _, st := range n.stages() {
		restored, err := st.start(windows)
		switch {
		case errors.Is(err, signal.ErrSaved), errors.Is(err, errStored):
			n.log.Info("the windows of a stream begin anew", "stream", st.of.name, "reason", err)
		case err != nil:
			return field.Within("streams."+st.of.name, err)
		case restored:
			n.log.Info("the windows of a stream go on", "stream", st.of.name, "devices", st.Devices())
		}
	}
	return nil
}

// qualities returns the quality of service of the filters that have one of their own.
func (n *Node) qualities() map[string]byte {
	of := map[string]byte{}
	for _, src := range n.sources {
		for _, f := range src.filters {
			if src.qos != "" {
				of[f] = byte(src.qos.Level(n.cfg.MQTT.QoS))
			}
		}
	}
	n.fleets.qualities(of)
	return of
}

// take reads the rows of a message, and adds the samples that they complete to it.
func (w *worker) take(it *item, src *source) error {
	msg, st := it.msg, src.stage
	readings, err := src.decoder.DecodeMessage(it.spareScratch(), msg.Topic, msg.Payload)
	if err != nil {
		w.endLabel(it, src, err)
		return err
	}
	if len(readings) == 0 {
		src.leftOut.Add(1)
		return nil
	}
	for i := range readings {
		w.dropOwnLabel(src, msg, &readings[i])
	}
	if err := st.read(msg, src, readings); err != nil {
		return err
	}
	if !msg.Retained {
		w.checkTime(src, msg, &readings[len(readings)-1])
	}
	if !st.tied && slices.ContainsFunc(st.messages, func(m signal.Message) bool { return !m.Own }) && st.recent.repeats(msg, src.input) {
		w.counts.redelivered.Add(1)
		return nil
	}
	st.touch(it)
	evicted := st.of.signals.Evicted.Load()
	for i := range st.messages {
		w.predictSamples(it, st, st.Take(&st.messages[i]))
	}
	if st.of.signals.Evicted.Load() > evicted && st.full.allow(msg.Arrived) {
		w.report.log.Warn("a stream has more devices than window.devices: the window of the one that was silent longest is lost; more of this stream in the next hour are only counted",
			"stream", st.of.name, "devices", st.opts.Config.Window.Devices, "advice", "raise window.devices, or take fewer topics")
	}
	return nil
}

// endLabel ends the held labels of devices where the label of a message was refused:
// the rows that follow are not of the label before.
func (w *worker) endLabel(it *item, src *source, err error) {
	r, refused := errors.AsType[*codec.Refusal](err)
	if st := src.stage; st.opts.Config.Hold.Set() && refused && r.Reason == codec.BadLabel {
		st.touch(it)
		devices := r.Devices
		if len(devices) == 0 {
			devices = []string{""} // that of the topic
		}
		for _, named := range devices {
			device := src.match(it.msg.Topic, named).device
			w.predictSamples(it, st, st.EndLabel(device, signal.FromTime(it.msg.Arrived), it.msg.Retained || w.away() > 0))
		}
	}
}

// read sets the stage's messages: one for each device of a message, whose readings are together.
func (st *stage) read(msg *mqtt.Message, src *source, readings []codec.Reading) *codec.Refusal {
	st.messages, st.rows = st.messages[:0], slices.Grow(st.rows[:0], len(readings))
	for first := 0; first < len(readings); {
		of := readings[first:]
		of = of[:codec.SameDevice(of)]
		device := src.match(msg.Topic, of[0].Device).device
		if err := checkStageDevice(device); err != nil {
			return err
		}
		m := signal.Message{Device: device, Input: src.input, Again: msg.Dup, Kept: msg.Retained, Arrived: signal.FromTime(msg.Arrived), Rows: st.rows[first:first]}
		if err := st.readRows(&m, of, first, len(readings)); err != nil {
			return err
		}
		st.messages, first = append(st.messages, m), first+len(of)
	}
	return nil
}

// readRows adds the rows of readings, which begin at index first of n, to a message.
func (st *stage) readRows(m *signal.Message, readings []codec.Reading, first, n int) *codec.Refusal {
	for i := range readings {
		r := &readings[i]
		if r.X == nil {
			return codec.Refuse(codec.MissingFeature, "entry %d has no signal", first+i)
		}
		t := m.Arrived
		if r.RawTime != "" {
			var ok bool
			if t, ok = signal.ParseTime(r.RawTime, st.zone); !ok {
				way := `time: "" of the stream takes that of the arrival`
				if r.RawTime[0] == '{' {
					way = "the path in time of the stream goes on into an object, as ts.$date does"
				}
				return codec.Refuse(codec.Malformed, "%sthe time %.40s is neither RFC 3339, as 2026-11-22T17:00:00Z, nor Unix time in s, ms, µs or ns, from 1970 to 2199; %s", entryOf(first+i, n), r.RawTime, way)
			}
		}
		if own := r.RawTime != ""; i == 0 {
			m.Own = own
		} else if own != m.Own {
			return codec.Refuse(codec.Malformed, "some entries have a time, and others have none")
		}
		m.Rows = append(m.Rows, signal.Row{Time: t - int64(r.Back), X: r.X, Absent: r.Absent, Label: r.Label, Null: r.Null})
	}
	return nil
}

// entryOf names entry i of n for an error, "" for the only one.
func entryOf(i, n int) string {
	if n == 1 {
		return ""
	}
	return "entry " + strconv.Itoa(i) + ": "
}

// touch notes that an item changes the stage: stored windows are removed before its
// message is acknowledged.
func (st *stage) touch(it *item) {
	if st.moved = true; st.stored {
		st.stored = false
		it.outdated = append(it.outdated, st.of.name)
	}
}

// predictSamples predicts the samples of a stage, and adds them to an item.
func (w *worker) predictSamples(it *item, st *stage, samples []signal.Sample) {
	for i := range samples {
		s := &samples[i]
		st.course.Values, st.course.From, st.course.To = s.Course, s.Start, s.Time
		if at := slices.IndexFunc(s.X, func(v float64) bool { return v != v }); at >= 0 && st.strict {
			w.report.refuse(st.of, st.of.models, it.msg, codec.Refuse(codec.MissingFeature, "feature %.40q is missing in sample %s; on_missing: marginalise or impute predicts without", st.of.features[at], s.ID))
			continue
		}
		thin := s.Sticky && s.Label != "" && st.teach.skips(s.Device, s.Time)
		if thin {
			s.Label = ""
		}
		from := len(it.values)
		it.values = append(it.values, s.X...)
		r := codec.Reading{ID: string(s.ID), X: it.values[from:], Label: s.Label, RawTime: string(appendTime(nil, signal.ToTime(s.Time)))}
		w.predictReading(it, &r, example{
			from: st.of, label: r.Label, device: s.Device, entry: i,
			window: window{made: true, own: s.Own, detached: s.Own || !st.tied, known: s.Sticky, thin: thin, from: s.Start, to: s.Time, course: &st.course},
		}, st.levels(s.Device), -1)
	}
}

// levels returns the captured levels of a device's name.
func (st *stage) levels(device string) []string {
	if len(st.of.template.Names) == 0 {
		return nil
	}
	return strings.Split(device, "/")
}

// stages returns the stages of the node, each once.
func (n *Node) stages() (all []*stage) {
	for _, src := range n.sources {
		if src.stage != nil && !slices.Contains(all, src.stage) {
			all = append(all, src.stage)
		}
	}
	return all
}
