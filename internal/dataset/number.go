package dataset

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"edge/internal/dataset/csvtext"
	"edge/stream/field"
)

// value reads a number, or returns the reason that it is none. The first number
// with a fraction determines the decimal sign of the file.
func (d *File) value(cell string) (v float64, reason string) {
	point, comma := strings.ContainsRune(cell, '.'), strings.ContainsRune(cell, ',')
	v, err := csvtext.ParseNumber(cell)
	switch {
	case err != nil && len(cell) > 1 && cell[0] == '\'':
		return 0, field.Quote(cell) + ` has single quotes: want double ones, or none; sed "s/'//g" FILE >FILE.csv removes them`
	case err != nil && spreadsheetError(cell):
		return 0, field.Quote(cell) + " is an error of a spreadsheet: sed 's|" + cell + "||g' FILE >FILE.csv makes empty cells of it, which stand for missing values"
	case err != nil && dashOf(cell) != "":
		return 0, field.Quote(cell) + " begins with a dash that is no minus sign: sed 's/" + dashOf(cell) + "/-/g' FILE >FILE.csv makes one of it"
	case err != nil && (comma && point || grouped(csvtext.WithPoint(cell))):
		return 0, field.Quote(cell) + " is not a number: write it without a separator of thousands"
	case math.IsNaN(v) || math.IsInf(v, 0) || errors.Is(err, strconv.ErrRange):
		return 0, field.Quote(cell) + " is not a finite number: an empty cell stands for a missing value"
	case err != nil && unitOf(cell) != "":
		return 0, field.Quote(cell) + " is not a number: if " + field.Quote(unitOf(cell)) + " is a unit, write it without"
	case err != nil:
		return 0, field.Quote(cell) + " is not a number" + numbersOf(cell)
	case point && d.decimal == ',' && d.fixed:
		return 0, field.Quote(cell) + " has a decimal point, and --decimal comma is given"
	case comma && d.decimal == '.' && d.fixed:
		return 0, field.Quote(cell) + " has a decimal comma, and --decimal point is given"
	case point && d.decimal == ',':
		return 0, field.Quote(cell) + " has a decimal point, the numbers before it a comma; give --decimal point or --decimal comma"
	case comma && d.decimal == '.':
		return 0, field.Quote(cell) + " has a decimal comma, the numbers before it a point; give --decimal point or --decimal comma"
	case comma && !d.fixed && d.csv.Comma == ',':
		return 0, field.Quote(cell) + " has a comma, of a decimal or of thousands; --decimal comma reads it as a decimal"
	case point:
		d.decimal = '.'
	case comma:
		d.decimal = ','
	}
	return v, ""
}

// spreadsheetError reports whether a cell is as #DIV/0! or, in another language, #WERT!
func spreadsheetError(cell string) bool {
	return cell[0] == '#' && strings.Trim(cell[1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ/0!?") == ""
}

// dashOf returns the dash before a number, which looks as a minus sign does; "" without one.
func dashOf(cell string) string {
	for _, dash := range [...]string{"−", "–"} {
		if number, found := strings.CutPrefix(cell, dash); found && beginsNumber(number) {
			return dash
		}
	}
	return ""
}

// grouped reports whether a cell is a number with separators of thousands that no country has as
// its decimal sign.
func grouped(cell string) bool {
	_, err := csvtext.ParsePoint(strings.Map(func(r rune) rune {
		if r == '\'' || r == '’' || unicode.IsSpace(r) {
			return -1
		}
		return r
	}, cell))
	return err == nil
}

// thousands and hundreds match the two cells of a number that a comma between thousands has cut.
var thousands, hundreds = regexp.MustCompile(`^[+-]?\d{1,3}$`), regexp.MustCompile(`^\d{3}(\.\d*)?$`)

// splitNumber returns the number that a line with too many cells may have with a separator of thousands; "" without one.
// The number of a row as R writes it, before a cell of three digits, is none.
func (d *File) splitNumber(record []string) string {
	for i := 1; i < len(record) && d.csv.Comma == ',' && len(record) > len(d.roles); i++ {
		before, after := strings.TrimSpace(record[i-1]), strings.TrimSpace(record[i])
		numbered := i == 1 && before == "1" && d.number == 0 && after[:min(1, len(after))] != "0"
		if thousands.MatchString(before) && hundreds.MatchString(after) && !numbered {
			return before + "," + after
		}
	}
	return ""
}

// numbersOf returns the command that makes numbers of the words for true and false, as spelt in a cell; "" for
// another cell.
func numbersOf(cell string) string {
	for _, words := range [...][2]string{{"True", "False"}, {"true", "false"}, {"TRUE", "FALSE"}} {
		if cell == words[0] || cell == words[1] {
			return `: sed 's/\b` + words[0] + `\b/1/g; s/\b` + words[1] + `\b/0/g' FILE >FILE.csv makes 1 and 0 of such words, in all columns`
		}
	}
	return ""
}

// unitOf returns what may be the unit after a number, "" where a cell is something else.
func unitOf(cell string) string {
	at := strings.IndexFunc(cell, func(r rune) bool { return !strings.ContainsRune("+-0123456789.,", r) })
	if at < 0 || strings.ContainsAny(cell[at:len(cell)-1], "0123456789") { // hexadecimal digits; units such as m/s2 end with a digit
		return ""
	}
	_, err := csvtext.ParseNumber(cell[:at])
	unit := strings.TrimSpace(cell[at:])
	if first, _ := utf8.DecodeRuneInString(unit); err != nil || !unicode.IsLetter(first) && first != '%' && first != '°' {
		return ""
	}
	return unit
}

// beginsNumber reports whether a cell begins as a number does.
func beginsNumber(cell string) bool {
	cell = strings.TrimLeft(cell, " +-.,")
	return cell != "" && cell[0]-'0' <= 9
}
