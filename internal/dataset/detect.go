package dataset

import (
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"edge/stream/signal"
)

// Recording describes a file that looks like one of signals: it has a column with times,
// in which the rows of a device come, and many rows a device.
type Recording struct {
	Signals             []string
	Time, Device, Label string // columns; Device and Label may be ""
	Step                time.Duration
	Regular             bool // nearly all steps between two rows are Step, the median
	Labelled            bool // several labels occur
}

const (
	detectRows  = 100_000 // that Detect reads
	deviceRows  = 200     // of a device on average, in a file of signals
	regularPart = 0.9     // of the steps that differ little from the median
)

// Detect looks at the beginning of a file. ok is false for a file of samples, and for one
// whose times the format ignores.
func Detect(path string, f Format) (r Recording, ok bool, err error) {
	if err := readTwice(path); err != nil {
		return r, false, err
	}
	f.Raw, f.Unlabeled = nil, true
	d, err := Open(path, Format{Separator: f.Separator, Decimal: f.Decimal, Header: f.Header, Unlabeled: true})
	if err != nil {
		return r, false, err
	}
	defer d.Close()
	if d.names == nil {
		return r, false, nil
	}
	r, at := d.recordingColumns(f)
	if at.time < 0 || len(r.Signals) == 0 || slices.Contains(f.Ignore, r.Time) {
		return r, false, nil
	}
	last, labels := map[string]int64{}, map[string]bool{}
	var steps []int64
	for rows := 0; ; rows++ {
		record, err := d.record()
		if errors.Is(err, io.EOF) || rows == detectRows {
			return r, len(last) > 0 && rows >= deviceRows*len(last) && r.steps(steps, len(labels)), nil
		}
		if err != nil {
			return r, false, err
		}
		t, isTime := signal.ParseTime(strings.TrimSpace(record[at.time]), time.UTC)
		if !isTime || !d.numeric(record, r.Signals) {
			return r, false, nil
		}
		device := ""
		if at.device >= 0 {
			device = strings.Clone(record[at.device])
		}
		if before, known := last[device]; known {
			steps = append(steps, t-before)
		}
		last[device] = t
		if at.label >= 0 && len(labels) < 2 {
			labels[strings.Clone(record[at.label])] = true
		}
	}
}

// recordingColumns finds the columns of a file of signals.
func (d *File) recordingColumns(f Format) (r Recording, l layout) {
	first := func(names ...string) (int, string) {
		for _, name := range names {
			if i := slices.Index(d.names, name); i >= 0 && name != "" {
				return i, name
			}
		}
		return -1, ""
	}
	l.time, r.Time = first(timeColumns...)
	l.device, r.Device = first(f.Device, deviceColumn)
	l.label, r.Label = first(f.Label, "label", d.names[len(d.names)-1])
	for i, name := range d.names {
		if i != l.time && i != l.device && i != l.label && name != "" && !slices.Contains(f.Ignore, name) {
			r.Signals = append(r.Signals, name)
		}
	}
	return r, l
}

// numeric reports whether the cells of these columns are numbers, or missing.
func (d *File) numeric(record, columns []string) bool {
	for _, name := range columns {
		cell := strings.TrimSpace(record[slices.Index(d.names, name)])
		if _, err := strconv.ParseFloat(strings.Replace(cell, ",", ".", 1), 64); err != nil && !missing(cell) {
			return false
		}
	}
	return true
}

// steps sets what follows from the steps between two rows of a device; false if they are
// no times that rise.
func (r *Recording) steps(steps []int64, labels int) bool {
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
	r.Step, r.Labelled = time.Duration(median), labels > 1
	r.Regular = float64(near) >= regularPart*float64(len(steps))
	return median > 0 && float64(rising) >= regularPart*float64(len(steps))
}
