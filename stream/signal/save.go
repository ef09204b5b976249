package signal

import (
	"cmp"
	"container/list"
	"encoding/json"
	"errors"
	"hash/fnv"
	"math"

	"edge/online/wire"
)

// ErrSaved marks bytes that are not the windows of a stage, or of one with another
// configuration.
var ErrSaved = errors.New("not the windows of this stage")

// savedVersion is the version of saved windows. Version 1 has no time of a held label.
const savedVersion = 2

// fingerprint identifies configuration and inputs: a stage with others makes other samples.
func (s *Stage) fingerprint() uint64 {
	return hash(struct {
		Config uint64
		Inputs []Input
	}{hash(s.cfg), s.opts.Inputs})
}

func hash(v any) uint64 {
	text, err := json.Marshal(v) // of numbers, strings, lists and maps, which it sorts
	if err != nil {
		panic(err)
	}
	h := fnv.New64a()
	h.Write(text)
	return h.Sum64()
}

// Save returns the windows in progress, held values and states of all devices, for a
// stage of the same configuration that continues after an orderly stop.
func (s *Stage) Save() []byte {
	e := wire.Encoder{}
	e.Uint(savedVersion)
	e.Uint64(s.fingerprint())
	e.Int(s.order.Len())
	for d := range s.latest {
		d.save(&e)
	}
	e.Int(len(s.states.of))
	for _, name := range s.states.names() {
		st := s.states.of[name]
		e.String(name)
		e.String(st.label)
		times(&e, st.since, st.at)
	}
	return e.Buf
}

// Restore continues what Save returned. An error wraps ErrSaved; the stage is then empty.
// A device whose silence is longer than the largest gap begins anew with its next row.
func (s *Stage) Restore(saved []byte) error {
	r := wire.NewDecoder(saved, "signal: saved windows: ", ErrSaved)
	version := r.Uint()
	if r.Err() == nil && (version == 0 || version > savedVersion) {
		r.Fail("version %d", version)
	}
	if r.Uint64() != s.fingerprint() {
		r.Fail("the configuration has changed")
	}
	for range r.Count(s.cfg.Window.Devices, 8, "number of devices") {
		name := r.String(maxName)
		if s.devices[name] != nil {
			r.Fail("device %q occurs twice", name)
		}
		if r.Err() != nil {
			break
		}
		d := s.newDevice(name)
		s.load(d, r, version)
		s.devices[name] = s.order.PushBack(d)
		s.schedule(d)
	}
	for range r.Count(s.cfg.Window.Devices+1, 18, "number of states") {
		name := r.String(maxName)
		s.states.of[name] = &state{label: r.String(maxName), since: moment(r), at: moment(r)}
	}
	s.counts.Devices.Store(int64(s.order.Len()))
	if err := r.End(); err != nil {
		s.counts.Devices.Store(0)
		s.opts.Windows.clear()
		s.devices, s.states.of, s.due = map[string]*list.Element{}, map[string]*state{}, 0
		s.order.Init()
		return err
	}
	return nil
}

// maxName bounds the names of devices and labels, in bytes.
const maxName = 4096

func times(e *wire.Encoder, all ...int64) {
	for _, t := range all {
		e.Uint64(uint64(t))
	}
}

func moment(r *wire.Decoder) int64 { return int64(r.Uint64()) }

// save appends the rows and values of a device.
func (d *device) save(e *wire.Encoder) {
	e.String(d.name)
	times(e, d.inputs...)
	times(e, d.last, d.tick, d.valueAt, d.sampleAt, d.window.next)
	e.Int(d.rows)
	e.Int(d.sameMoment)
	e.Bool(d.near())
	e.Bool(d.arrival)
	e.Bool(d.sampled)
	e.Bool(d.window.sticky)
	e.String(d.label.text)
	e.Int(d.label.input)
	times(e, d.label.came)
	e.Floats(d.held)
	times(e, d.came...)
	times(e, d.changed...)
	e.Floats(d.row)
	w := &d.window
	if w.times != nil {
		w.dropFront()
	}
	e.Int(len(w.values))
	e.Floats(w.values)
	e.Int(len(w.times))
	times(e, w.times...)
	e.Int(len(w.starts))
	times(e, w.starts...)
	e.Int(w.at)
	e.Int(len(w.runs))
	for _, r := range w.runs {
		e.String(r.label)
		e.Int(r.rows)
	}
	if d.memory != nil {
		e.Block(d.memory.AppendState(nil))
	}
}

// load is the reverse of save, for a new device whose name is set.
func (s *Stage) load(d *device, r *wire.Decoder, version uint64) {
	read := func(all []int64) {
		for i := range all {
			all[i] = moment(r)
		}
	}
	read(d.inputs)
	for _, t := range []*int64{&d.last, &d.tick, &d.valueAt, &d.sampleAt, &d.window.next} {
		*t = moment(r)
	}
	d.rows, d.sameMoment = r.Int(math.MaxInt, "rows"), r.Int(math.MaxInt, "samples")
	d.lag = notNear
	if r.Bool() {
		d.lag = 0 // until the next message
	}
	d.arrival, d.sampled, d.window.sticky = r.Bool(), r.Bool(), r.Bool()
	d.label = heldLabel{text: r.String(maxName), came: d.valueAt}
	if version > 1 {
		d.label.input, d.label.came = r.Int(len(d.inputs)-1, "input of the label"), moment(r)
	}
	floats(r, d.held)
	read(d.came)
	read(d.changed)
	floats(r, d.row)
	s.loadWindow(&d.window, r, read)
	if length := int64(s.cfg.Window.Length.Time); length > 0 && d.rows > 0 && d.window.next <= d.last-length {
		r.Fail("the next window ends before the last row") // the next row would close each one between
	}
	if length := s.cfg.Window.Length.Rows; length > 0 && d.window.width > 0 && d.window.rows() != min(d.rows, length) {
		r.Fail("a window has %d rows, of %d", d.window.rows(), min(d.rows, length))
	}
	rows := 0
	for range r.Count(d.window.rows(), 2, "runs of labels") {
		one := run{r.String(maxName), r.Int(d.window.rows(), "rows")}
		rows += one.rows
		d.window.runs = append(d.window.runs, one)
	}
	if n := s.cfg.begun(d.rows); len(d.window.starts) != n {
		r.Fail("%d windows have begun, of %d", len(d.window.starts), n)
	}
	if rows != d.window.rows() {
		r.Fail("%d rows have labels, of %d", rows, d.window.rows())
	}
	if d.memory != nil {
		if err := d.memory.Restore(r.Block(r.Len(), "memory")); err != nil {
			r.Abort(err)
		}
	}
}

// begun returns the number of windows by count that have begun and not ended, of a
// device with that many rows.
func (c *Config) begun(rows int) int {
	length, hop := c.Window.Length.Rows, c.Hop().Rows
	switch {
	case length == 0:
		return 0
	case rows < length:
		return (rows + hop - 1) / hop
	}
	return (rows+hop-1)/hop - (rows-length)/hop - 1
}

// loadWindow reads the rows of a window.
func (s *Stage) loadWindow(w *window, r *wire.Decoder, read func([]int64)) {
	c := &s.cfg.Window
	most := cmp.Or(c.Length.Rows, c.MaxRows)
	n := r.Count(most*max(w.width, 1), 8, "values")
	values := append(w.values, make([]float64, n)...)
	floats(r, values)
	w.values = values
	if n := r.Count(most, 8, "times"); n > 0 {
		w.times = make([]int64, n)
		read(w.times)
	}
	w.starts = make([]int64, r.Count(c.Length.Rows, 8, "begins of windows"))
	read(w.starts)
	w.at = r.Int(max(most-1, 0), "row")
	switch {
	case w.width == 0 && len(w.values) > 0, w.width > 0 && len(w.values)%w.width != 0:
		r.Fail("%d values of %d signals", len(w.values), w.width)
	case c.Length.Time > 0 && (w.at > 0 || len(w.times)*w.width != len(w.values)):
		r.Fail("%d times of %d values", len(w.times), len(w.values))
	case c.Length.Rows > 0 && (len(w.times) > 0 || w.width > 0 && len(w.values)/w.width > c.Length.Rows || w.at > 0 && len(w.values) != c.Length.Rows*w.width):
		r.Fail("%d values in a window of %d rows", len(w.values), c.Length.Rows)
	}
	for i := 1; i < len(w.times); i++ {
		if w.times[i] < w.times[i-1] {
			r.Fail("the times of the rows are not in order")
		}
	}
}

func floats(r *wire.Decoder, all []float64) {
	for i := range all {
		all[i] = r.Float()
	}
}
