package dataset

import "io"

// RawRow is a line of a raw file as a sensor sends it.
type RawRow struct {
	Number  int
	Device  string
	Time    int64      // ns since 1970; −1: the file has no times
	Cells   [][]string // of each input, of its configured signals, as codec.Encoder takes them; nil: it has none of them
	Label   string
	Samples []RawSample // that the row completes

	// Rows are the cells of the rows of one message, where each is a window; Cells is nil
	// then, and Time that of the last one.
	Rows [][]string
}

// RawSample is a sample that a row completes.
type RawSample struct{ ID, Label string }

// NextRaw reads the next line of a raw file, or the lines of a message. The row is valid
// until the next call.
func (d *File) NextRaw(row *RawRow) error {
	r := d.raw
	r.queue = r.queue[:0]
	for {
		if len(r.closed) > 0 {
			*row, r.closed = r.closed[0], r.closed[1:]
			return nil
		}
		if r.ended {
			return io.EOF
		}
		if err := d.readRow(); err != nil {
			return err
		}
		if r.ended {
			continue
		}
		if !r.raw.Stream.Stage.Window.Length.Message {
			break
		}
	}
	row.Number, row.Device, row.Time, row.Label = d.read, r.line.device, r.line.time, r.line.label
	row.Cells = row.Cells[:0]
	for i := range r.sources {
		s := &r.sources[i]
		if s.sent {
			row.Cells = append(row.Cells, s.cells)
		} else {
			row.Cells = append(row.Cells, nil)
		}
	}
	row.Samples = row.Samples[:0]
	for _, m := range r.queue {
		row.Samples = append(row.Samples, RawSample{m.ID, m.label})
	}
	return nil
}
