package codec

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/influxdata/line-protocol/v2/lineprotocol"
)

// influxCodec reads InfluxDB's line protocol, the default format of Telegraf: each
// line is a sample. Fields are features; id, label and source are fields or tags.
// Other tags are ignored, because Telegraf adds some to every line. The timestamp is
// passed on unchanged. A line without any signal, of another measurement, is left out. For Device
// and Where the measurement is a tag _measurement.
type influxCodec struct {
	*schema
	byField map[string]int // index of a feature, by field
}

func newInfluxCodec(s *schema) influxCodec {
	c := influxCodec{s, s.index}
	if s.paths != nil {
		c.byField = make(map[string]int, len(s.paths))
		for i, path := range s.paths {
			c.byField[PlainName(path)] = i
		}
	}
	return c
}

func (c influxCodec) decode(payload []byte) ([]Reading, *Refusal) {
	if !utf8.Valid(payload) {
		return nil, notText(payload)
	}
	var readings []Reading
	others, selected := 0, 0 // lines without signals; lines that are selected
	lines := lineprotocol.NewDecoderWithBytes(payload)
	n := 1
	for ; lines.Next(); n++ {
		row := c.newCells()
		err := c.line(row, lines)
		if err == nil && !c.marks.selects(row.text) {
			continue
		}
		selected++
		if err == nil && c.signals != nil && row.n == 0 {
			others++
			continue
		}
		if err == nil {
			readings, err = c.append(readings, row)
		}
		if err != nil {
			if syntax := (*lineprotocol.DecodeError)(nil); !errors.As(err.Err, &syntax) { // which has its line
				err = onLine(err.of(row.device()), lineOf(payload, n))
			}
			return nil, unlessJSON(payload, err)
		}
	}
	switch {
	case len(readings) > 0:
		return readings, c.spreadLines(readings)
	case others > 0 && others == selected:
		return nil, Refuse(MissingFeature, "no line has the field of a signal; a path in fields finds one under another name")
	}
	if n == 1 {
		return nil, Refuse(Empty, "no line")
	}
	return nil, nil // Where takes none
}

// lineOf returns the line in which entry n of a payload begins, beside which there may be empty
// lines and comments. The decoder does not know it.
func lineOf(payload []byte, n int) int {
	r := lineReader{rest: payload}
	for lines := lineprotocol.NewDecoder(&r); n > 0 && lines.Next(); n-- {
	}
	return r.line
}

// lineReader gives at most a line in each call, and counts those that it has begun.
type lineReader struct {
	rest  []byte
	line  int
	begun bool
}

// Read is io.Reader.
func (r *lineReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	if !r.begun {
		r.line++
	}
	end := bytes.IndexByte(r.rest, '\n') + 1
	if end == 0 {
		end = len(r.rest)
	}
	n := copy(p, r.rest[:end])
	r.begun, r.rest = n < end, r.rest[n:]
	return n, nil
}

func (c influxCodec) line(row *cells, lines *lineprotocol.Decoder) *Refusal {
	of, err := lines.Measurement()
	if err != nil {
		return Refuse(Malformed, "%w", err)
	}
	row.note(measurement, string(of))
	l := influxLine{of: c}
	if err := l.tags(row, lines); err != nil {
		return err
	}
	if err := l.fields(row, lines); err != nil {
		return err
	}
	switch {
	case !c.marks.selects(row.text):
		return nil
	case l.bad != nil && (c.signals == nil || row.n > 0):
		return l.bad
	case row.r.RawTime != "":
		return nil
	}
	stamp, err := lines.TimeBytes()
	if err != nil {
		return Refuse(Malformed, "%w", err)
	}
	if c.time != "" || c.signals == nil { // else the rows have the time of their arrival
		c.setTime(&row.r, string(stamp))
	}
	return nil
}

// influxLine is a line whose cells are read into a row.
type influxLine struct {
	of   influxCodec
	seen []string // keys of cells, each once
	bad  *Refusal // of a value: none in a line that is left out
}

// tags reads the tags into the row.
func (l *influxLine) tags(row *cells, lines *lineprotocol.Decoder) *Refusal {
	for {
		key, value, err := lines.NextTag()
		if err != nil {
			return Refuse(Malformed, "%w", err)
		}
		if key == nil {
			return nil
		}
		if !l.of.isCell(string(key)) {
			continue
		}
		name, text := string(key), string(value)
		if slices.Contains(l.seen, name) {
			return Refuse(Repeated, "tag %.40q occurs twice", key)
		}
		l.seen = append(l.seen, name)
		row.note(name, text)
		l.bad = cmp.Or(l.bad, l.of.cell(row, name, lineprotocol.String, text))
	}
}

// fields reads the fields into the row.
func (l *influxLine) fields(row *cells, lines *lineprotocol.Decoder) *Refusal {
	for {
		key, kind, value, err := lines.NextFieldBytes()
		if err != nil {
			return Refuse(Malformed, "%w", err)
		}
		if key == nil {
			return nil
		}
		name, text := string(key), string(value)
		if kind == lineprotocol.Bool {
			text = strconv.FormatBool(isTrue(text))
		}
		row.note(name, text)
		i, isFeature := l.of.byField[name]
		switch {
		case isFeature:
			l.bad = cmp.Or(l.bad, l.of.feature(row, i, kind, text))
		case slices.Contains(l.seen, name):
			return Refuse(Repeated, "key %.40q occurs twice", name)
		case l.of.isCell(name):
			l.bad = cmp.Or(l.bad, l.of.cell(row, name, kind, text))
			l.seen = append(l.seen, name)
		case l.of.paths == nil && l.of.signals == nil:
			l.bad = cmp.Or(l.bad, l.of.unknownKey(name))
		}
	}
}

// feature sets the value of feature, or signal, i.
func (c influxCodec) feature(row *cells, i int, kind lineprotocol.ValueKind, text string) *Refusal {
	if c.signals == nil && kind != lineprotocol.Int && kind != lineprotocol.Uint && kind != lineprotocol.Float {
		return Refuse(NotANumber, "feature %.40q is the %v %.40q; signals in place of features read texts and switches", c.names[i], kind, text)
	}
	return row.feature(i, text)
}

// isTrue reports which of the two a bool of the line protocol is.
func isTrue(text string) bool { return strings.HasPrefix(strings.ToLower(text), "t") }

// isCell reports whether a key that is not a feature is read.
func (c influxCodec) isCell(key string) bool {
	switch key {
	case PlainName(c.id), PlainName(c.label), PlainName(c.time), cellSource, cellWeight:
		return true
	}
	return c.marks.named(key)
}

func (c influxCodec) cell(row *cells, key string, kind lineprotocol.ValueKind, text string) *Refusal {
	switch key {
	case PlainName(c.id):
		if kind == lineprotocol.Bool {
			return Refuse(BadID, "%s is the bool %s: want a text or a number", c.id, text)
		}
		return c.setID(&row.r, text)
	case PlainName(c.label):
		if kind == lineprotocol.String || kind == lineprotocol.Bool { // true or false by now
			return c.setLabel(&row.r, text)
		}
		return c.setLabelNumber(&row.r, text)
	case PlainName(c.time):
		c.setTime(&row.r, text)
	case cellSource:
		if kind == lineprotocol.String && len(text) <= maxID {
			row.r.Source = text
		}
	case cellWeight:
		row.weight = text
	}
	return nil
}
