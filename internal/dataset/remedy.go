package dataset

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"edge/internal/dataset/csvtext"
	"edge/stream/signal"
)

// remedies returns the advice about a cell that is not a number.
func (d *File) remedies(i int, cell string, record []string) (text string) {
	if !d.wanted {
		text = fmt.Sprintf("; --ignore %s leaves the column out", d.flagWord(i))
	}
	_, err := strconv.ParseFloat(cell, 64)
	_, isTime := signal.ParseTime(cell, time.UTC)
	switch header, named, table := d.perhapsHeader(record), d.nameColumn(record), d.tableBelow(); {
	case table != "":
		text = table
	case isObject(cell):
		text += d.fromObjects(i)
	case named != "":
		text = "; the file seems to have one value a line, that of what column " + named + " says: want one line a time, with a column for each, as pivot_table of pandas makes it"
	case d.names != nil && cell == d.names[i]:
		text = "; the line repeats the header, as where files were joined: " + dropHeaders
	case header != "":
		text += header
	case strings.ContainsRune(cell, 0):
		text = "; it " + dropNUL
	case !isTime && d.names != nil && strings.Contains(cell, ":") && contains(timeColumns, d.names[i]):
		text += "; a column of times has seconds, or 2026-11-22T17:00:00Z" + csvtext.TimeCommand(cell)
	case d.wanted:
	case csvtext.IsTime(cell):
		text += d.perhapsTime(i, record)
	case csvtext.DateAt(record, i) >= 0 && d.names != nil:
		text += csvtext.JoinCommand(csvtext.DateAt(record, i), d.csv.Comma)
	case err != nil && !strings.ContainsFunc(cell, unicode.IsDigit) && strings.ContainsFunc(cell, unicode.IsLetter):
		text += d.perhapsLabel(i, cell) + "; words that count are read by signals of a configuration (values: one_hot, map)"
		if d.number > 0 { // other rows have numbers
			text += "; an empty cell stands for a missing value"
			if strings.TrimSpace(strings.Join(record[:i], "")+strings.Join(record[i+1:], "")) == "" {
				line, _ := d.csv.FieldPos(0)
				text += fmt.Sprintf("; sed %dd FILE >FILE.csv leaves the line out", line)
			}
		}
	default:
		text += d.perhapsLabel(i, cell)
	}
	return text
}

// perhapsHeader describes how a line is read, or left out, that may belong to the header: the first one, if no
// cell begins as a number; "" for another one.
func (d *File) perhapsHeader(record []string) string {
	if d.number > 0 || d.read > 1 || slices.ContainsFunc(record, beginsNumber) {
		return ""
	}
	if !d.Header {
		return "; without --header no the line names the columns"
	}
	line, _ := d.csv.FieldPos(0)
	return fmt.Sprintf("; sed %dd FILE >FILE.csv leaves the line out, if it belongs to the header, as one of units", line)
}

// perhapsLabel returns the advice to make a column with a word in the first row the label, where no flag
// names that and another column was taken for it.
func (d *File) perhapsLabel(i int, cell string) string {
	first, _ := utf8.DecodeRuneInString(cell)
	at := slices.Index(d.roles, label)
	if !d.begun.last || d.number > 0 || at < 0 || !unicode.IsLetter(first) || d.names != nil && d.names[at] == "label" && d.names[i] != "label" {
		return ""
	}
	return fmt.Sprintf(", or, if it is the label, not %s: --label %s", d.column(at), d.flagWord(i))
}

// isObject reports whether a cell has an object of JSON, as a payload that was recorded.
func isObject(cell string) bool { return strings.HasPrefix(cell, "{") && json.Valid([]byte(cell)) }

// fromObjects returns the advice about a column with objects of JSON.
func (d *File) fromObjects(at int) string {
	if d.names == nil || strings.ContainsAny(d.names[at], `'"\`) {
		return "; its members have to be columns"
	}
	return fmt.Sprintf(`; python3 -c 'import json, pandas; d = pandas.read_csv("FILE", sep="%c"); d.drop(columns="%s").join(pandas.json_normalize(list(map(json.loads, d["%[2]s"]))), rsuffix="_2").to_csv("FILE.csv", index=False)' makes columns of its members`, d.csv.Comma, d.names[at])
}

// perhapsTime returns the advice about a column of times for rows that are no samples: the flag that names it, or
// a header line.
func (d *File) perhapsTime(at int, record []string) string {
	if d.names != nil {
		return "; of rows that a sensor sends one after the other edge config sample --from FILE --time " + d.flagWord(at) + " proposes windows"
	}
	header := ""
	for i, cell := range record {
		name := "x" + strconv.Itoa(i)
		if i == len(record)-1 && !beginsNumber(cell) {
			name = labelColumn
		}
		if i == at {
			name = timeColumns[0]
		}
		header += string(d.csv.Comma) + name
	}
	return "; rows that a sensor sends one after the other need names: sed '1i " + header[1:] + "' FILE >FILE.csv writes such a line above them"
}

// tableBelow returns the advice where the first line, which counts as the header, is one of several above a table; ""
// for another file.
func (d *File) tableBelow() string {
	const (
		notes = 2 // lines: of one line the rows have one cell more, where a name is missing
		rows  = 3 // that notes may be taken for
	)
	if line := d.csv.TableLine; d.Header && line > notes && max(d.number, d.read-1) <= rows {
		return fmt.Sprintf("; a table seems to begin in line %d: tail -n +%[1]d FILE >FILE.csv drops the lines above", line)
	}
	return ""
}
