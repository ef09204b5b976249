package csvtext

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// IsTime reports whether a cell looks like a date and a time of the day, in any order of digits.
func IsTime(cell string) bool {
	return strings.Contains(cell, ":") && strings.ContainsAny(cell, " T") && strings.ContainsAny(cell, "-/.") && strings.Trim(cell, "0123456789:-/.,+ TZ") == ""
}

// localMoment is a date, with the year at its beginning or its end, and a time with or without seconds
// and a zone, which follow each other as in ISO 8601.
var localMoment = regexp.MustCompile(`^(\d\d|\d{4})[./-](\d\d)[./-](\d\d|\d{4})[ T]+\d\d:\d\d(:\d\d([.,]\d+)?)?([Z+-][\d:]*)?$`)

// dates and clocks are the parts of other times, as Go and as strptime have them.
var (
	dates = [][2]string{
		{"2 Jan 2006", "%d %b %Y"}, {"2-Jan-2006", "%d-%b-%Y"}, {"2-Jan-06", "%d-%b-%y"}, {"2/Jan/2006", "%d/%b/%Y"},
		{"2 January 2006", "%d %B %Y"}, {"January 2, 2006", "%B %d, %Y"}, {"Jan 2, 2006", "%b %d, %Y"}, {"Jan 2 2006", "%b %d %Y"},
		{"2006-1-2", "%Y-%m-%d"}, {"2006/1/2", "%Y/%m/%d"}, {"2.1.2006", "%d.%m.%Y"}, {"2.1.06", "%d.%m.%y"},
		{"1/2/2006", "%m/%d/%Y"}, {"2/1/2006", "%d/%m/%Y"}, {"1/2/06", "%m/%d/%y"}, {"2/1/06", "%d/%m/%y"},
	}
	clocks = [][2]string{{"15:04:05", "%H:%M:%S"}, {"15:04", "%H:%M"}, {"3:04:05 PM", "%I:%M:%S %p"}, {"3:04 PM", "%I:%M %p"}}

	digits, words = regexp.MustCompile(`\d+`), regexp.MustCompile(`[A-Za-z]+`)
	fraction      = regexp.MustCompile(`:\d\d([.,]\d+)`) // of a second, which strptime does not read
)

// strptime returns a command of Perl for times that localMoment does not match; "" if there is none.
func strptime(cell string) string {
	pattern := func(text string) string {
		return digits.ReplaceAllString(words.ReplaceAllString(strings.ReplaceAll(text, ".", `\.`), `\w+`), `\d+`)
	}
	whole, moment, rest := pattern(cell), "$&", ""
	if at := fraction.FindStringSubmatchIndex(cell); at != nil {
		before, after := cell[:at[2]], cell[at[3]:]
		whole, moment, rest = "("+pattern(before)+")([.,]\\d+)("+pattern(after)+")", `"$1$3"`, ".$2"
		cell = before + after
	}
	for _, clock := range clocks {
		for _, date := range dates {
			if _, err := time.Parse(date[0]+" "+clock[0], strings.ToUpper(cell)); err != nil {
				continue
			}
			command := `; perl -MTime::Piece -pe 's{` + whole + `}{gmtime->strptime(` + moment + `,"` + date[1] + " " + clock[1] + `")->datetime` + rest + `}e' FILE >FILE.csv writes them so`
			if _, err := time.Parse("2/1/2006", strings.Fields(cell)[0]); err == nil && date[0] == "1/2/2006" {
				command += ", if the month comes first; if the day does: %d/%m in it"
			}
			return command
		}
	}
	return ""
}

// TimeCommand returns a command that writes the times of a file as ISO 8601 has them, by one of
// them; "" if there is none.
func TimeCommand(cell string) string {
	m := localMoment.FindStringSubmatch(cell)
	if m == nil || (len(m[1]) == 4) == (len(m[3]) == 4) {
		return strptime(cell)
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

// IsMoment reports whether a cell is a date, a time of the day, or both, and no number.
func IsMoment(cell string) bool {
	return IsTime(cell) || halfDate.MatchString(cell) || halfClock.MatchString(cell) || TimeCommand(cell) != ""
}

// halfDate and halfClock match a date, and a time of the day.
var (
	halfDate  = regexp.MustCompile(`^\d{1,4}[./-]\d{1,2}[./-]\d{1,4}$`)
	halfClock = regexp.MustCompile(`^\d{1,2}:\d\d(:\d\d([.,]\d+)?)?( ?[AaPp][Mm])?$`)
)

// DateAt returns the column of the date where cell i of a row is a date or a time of the day, and the other one is
// beside it; -1 where it is not so.
func DateAt(record []string, i int) int {
	for _, at := range [...]int{i, i - 1} {
		if at >= 0 && at+1 < len(record) && halfDate.MatchString(strings.TrimSpace(record[at])) && halfClock.MatchString(strings.TrimSpace(record[at+1])) {
			return at
		}
	}
	return -1
}

// JoinCommand returns the command that makes one column of a date in column at and the time of the day after it.
func JoinCommand(at int, separator rune) string {
	with, between := " ", string(separator)
	switch separator {
	case ' ':
		with, between = "T", " +"
	case '|':
		between = `\|`
	case '\t':
		between = `\t`
	}
	number := ""
	if at > 0 {
		number = strconv.Itoa(at + 1)
	}
	return fmt.Sprintf(`; sed -E 's/"?%s"?/%s/%s' FILE >FILE.csv makes one column of date and time, and --time %d names it`, between, with, number, at+1)
}
