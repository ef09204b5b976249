package dataset

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"edge/internal/dataset/csvtext"
	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/signal"
)

// Recording describes a file that looks like one of signals: it has a column with times,
// in which the rows of a device come, and many rows a device.
type Recording struct {
	Signals             []string
	Time, Device, Label string // columns; Device and Label may be ""
	Step                time.Duration
	Regular             bool     // nearly all steps between two rows are Step, the median
	Labelled            bool     // several labels occur
	Lacking             bool     // a row lacks the value of a signal
	Relative            bool     // the times are not those of a clock, but from the start of a recording
	Days                bool     // the times would be days of this century or the last in a spreadsheet, a row each 15 minutes or more often
	Times               []string // other columns with times as text, which are no signals
	Rising              []string // columns that rise with every row, as the number of the row does, or are the label in other words: they are no signals
	Shared              bool     // no time is before that of the row before, and many are the same: the file counts as one of samples
	Sparse              bool     // more than half of the rows have an empty cell, as of values that come on change
}

const (
	detectRows  = 100_000  // that Detect reads
	deviceRows  = 200      // of a device on average, in a file of signals,
	quickRows   = 64       // or, where a row comes each second or more often, so many: samples are seldom as quick
	clockTimes  = 1e18     // ns since 1970, in 2001: earlier times are not those of a clock
	firstDay    = 18_264e9 // ns: 1950 in days of a spreadsheet, read as seconds,
	lastDay     = 73_051e9 // and 2100
	regularPart = 0.9      // of the steps that differ little from the median
)

// Detect looks at the beginning of a file. ok is false for a file of samples, and for one
// whose features the format names or whose times it ignores. A file of signals with words
// that need values in the configuration is an error.
func Detect(path string, f Format) (r Recording, ok bool, err error) {
	if f.Columns != nil {
		return r, false, nil
	}
	if err := ReadTwice(path); err != nil {
		return r, false, err
	}
	d, err := Open(path, Format{Separator: f.Separator, Decimal: f.Decimal, Header: f.Header, Unlabeled: true})
	if err != nil {
		return r, false, err
	}
	defer d.Close()
	if d.names == nil || begins(d.names, OriginColumns) && strings.Contains(d.names[len(OriginColumns)], ".") { // windows have x.mean
		return r, false, nil
	}
	r, at, err := d.recordingColumns(f)
	if err != nil || at.time < 0 || len(r.Signals) == 0 {
		return r, false, err
	}
	seen := survey{file: d, at: at, guessed: f.Label == "" && r.Label != labelColumn, last: map[string]int64{}, labels: map[string]bool{}, numbers: true}
	for _, name := range r.Signals {
		seen.signals = append(seen.signals, indexOf(d.names, name))
	}
	for {
		record, err := d.record()
		if errors.Is(err, io.EOF) || seen.rows == detectRows {
			ok, err := seen.judge(&r)
			seen.sort(&r, f)
			return r, ok, err
		}
		if err != nil {
			return r, false, err
		}
		if !seen.add(record) {
			if seen.rows > 0 && record[at.time] == d.names[at.time] {
				err = d.headerAgain(at.time)
			} else if seen.rows == 0 && (f.Time != "" || csvtext.DateAt(record, at.time) >= 0) {
				err = d.notTime(at.time, record, "; for a file of samples --ignore "+d.flagWord(at.time)+" leaves the column out")
			}
			return r, false, err
		}
	}
}

// survey is what Detect sees in the rows of a file, one after the other.
type survey struct {
	file    *File
	at      layout
	signals []int // columns
	guessed bool  // neither a flag nor its name says which column is the label

	rows, gaps    int // gaps: rows with an empty cell
	lacking       bool
	words         error            // a cell that needs values in the configuration
	last          map[string]int64 // time of the last row of each device
	steps         []int64          // of time between two rows of a device
	first, latest int64            // times of the file's first row and of its last
	labels        map[string]bool
	numbers       bool   // all labels are numbers
	rising        rising // of the signals
	telling       telling
	x             []float64
}

// add takes the next row. It reports false for one whose time is none.
func (s *survey) add(record []string) bool {
	t, isTime := signal.ParseTime(csvtext.WithPoint(strings.TrimSpace(record[s.at.time])), time.UTC)
	if !isTime {
		return false
	}
	gap := false
	s.x = s.x[:0]
	for _, i := range s.signals {
		cell := strings.TrimSpace(record[i])
		gap = gap || cell == ""
		s.lacking = s.lacking || csvtext.Missing(cell)
		v, err := csvtext.ParseNumber(cell)
		if err != nil {
			v = math.NaN()
		}
		s.x = append(s.x, v)
		if s.words == nil && !isValue(cell) {
			word, label := s.file.flagWord(i), ""
			if s.guessed {
				label = "--label " + word + " if it is the label, "
			}
			s.words = s.file.at(i, fmt.Sprintf("the file looks like one of signals, and column %s has %s: %s--device %s if it names the device; a stream written by hand can read it by values (map, one_hot or unit); --ignore %s leaves the column out", s.file.column(i), field.Quote(cell), label, word, word))
		}
	}
	if gap {
		s.gaps++
	}
	s.rising.add(s.x)
	device := ""
	if s.at.device >= 0 {
		device = strings.Clone(record[s.at.device])
	}
	if before, known := s.last[device]; known {
		s.steps = append(s.steps, t-before)
	}
	s.last[device], s.latest = t, t
	if s.rows == 0 {
		s.first = t
	}
	if s.at.label >= 0 && len(s.labels) <= maxClasses {
		label := strings.Clone(strings.TrimSpace(record[s.at.label]))
		s.telling.add(s.x, label)
		_, err := csvtext.ParseNumber(label)
		s.numbers = s.numbers && err == nil
		s.labels[label] = true
	}
	s.rows++
	return true
}

// judge sets the facts of r that follow from the rows, and reports whether they are rows of signals. If they
// are but have words that need values in the configuration, it returns the error that says so.
func (s *survey) judge(r *Recording) (ok bool, err error) {
	r.Lacking, r.Relative, r.Sparse = s.lacking, s.latest < clockTimes, 2*s.gaps > s.rows
	r.Labelled = len(s.labels) > 1
	r.Days = areDays(s.first, s.latest, s.rows)
	rising := r.takeSteps(s.steps)
	if !rising || s.rows < deviceRows*len(s.last) && (r.Step > time.Second || s.rows < quickRows*len(s.last)) {
		return false, nil
	}
	return s.words == nil, s.words
}

// sort removes from the signals the columns that rise with every row, or are the label in other words. It adds
// a label to them that no flag names, if its values are numbers and hardly classes.
func (s *survey) sort(r *Recording, f Format) {
	if s.rows >= risingRows {
		var signals []string
		for i, name := range r.Signals {
			if math.IsNaN(s.rising.last[i]) && !s.telling.coded(i) {
				signals = append(signals, name)
			} else {
				r.Rising = append(r.Rising, name)
			}
		}
		if r.Signals = signals; signals == nil {
			r.Signals, r.Rising = r.Rising, nil
		}
	}
	if f.Label == "" && r.Label != labelColumn && s.numbers && hardlyClasses(s.rows, field.Names(s.labels)) {
		r.Signals, r.Label, r.Labelled = append(r.Signals, r.Label), "", false
	}
}

// areDays reports whether times in ns, read as seconds, would be days of this century or the last
// in a spreadsheet, a row each 15 minutes or more often.
func areDays(first, last int64, rows int) bool {
	return rows > 1 && first > firstDay && last < lastDay && first < last && last-first < int64(rows)*int64(10*time.Millisecond)
}

// recordingColumns finds the columns of a file of signals. Without a column of times that
// the format takes, time is −1.
func (d *File) recordingColumns(f Format) (r Recording, l layout, err error) {
	c := chooser{path: d.path, names: d.names, width: len(d.names)}
	leftOut, err := c.find("--ignore", f.Ignore)
	if err != nil {
		return r, l, err
	}
	if l.time, err = c.oneOr("--time", f.Time, timeColumns...); err != nil || slices.Contains(leftOut, l.time) {
		return r, layout{time: -1}, err
	}
	if l.device, err = c.oneOr("--device", f.Device, deviceColumn); err != nil {
		return r, l, err
	}
	if l.label, err = c.label(f, slices.Concat(leftOut, d.begun.times, []int{l.time, l.device})); err != nil {
		return r, l, err
	}
	for i, name := range d.names {
		switch {
		case i == l.time:
			r.Time = name
		case i == l.device:
			r.Device = name
		case i == l.label:
			r.Label = name
		case slices.Contains(leftOut, i) || name == "" || i == 0 && hasIndex(d.names):
		case slices.Contains(d.begun.times, i):
			r.Times = append(r.Times, name)
		default:
			r.Signals = append(r.Signals, name)
		}
	}
	return r, l, nil
}

// isValue reports whether every signal takes a cell: a number, one of the words that all
// know, or a missing value.
func isValue(cell string) bool {
	_, err := csvtext.ParseNumber(cell)
	return err == nil || csvtext.Missing(cell) || codec.IsCommonWord(cell)
}

// takeSteps sets the facts that follow from the steps between two rows of a device; false if they are
// no times that rise.
func (r *Recording) takeSteps(steps []int64) bool {
	if len(steps) == 0 {
		return false
	}
	rising, near := 0, 0
	for _, s := range steps {
		if s > 0 {
			rising++
		}
	}
	slices.Sort(steps)
	median := steps[len(steps)/2]
	for _, s := range steps {
		if math.Abs(float64(s-median)) <= 0.25*float64(median) {
			near++
		}
	}
	r.Step = time.Duration(median)
	r.Regular = float64(near) >= regularPart*float64(len(steps))
	rises := median > 0 && float64(rising) >= regularPart*float64(len(steps))
	r.Shared = !rises && rising > 0 && steps[0] == 0 && len(steps) >= quickRows
	return rises
}
