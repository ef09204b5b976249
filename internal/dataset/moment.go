package dataset

import (
	"regexp"
	"strings"
)

// isMoment reports whether a cell looks like a date and a time of the day, in any order of digits.
func isMoment(cell string) bool {
	return strings.Contains(cell, ":") && strings.ContainsAny(cell, " T") && strings.ContainsAny(cell, "-/.") && strings.Trim(cell, "0123456789:-/.,+ TZ") == ""
}

// localMoment is a date, with the year at its begin or its end, and a time with or without seconds
// and a zone, which follow each other as in ISO 8601.
var localMoment = regexp.MustCompile(`^(\d\d|\d{4})[./-](\d\d)[./-](\d\d|\d{4})[ T]+\d\d:\d\d(:\d\d([.,]\d+)?)?([Z+-][\d:]*)?$`)

// momentCommand returns a command that writes the times of a file as ISO 8601 has them, by one of
// them; "" if there is none.
func momentCommand(cell string) string {
	m := localMoment.FindStringSubmatch(cell)
	if m == nil || (len(m[1]) == 4) == (len(m[3]) == 4) {
		return ""
	}
	date, order := `([0-9]{2})[./-]([0-9]{2})[./-]([0-9]{4})`, `\3-\2-\1`
	switch {
	case len(m[1]) == 4:
		date, order = `([0-9]{4})[./-]([0-9]{2})[./-]([0-9]{2})`, `\1-\2-\3`
	case m[2] > "12":
		order = `\3-\1-\2`
	}
	with := func(order string) string {
		if m[4] == "" {
			return `sed -E 's#` + date + `[ T]+([0-9:]{5})#` + order + ` \4:00#' FILE`
		}
		return `sed -E 's#` + date + `#` + order + `#' FILE`
	}
	command := "; " + with(order) + " >FILE.csv writes them so"
	if len(m[1]) == 2 && m[1] <= "12" && m[2] <= "12" && !strings.Contains(cell[:10], ".") {
		command += `, if the day comes first; if the month does: ` + strings.Replace(order, `\2-\1`, `\1-\2`, 1) + " in it"
	}
	return command
}
