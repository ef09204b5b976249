package dataset

import (
	"fmt"
	"math"
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

// namesTime reports whether a column of that name has times, as seconds_elapsed or epoch (ms).
func namesTime(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"time", "second", "elapsed", "epoc", "milli", "(ms)", "_ms"}, func(word string) bool { return strings.Contains(name, word) })
}

// risingWarning describes the features that have risen with every row so far; "" without one.
func (d *File) risingWarning() string {
	if d.rising.rows < risingRows || d.wanted || d.raw != nil {
		return ""
	}
	var names, flags []string
	remedy := ""
	for i, role := range d.roles {
		if role < 0 || math.IsNaN(d.rising.last[role]) {
			continue
		}
		names, flags = append(names, d.column(i)), append(flags, d.flagWord(i))
		if slices.Contains(timeColumns, d.Features[role]) {
			remedy = "; rows that a sensor sends one after the other become samples by windows (edge windows --help)"
		} else if remedy == "" && namesTime(d.Features[role]) {
			remedy = "; of rows that a sensor sends one after the other edge config sample --from FILE --time " + d.flagWord(i) + " proposes windows"
		}
	}
	if names == nil {
		return ""
	}
	return fmt.Sprintf("each row has more in %s than the row before, as of a time or the number of the row, which counts as a feature: --ignore %s leaves it out%s", first(names), strings.Join(flags, ","), remedy)
}
