package dataset

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"edge/internal/dataset/csvtext"
	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/signal"
)

// rawLine is a line of a raw file.
type rawLine struct {
	device, label string
	time          int64 // ns since 1970; −1 in a file without times
}

// takeRow gives a line to the stage: a message for each input of which it has a value.
func (d *File) takeRow(record []string) error {
	r := d.raw
	if d.read++; d.read == 1 && r.time < 0 && r.raw.Stream.Raw.Rate.Hz == 0 {
		if err := d.checkUntimed(record); err != nil {
			return err
		}
	}
	label, err := d.rowLabel(record)
	if err != nil {
		return err
	}
	if label != "" && label != codec.NoLabel {
		r.labels++
	}
	from := r.sender(record)
	at, err := d.rowTime(record, from)
	if err != nil {
		return err
	}
	r.follow(from, at)
	r.line = rawLine{from.name, label, at}
	if r.time < 0 {
		r.line.time = -1
	}
	taken := false
	for i := range r.sources {
		ok, err := d.takeSource(record, i, label)
		if err != nil {
			return err
		}
		if ok {
			r.give(from, i, at)
		}
		taken = taken || ok
	}
	if !taken {
		r.refused++
	}
	return nil
}

// sender returns the device of a row.
func (r *rawFile) sender(record []string) *device {
	name := ""
	if r.raw.Device != nil {
		name = *r.raw.Device
	} else if r.layout.device >= 0 {
		name = strings.TrimSpace(record[r.layout.device])
	}
	from := r.devices[name]
	if from == nil {
		from = &device{name: strings.Clone(name), piece: -1}
		r.devices[from.name] = from
	}
	return from
}

// rowLabel returns the label of a row as a payload has it: "" for an empty cell, codec.NoLabel for
// a word that is no label.
func (d *File) rowLabel(record []string) (string, error) {
	column := d.raw.label
	if column < 0 {
		return "", nil
	}
	label := strings.TrimSpace(record[column])
	switch {
	case label == "":
		return "", nil
	case unlabelled(label):
		return codec.NoLabel, nil
	}
	if err := d.checkLabel(column, label); err != nil {
		return "", err
	}
	if label, _ = d.labels.class(label); label == "" { // Others: the stream has a map of its own, or none
		return codec.NoLabel, nil
	}
	return label, nil
}

// rowTime returns the time of a row. In a file without times a row of a device comes
// 1/rate after the one before, or 1 ms.
func (d *File) rowTime(record []string, from *device) (int64, error) {
	r := d.raw
	if r.time < 0 {
		from.rows++
		step := 1e6
		if rate := r.raw.Stream.Raw.Rate.Hz; rate > 0 {
			step = 1e9 / rate
		}
		return int64(math.Round(float64(from.rows) * step)), nil
	}
	cell := strings.TrimSpace(record[r.time])
	text := csvtext.WithPoint(cell)
	at, ok := signal.ParseTime(text, r.zone)
	if !ok && text == d.names[r.time] {
		return 0, d.headerAgain(r.time)
	}
	if !ok {
		return 0, d.notTime(r.time, record, d.perhapsHeader(record))
	}
	if r.times[1] = at; d.read <= 1 {
		r.times[0] = at
	}
	return at, nil
}

// notTime returns the error of a cell that should be a time, with a command that makes one of it.
func (d *File) notTime(column int, record []string, more string) error {
	cell := strings.TrimSpace(record[column])
	if date := csvtext.DateAt(record, column); date >= 0 {
		more = csvtext.JoinCommand(date, d.csv.Comma) + more
	}
	return d.at(column, fmt.Sprintf("column %s: %s is no time: want seconds, or 2026-11-22T17:00:00Z", d.column(column), field.Quote(cell))+csvtext.TimeCommand(cell)+more)
}

// follow begins another recording of a device after a silence.
func (r *rawFile) follow(from *device, at int64) {
	if from.piece < 0 || at-from.last > r.pause || from.last-at > r.pause {
		r.closeMessage(from)
		from.piece = r.pieces
		r.pieces++
	}
	from.last = at
}

// takeSource reads the signals of an input; false if the line has none of them, or lacks
// one that it must have.
func (d *File) takeSource(record []string, input int, label string) (ok bool, err error) {
	r := d.raw
	s := &r.sources[input]
	for i, column := range s.columns {
		s.cells[i] = d.signalCell(strings.TrimSpace(record[column]), s.words[i])
		ok = ok || s.cells[i] != ""
	}
	if s.sent = ok; !ok {
		return false, nil
	}
	null := label == codec.NoLabel && s.labels
	if null || !s.labels {
		label = ""
	}
	reading, err := s.decoder.Row(s.cells, label)
	if err != nil {
		var refusal *codec.Refusal
		if errors.As(err, &refusal) {
			if refusal.Reason == codec.MissingFeature {
				return false, nil
			}
			err = refusal.Err
		}
		line, _ := d.csv.FieldPos(0)
		return false, fmt.Errorf("%s:%d: %w%s", d.path, line, err, d.perhapsHeader(record))
	}
	r.message.Rows[0] = signal.Row{X: reading.X, Absent: reading.Absent, Label: reading.Label, Null: null || reading.Null}
	return true, nil
}

// signalCell returns a cell as a payload has it: a number with a decimal point in the
// grammar of JSON, and null for the words that stand for a missing value in data files
// alone. words: the signal has words of its own, which may be those.
func (d *File) signalCell(cell string, words bool) string {
	if cell == "" || gjson.Valid(cell) {
		return cell
	}
	text := cell
	if d.decimal == ',' || d.csv.Comma != ',' {
		if text = csvtext.WithPoint(cell); !words && strings.IndexByte("+-0123456789", cell[0]) >= 0 {
			cell = text // with a unit
		}
	}
	if v, err := csvtext.ParsePoint(text); err == nil && !math.IsInf(v, 0) && !math.IsNaN(v) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	if !words && csvtext.Missing(cell) {
		return "null"
	}
	return cell
}
