package dataset

import (
	"errors"
	"io"
	"regexp"
	"strings"

	"edge/internal/dataset/csvtext"
)

// timesName matches the name of a column that may have dates or times of the day.
var timesName = regexp.MustCompile(`(?i)time|date|stamp|datum|zeit|^(t|_?ts|day|hour|clock|last_changed)$|_(ts|at)$`)

// leftOutTimes are the columns that leaveOutTimes has left out.
type leftOutTimes struct {
	times  []int
	remedy string // for whoever needs them
}

// leaveOutTimes chooses the columns of samples anew without those that have times by their names and their cells in
// the first row, where neither a model nor a flag names the features: a time as text is no number.
func (d *File) leaveOutTimes(f Format) error {
	if d.names == nil || f.Columns != nil || f.Features != nil {
		return nil
	}
	record, err := d.record()
	if errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	d.first = record
	for i, role := range d.roles {
		wanted := role >= 0 || role == label && d.begun.last && d.names[i] != labelColumn && d.names[i] != f.OwnLabel
		if cell := strings.TrimSpace(record[i]); wanted && timesName.MatchString(d.names[i]) && csvtext.IsMoment(cell) {
			f.times = append(f.times, i)
		}
	}
	if f.times == nil {
		return nil
	}
	roles, features, err := f.choose(d.path, d.names, len(d.roles))
	if err != nil { // no column is left: Next returns the error of the first time
		return nil
	}
	d.roles, d.Features, d.begun.times = roles, features, f.times
	d.begun.remedy = d.perhapsTime(f.times[0], record)
	if at := csvtext.DateAt(record, f.times[0]); at >= 0 {
		d.begun.remedy = csvtext.JoinCommand(at, d.csv.Comma)
	}
	return nil
}

// timesWarning describes the columns of times that are left out; "" without one.
func (d *File) timesWarning() string {
	var names []string
	for _, i := range d.begun.times {
		names = append(names, d.column(i))
	}
	if names == nil {
		return ""
	}
	return "left out, since times are no numbers: column " + first(names) + d.begun.remedy
}
