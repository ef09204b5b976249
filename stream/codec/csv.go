package codec

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// csvCodec reads lines of cells between commas (RFC 4180), semicolons or tabs: the
// configuration names the columns. An empty cell is a missing one, and those behind the last
// column do not count. The word null as a label is no label, and ends one that is held, as null
// of JSON does. A first line that has the names of the columns is left out.
type csvCodec struct {
	*schema
	columns []column
}

// column is the meaning of the cells of one column.
type column struct {
	feature int // index of the feature, −1 if the column is not a feature
	key     string
}

const (
	cellSource = "source" // keys of a payload that cannot be renamed
	cellWeight = "weight"
)

func newCSVCodec(s *schema) csvCodec {
	c := csvCodec{schema: s}
	if len(s.columns) == 0 {
		for i := range s.names {
			c.columns = append(c.columns, column{feature: i})
		}
		return c
	}
	for _, name := range s.columns {
		c.columns = append(c.columns, column{feature: s.cellFeature(name), key: name})
	}
	return c
}

// cellFeature returns the index of the feature in a cell of that name, −1 if the cell
// is not a feature.
func (s *schema) cellFeature(name string) int {
	if s.paths != nil {
		return slices.IndexFunc(s.paths, func(path string) bool { return PlainName(path) == name })
	}
	if i, ok := s.index[name]; ok {
		return i
	}
	return -1
}

func (c csvCodec) decode(payload []byte) ([]Reading, *Refusal) {
	if !utf8.Valid(payload) {
		return nil, notText(payload)
	}
	lines := csv.NewReader(bytes.NewReader(payload))
	lines.Comma, lines.FieldsPerRecord, lines.ReuseRecord = c.separator(payload), -1, true
	lines.TrimLeadingSpace = lines.Comma != '\t'
	var readings []Reading
	for n := 0; ; n++ {
		line, err := lines.Read()
		if errors.Is(err, io.EOF) && n == 0 {
			return nil, Refuse(Empty, "no line")
		}
		if errors.Is(err, io.EOF) {
			return readings, c.spreadLines(readings)
		}
		if err != nil {
			return nil, unlessJSON(payload, Refuse(Malformed, "%w", err))
		}
		for len(line) > len(c.columns) && strings.TrimSpace(line[len(line)-1]) == "" {
			line = line[:len(line)-1]
		}
		if n == 0 && c.isHeader(line) {
			continue
		}
		var refusal *Refusal
		if readings, refusal = c.line(readings, line); refusal != nil {
			at, _ := lines.FieldPos(0)
			return nil, unlessJSON(payload, onLine(refusal, at))
		}
	}
}

// separator returns what is between the cells of the first line: that which gives it a cell for each column; else a
// comma if it has one.
func (c csvCodec) separator(payload []byte) rune {
	line, _, _ := bytes.Cut(payload, []byte("\n"))
	commas := bytes.Count(line, []byte(","))
	if commas > 0 && bytes.ContainsRune(line, '"') {
		return ','
	}
	found := ','
	for _, sep := range ",\t;" {
		n := bytes.Count(line, []byte(string(sep)))
		if n+1 == len(c.columns) {
			return sep
		}
		if n > 0 && commas == 0 {
			found = sep
		}
	}
	return found
}

// isHeader reports whether a line has the names of the columns.
func (c csvCodec) isHeader(line []string) bool {
	names := c.schema.columns
	if len(names) == 0 {
		names = c.names
	}
	return slices.EqualFunc(line, names, func(cell, name string) bool { return strings.TrimSpace(cell) == name })
}

// line adds the reading of a line.
func (c csvCodec) line(readings []Reading, line []string) ([]Reading, *Refusal) {
	if len(line) > len(c.columns) {
		return nil, Refuse(WrongDimension, "%d cells, want %d; columns may have \"\" for one that is not read", len(line), len(c.columns))
	}
	if len(line) < len(c.columns) {
		return nil, Refuse(WrongDimension, "%d cells, want %d, with commas between them", len(line), len(c.columns))
	}
	row := c.newCells()
	for i := range c.columns {
		if c.marks != nil {
			row.note(c.columns[i].key, strings.TrimSpace(line[i]))
		}
	}
	if !c.marks.selects(row.text) {
		return readings, nil
	}
	for i, cell := range line {
		if cell = strings.TrimSpace(cell); cell == "" {
			continue
		}
		if err := c.cell(row, c.columns[i], cell); err != nil {
			return nil, err.of(row.device())
		}
	}
	return c.append(readings, row)
}

func (c csvCodec) cell(row *cells, col column, text string) *Refusal {
	if col.feature >= 0 {
		return row.feature(col.feature, text)
	}
	switch col.key {
	case "":
	case PlainName(c.id):
		return c.setID(&row.r, text)
	case PlainName(c.label):
		if _, mapped := c.labels[text]; text == NoLabel && !mapped {
			row.r.Null = c.signals != nil
			return nil
		}
		return c.setLabel(&row.r, text)
	case PlainName(c.time):
		c.setTime(&row.r, text)
	case cellSource:
		if len(text) <= maxID {
			row.r.Source = strings.Clone(text)
		}
	case cellWeight:
		row.weight = strings.Clone(text)
	}
	return nil
}
