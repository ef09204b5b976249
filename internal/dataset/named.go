package dataset

import "strings"

// naming are the columns that say what a value is, each between spaces.
const naming = " name sensor sensor_id signal variable metric parameter channel tag field topic "

// named returns the column whose cells say what a column value holds, where a file has one
// value a line: time, name, value; "" for another file.
func (d *File) named(record []string) string {
	at, values := -1, false
	for i, name := range d.names {
		name = strings.ToLower(name)
		values = values || name == "value"
		if strings.Contains(naming, " "+name+" ") && !beginsNumber(record[i]) {
			at = i
		}
	}
	if at < 0 || !values {
		return ""
	}
	return d.column(at)
}
