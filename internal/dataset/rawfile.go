package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

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
	labels  int // rows that have one

	message signal.Message // of one row
	line    rawLine        // the latest
	times   [2]int64       // of the first row and the newest
	number  int            // of rows in messages
	closed  []RawRow       // messages that NextRaw has not returned yet
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
		Times: d.otherTimes(), Sparse: d.sparse(),
		Refused: r.refused, Crowded: c.Crowded.Load(), Unvalued: c.Unvalued.Load(), SetBack: c.SetBack.Load(), Evicted: c.Evicted.Load(),
	}
}

// otherTimes describes the times of a raw file that may be days of a spreadsheet, or ms from the start of a recording;
// "" for others.
func (d *File) otherTimes() string {
	const quick = int64(5 * time.Second) // a row is rarely in less ms than that, and in more seconds
	r := d.raw
	unit, seconds := "", ""
	switch first, last := r.times[0], r.times[1]; {
	case areDays(first, last, d.read):
		unit, seconds = "days, as in a spreadsheet", `($%[3]d-25569)*86400`
	case last < clockTimes && d.read > 1 && (last-first)/int64(d.read) >= quick:
		unit, seconds = "ms", `$%[3]d/1000`
	default:
		return ""
	}
	return fmt.Sprintf(`the times count as seconds; if they are %[1]s, awk -F'%[2]c' -v OFS='%[2]c' 'NR>1{sub(",",".",$%[3]d); $%[3]d=sprintf("%%.6f",`+seconds+`)} 1' FILE >FILE.csv makes seconds of them`, unit, d.csv.Comma, r.time+1)
}

// sparse describes the labels of a raw file where they are on few of the rows, so that windows may have none of
// them; "" otherwise.
func (d *File) sparse() string {
	r := d.raw
	if r.labels == 0 || 10*r.labels >= 9*d.read || !r.raw.Stream.Stage.Window.Length.Set() {
		return ""
	}
	return fmt.Sprintf(`%d of %d rows have a label, and windows need it on 90 %% of theirs, or with window.label: majority on more than half; where a label counts until the next one, awk -F'%c' -v OFS='%[3]c' '{sub(/\r$/,"")} NR>1{if($%[4]d=="") $%[4]d=l; else l=$%[4]d} 1' FILE >FILE.csv writes it into the rows between`, r.labels, d.read, d.csv.Comma, r.label+1)
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
