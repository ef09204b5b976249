package dataset

import (
	"slices"
	"strings"
)

// named returns the column whose cells say what a column value holds, where a file has one
// value a line: time, name, value; "" for another file.
func (d *File) named(record []string) string {
	if !slices.ContainsFunc(d.names, func(name string) bool { return strings.EqualFold(name, "value") }) {
		return ""
	}
	for i, name := range d.names {
		switch strings.ToLower(name) {
		case "name", "sensor", "sensor_id", "signal", "variable", "metric", "parameter", "channel", "tag", "field", "topic":
			if !beginsNumber(record[i]) {
				return d.column(i)
			}
		}
	}
	return ""
}
