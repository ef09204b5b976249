package dataset

import (
	"fmt"
	"strings"
)

// nameColumns are the columns with the name of a value, each between spaces.
const nameColumns = " name sensor sensor_id signal variable metric parameter channel tag field topic varname "

// nameColumn returns the column whose cells name the value in a column value, where a file has one
// value a line (long format): time, name, value; "" for another file.
func (d *File) nameColumn(record []string) string {
	at, values := -1, false
	for i, name := range d.names {
		name = strings.ToLower(name)
		values = values || name == "value" || name == "varvalue" // of WinCC
		if strings.Contains(nameColumns, " "+name+" ") && !beginsNumber(record[i]) {
			at = i
		}
	}
	if at < 0 || !values {
		return ""
	}
	return d.column(at)
}

// longFormat returns the error of a file of which each line has one value, of whatever
// the line names; nil for another one.
func (d *File) longFormat() error {
	has := func(name string) bool { return contains(d.names, name) }
	switch {
	case has("_field") && has("_value"):
		return fmt.Errorf("%s: of InfluxDB, with one value a line: end the query with |> group() |> pivot(rowKey: [\"_time\"], columnKey: [\"_field\"], valueColumn: \"_value\"), and with the column of a device in rowKey, for lines with all fields", d.path)
	case has("entity_id") && has("state") && has("last_changed"):
		return fmt.Errorf("%s: of Home Assistant, with one value a line: want a column for each entity, with its state in the lines of its changes and empty cells in the others, beside last_changed", d.path)
	}
	return nil
}
