package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/dataset/csvtext"
	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/signal"
)

// Origin is the source of a sample. That of a file of samples has a device alone, and
// only if the format names its column.
type Origin struct {
	ID     string // as in a daemon
	Device string
	Time   int64 // of its last row, or its end, in ns since 1970
	Piece  int   // number of the recording: rows of a device without a silence that ends a window
}

// rawFile makes the samples of a raw file.
type rawFile struct {
	layout
	raw     *Raw
	stage   *signal.Stage
	zone    *time.Location
	pause   int64 // ns of silence that end a recording
	devices map[string]*device
	pieces  int
	refused uint64

	message signal.Message // of one row
	sender  string         // of the row, its label and its time, −1 in a file without times
	word    string
	at      int64
	times   [2]int64 // of the first row and the newest
	number  int      // of rows in messages
	closed  []RawRow // messages that NextRaw has not returned yet
	queue   []made
	next    int // of queue
	made    int // samples that left the queue
	ended   bool
}

// made is a sample that is not returned yet.
type made struct {
	Origin
	x     []float64
	label string
}

// device is the latest recording of a device.
type device struct {
	name  string
	rows  int64
	piece int
	last  int64        // time of the last row
	kept  []signal.Row // rows of one message, which has not ended
	cells [][]string   // of each of them
}

// beginRaw prepares a raw file.
func (d *File) beginRaw(f Format) error {
	l, err := f.Raw.layout(d.path, d.names, f)
	if err != nil {
		return err
	}
	opts := f.Raw.Stream.StageOptions()
	opts.LateMessages = f.Raw.LateMessages
	if f.Features != nil {
		opts.Features = f.Features
	}
	stage, err := signal.NewStage(opts, nil)
	if err != nil {
		return err
	}
	zone, err := opts.Config.Zone()
	if err != nil {
		return err
	}
	d.raw = &rawFile{
		layout: l, raw: f.Raw, stage: stage, zone: zone, pause: f.Raw.pause(), devices: map[string]*device{},
		message: signal.Message{Own: l.time >= 0 || opts.Rate > 0, Rows: make([]signal.Row, 1)},
	}
	d.roles, d.Features = make([]int, len(d.names)), stage.Features()
	return nil
}

// Of returns what describes a raw file; nil for another one.
func (d *File) Of() *Raw {
	if d.raw == nil {
		return nil
	}
	return d.raw.raw
}

// Raw reports whether the rows of the file are signals, of which its samples are made.
func (d *File) Raw() bool { return d.raw != nil }

// Timed reports whether the rows of a raw file have times.
func (d *File) Timed() bool { return d.raw != nil && d.raw.time >= 0 }

// Origin returns where the sample comes from that Next returned last.
func (d *File) Origin() Origin { return d.origin }

// Tally counts the rows of a raw file so far, by their use.
func (d *File) Tally() Tally {
	r := d.raw
	if r == nil {
		return Tally{}
	}
	c := r.stage.Counts()
	return Tally{
		Rows: uint64(d.read), Devices: uint64(len(r.devices)), Samples: c.Samples.Load(), Windows: r.raw.Stream.Stage.Window.Length.Set(),
		Late: c.Late.Load(), Gaps: c.Gaps.Load(), Thin: c.Thin.Load(), Mixed: c.Mixed.Load(),
		Days:    areDays(r.times[0], r.times[1], d.read),
		Refused: r.refused, Crowded: c.Crowded.Load(), Unvalued: c.Unvalued.Load(), SetBack: c.SetBack.Load(), Evicted: c.Evicted.Load(),
	}
}

// nextSample reads rows until they complete a sample that is returned.
func (d *File) nextSample(row *Row) error {
	r := d.raw
	for {
		if err := d.fillQueue(); err != nil {
			return err
		}
		s := &r.queue[r.next]
		r.next++
		if r.made++; r.raw.Every > 1 && r.made%r.raw.Every != 0 {
			continue
		}
		d.number++
		row.Number, row.X, row.Label, d.origin = d.number, append(row.X[:0], s.x...), s.label, s.Origin
		return nil
	}
}

// fillQueue reads rows until the queue has a sample.
func (d *File) fillQueue() error {
	r := d.raw
	for r.next == len(r.queue) {
		r.queue, r.next, r.closed = r.queue[:0], 0, nil
		if r.ended {
			return io.EOF
		}
		if err := d.readRow(); err != nil {
			return err
		}
	}
	return nil
}

// readRow reads a line and gives it to the stage; after the last one it ends the windows.
func (d *File) readRow() error {
	r := d.raw
	record, err := d.record()
	if errors.Is(err, io.EOF) || r.raw.Rows > 0 && d.read == r.raw.Rows {
		r.end()
		return nil
	}
	if err != nil {
		return err
	}
	return d.takeRow(record)
}

// takeRow gives a line to the stage: a message for each input of which it has a value.
func (d *File) takeRow(record []string) error {
	r := d.raw
	if d.read++; d.read == 1 && r.time < 0 && r.raw.Stream.Raw.Rate.Hz == 0 {
		if err := d.checkUntimed(record); err != nil {
			return err
		}
	}
	name, label := "", ""
	if r.raw.Device != nil {
		name = *r.raw.Device
	} else if r.layout.device >= 0 {
		name = strings.TrimSpace(record[r.layout.device])
	}
	if r.label >= 0 {
		switch label = strings.TrimSpace(record[r.label]); {
		case label == "":
		case unlabelled(label):
			label = codec.NoLabel
		default:
			if err := d.checkLabel(r.label, label); err != nil {
				return err
			}
			if label, _ = d.labels.class(label); label == "" { // Others: the stream has a map of its own, or none
				label = codec.NoLabel
			}
		}
	}
	from := r.devices[name]
	if from == nil {
		from = &device{name: strings.Clone(name), piece: -1}
		r.devices[from.name] = from
	}
	at, err := d.rowTime(record, from)
	if err != nil {
		return err
	}
	r.follow(from, at)
	r.sender, r.word, r.at = from.name, label, at
	if r.time < 0 {
		r.at = -1
	}
	taken := false
	for i := range r.sources {
		ok, err := d.takeSource(record, i, label)
		if err != nil {
			return err
		}
		if ok {
			r.give(from, i, at)
		}
		taken = taken || ok
	}
	if !taken {
		r.refused++
	}
	return nil
}

// rowTime returns the time of a row. In a file without times a row of a device comes
// 1/rate after the one before, or 1 ms.
func (d *File) rowTime(record []string, from *device) (int64, error) {
	r := d.raw
	if r.time < 0 {
		from.rows++
		step := 1e6
		if rate := r.raw.Stream.Raw.Rate.Hz; rate > 0 {
			step = 1e9 / rate
		}
		return int64(math.Round(float64(from.rows) * step)), nil
	}
	cell := strings.TrimSpace(record[r.time])
	text := csvtext.WithPoint(cell)
	at, ok := signal.ParseTime(text, r.zone)
	if !ok && text == d.names[r.time] {
		return 0, d.at(r.time, fmt.Sprintf("column %s: the header occurs again: the file has several tables; of InfluxDB |> group() at the end of the query makes one of them", d.column(r.time)))
	}
	if !ok {
		return 0, d.notTime(r.time, record, d.perhapsHeader(record))
	}
	if r.times[1] = at; d.read <= 1 {
		r.times[0] = at
	}
	return at, nil
}

// notTime returns the error of a cell that should be a time, with a command that makes one of it.
func (d *File) notTime(column int, record []string, more string) error {
	cell := strings.TrimSpace(record[column])
	if date := csvtext.DateAt(record, column); date >= 0 {
		more = csvtext.JoinCommand(date, d.csv.Comma) + more
	}
	return d.at(column, fmt.Sprintf("column %s: %s is no time: want seconds, or 2026-11-22T17:00:00Z", d.column(column), field.Quote(cell))+csvtext.TimeCommand(cell)+more)
}

// follow begins another recording of a device after a silence.
func (r *rawFile) follow(from *device, at int64) {
	if from.piece < 0 || at-from.last > r.pause || from.last-at > r.pause {
		r.closeMessage(from)
		from.piece = r.pieces
		r.pieces++
	}
	from.last = at
}

// takeSource reads the signals of an input; false if the line has none of them, or lacks
// one that it must have.
func (d *File) takeSource(record []string, input int, label string) (ok bool, err error) {
	r := d.raw
	s := &r.sources[input]
	for i, column := range s.columns {
		s.cells[i] = d.signalCell(strings.TrimSpace(record[column]), s.words[i])
		ok = ok || s.cells[i] != ""
	}
	if s.sent = ok; !ok {
		return false, nil
	}
	null := label == codec.NoLabel && s.labels
	if null || !s.labels {
		label = ""
	}
	reading, err := s.decoder.Row(s.cells, label)
	if err != nil {
		var refusal *codec.Refusal
		if errors.As(err, &refusal) {
			if refusal.Reason == codec.MissingFeature {
				return false, nil
			}
			err = refusal.Err
		}
		line, _ := d.csv.FieldPos(0)
		return false, fmt.Errorf("%s:%d: %w%s", d.path, line, err, d.perhapsHeader(record))
	}
	r.message.Rows[0] = signal.Row{X: reading.X, Absent: reading.Absent, Label: reading.Label, Null: null || reading.Null}
	return true, nil
}

// signalCell returns a cell as a payload has it: a number with a decimal point in the
// grammar of JSON, and null for the words that stand for a missing value in data files
// alone. words: the signal has words of its own, which may be those.
func (d *File) signalCell(cell string, words bool) string {
	if cell == "" || gjson.Valid(cell) {
		return cell
	}
	text := cell
	if d.decimal == ',' || d.csv.Comma != ',' {
		if text = csvtext.WithPoint(cell); !words && strings.IndexByte("+-0123456789", cell[0]) >= 0 {
			cell = text // with a unit
		}
	}
	if v, err := csvtext.ParsePoint(text); err == nil && !math.IsInf(v, 0) && !math.IsNaN(v) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	if !words && csvtext.Missing(cell) {
		return "null"
	}
	return cell
}

// give gives the row in r.message to the stage, or keeps it until the message ends of
// which it is one row.
func (r *rawFile) give(from *device, input int, at int64) {
	row := &r.message.Rows[0]
	row.Time = at
	if r.raw.Stream.Stage.Window.Length.Message {
		from.kept = append(from.kept, *row)
		from.cells = append(from.cells, slices.Clone(r.sources[0].cells))
		r.number++
		if len(from.kept) == r.raw.Stream.MaxBatch {
			r.closeMessage(from)
		}
		return
	}
	r.message.Device, r.message.Input, r.message.Arrived = from.name, input, at
	r.keep(r.stage.Take(&r.message), from)
}

// closeMessage gives the rows of a message to the stage.
func (r *rawFile) closeMessage(from *device) {
	if len(from.kept) == 0 {
		return
	}
	before := len(r.queue)
	r.keep(r.stage.Take(&signal.Message{Device: from.name, Own: true, Rows: from.kept, Arrived: from.last}), from)
	closed := RawRow{Number: r.number, Device: from.name, Time: from.last, Rows: from.cells}
	for _, m := range r.queue[before:] {
		closed.Label, closed.Samples = m.label, append(closed.Samples, RawSample{m.ID, m.label})
	}
	r.closed = append(r.closed, closed)
	from.kept, from.cells = from.kept[:0], nil
}

// keep copies the samples of a device to the queue.
func (r *rawFile) keep(samples []signal.Sample, from *device) {
	for i := range samples {
		s := &samples[i]
		if len(r.queue) < cap(r.queue) {
			r.queue = r.queue[:len(r.queue)+1]
		} else {
			r.queue = append(r.queue, made{})
		}
		m := &r.queue[len(r.queue)-1]
		m.Origin = Origin{ID: string(s.ID), Device: from.name, Time: s.Time, Piece: from.piece}
		m.x, m.label = append(m.x[:0], s.X...), s.Label
	}
}

// end closes the last message of each device. Windows that no row has ended stay open, as
// in a daemon.
func (r *rawFile) end() {
	r.ended = true
	for _, from := range slices.SortedFunc(maps.Values(r.devices), func(a, b *device) int {
		return cmp.Or(cmp.Compare(a.last, b.last), strings.Compare(a.name, b.name))
	}) {
		r.closeMessage(from)
	}
}
