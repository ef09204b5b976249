package dataset

import (
	"math"
	"regexp"
	"slices"
	"strings"
)

// rising finds the features that rise from row to row: times and numbers of rows, which tell a
// model where in the file a row is.
type rising struct {
	rows int
	last []float64 // of each feature; NaN once it has fallen, stayed or was missing
}

// risingRows is the number of rows below which a rise may be chance.
const risingRows = 20

// add takes the features of a row.
func (r *rising) add(x []float64) {
	r.rows++
	if r.last == nil {
		r.last = slices.Clone(x)
		return
	}
	for j, v := range x {
		if !(v > r.last[j]) {
			v = math.NaN()
		}
		r.last[j] = v
	}
}

// timeName matches the name of a column that has times, as seconds_elapsed or epoc (ms).
var timeName = regexp.MustCompile(`(?i)time|second|elapsed|epoc|milli|[(_]ms`)

// risingWarning describes the features that have risen with every row so far; "" without one.
func (d *File) risingWarning() string {
	if d.rising.rows < risingRows || d.wanted || d.raw != nil {
		return ""
	}
	remedy := ""
	names, flags := d.listed(func(feature int) bool { return !math.IsNaN(d.rising.last[feature]) })
	if names == "" {
		return ""
	}
	for i, role := range d.roles {
		switch {
		case role < 0 || math.IsNaN(d.rising.last[role]):
		case contains(timeColumns, d.Features[role]):
			remedy = "; rows that a sensor sends one after the other become samples by windows (edge windows --help)"
		case remedy == "" && timeName.MatchString(d.Features[role]):
			remedy = "; of rows that a sensor sends one after the other edge config sample --from FILE --time " + d.flagWord(i) + " proposes windows"
		}
	}
	return "each row has more in " + names + " than the row before, as of a time or the number of the row, which counts as a feature: --ignore " + flags + " leaves it out" + remedy
}

// listed returns the first names of the columns of some features, and all of them as a flag accepts them; "" for none.
func (d *File) listed(taken func(feature int) bool) (names, flags string) {
	n := 0
	for i, role := range d.roles {
		if role < 0 || !taken(role) {
			continue
		}
		switch n++; {
		case n <= fewNames:
			names += ", " + d.column(i)
		case n == fewNames+1:
			names += ", …"
		}
		flags += "," + d.flagWord(i)
	}
	return strings.TrimPrefix(names, ", "), strings.TrimPrefix(flags, ",")
}
