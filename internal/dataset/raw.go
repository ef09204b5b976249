package dataset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"edge/internal/dataset/csvtext"
	"edge/internal/terminal"
	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/signal"
)

// Raw describes a file of what sensors sent: rows of signals, of which a stream's stage
// makes samples. The columns are the signals by their names or paths, the time and the
// label as the stream has them, and the device: that of Format, or one called device.
type Raw struct {
	Name         string       // of the stream; "": flags have its signals
	Stream       codec.Stream // has signals
	LateMessages int          // of signal.Options
	Rows         int          // that are read; 0: all
	Every        int          // only each n-th sample is returned; 0: all
	Device       *string      // of all rows; nil: that of their column
}

// Columns that a raw file has without a configuration.
var (
	timeColumns  = []string{"t", "ts", "time", "timestamp", "Time", "Timestamp", "TIMESTAMP", "datetime", "created_at", "_time", "last_changed"}
	deviceColumn = "device"
)

// Tally counts the rows of a raw file, by their use.
type Tally struct {
	Rows, Devices, Samples     uint64
	Late, Gaps, Thin, Mixed    uint64
	Refused, Crowded, Unvalued uint64
	SetBack, Evicted           uint64
	Windows                    bool   // the samples are windows
	Times                      string // describes times that may be no seconds, with a command that makes seconds of them
	Sparse                     string // describes labels that few rows have, with a command that gives them to the others
}

// Unlabelled returns the error of a raw file none of whose samples has a label.
func (t Tally) Unlabelled(path string) error {
	remedy := ""
	if t.Sparse != "" {
		remedy = "; " + t.Sparse
	} else if t.Mixed > 0 {
		remedy = "; mixed windows have several labels: a shorter window.length, or window.label: majority"
	}
	return fmt.Errorf("%s: %w with a label: %s%s", path, ErrNoSample, t, remedy)
}

// String returns the tally as edge windows prints it. Of the rarer counts it has those above 0.
func (t Tally) String() string {
	what := "sample"
	if t.Windows {
		what = "window"
	}
	text := fmt.Sprintf("%s, %s: %s (%d late, %s, %d thin, %d mixed", terminal.Count(t.Rows, "row"), terminal.Count(t.Devices, "device"),
		terminal.Count(t.Samples, what), t.Late, terminal.Count(t.Gaps, "gap"), t.Thin, t.Mixed)
	for _, more := range []struct {
		n    uint64
		word string
	}{{t.Refused, "refused"}, {t.Unvalued, "without a value"}, {t.Crowded, "beyond max_rows"}, {t.SetBack, "clocks set back"}, {t.Evicted, "devices evicted"}} {
		if more.n > 0 {
			text += fmt.Sprintf(", %d %s", more.n, more.word)
		}
	}
	text += ")"
	if 4*t.Late > t.Rows {
		text += "; late rows are not after the row before of their device: --device names its column; a rate in the configuration, with --ignore of the times, spaces rows whose times are too coarse"
	}
	if t.Times != "" {
		text += "; " + t.Times
	}
	return text
}

// source is an input of the stage: the columns of its signals.
type source struct {
	decoder *codec.Decoder
	columns []int  // of each configured signal
	words   []bool // it has words of its own
	cells   []string
	labels  bool // the label of a row is its own
	sent    bool // the row has a value of it
}

// layout is the meaning of the columns of a raw file; −1 where there is none.
type layout struct {
	sources             []source
	time, device, label int
	ignored             []int // columns
}

// signalColumn returns the column of a signal: that of its name, or that of its path.
func signalColumn(names []string, of codec.Stream, signal string) int {
	if i := indexOf(names, signal); i >= 0 {
		return i
	}
	if path := of.Fields[signal]; path != "" {
		return indexOf(names, codec.PlainName(path))
	}
	return -1
}

// takes reports whether a file with these columns is one of signals. One that has the
// features of the stage, or of a model, has finished samples. A file with neither is an
// error.
func (r *Raw) takes(path string, names []string, f Format) (bool, error) {
	var signals, lacking []string
	for _, of := range r.Stream.Sources() {
		for _, name := range of.Stage.Signals {
			signals = append(signals, name)
			if signalColumn(names, of, name) < 0 {
				lacking = append(lacking, name)
			}
		}
	}
	features := f.Features
	if features == nil {
		features = r.Stream.FeatureNames()
	}
	finished, made := true, false
	var missing []string
	for _, name := range features {
		if !contains(names, name) {
			finished = false
			missing = append(missing, name)
		}
		made = made || !contains(signals, name)
	}
	switch {
	case finished && (made || len(lacking) > 0), f.Columns != nil:
		return false, nil
	case len(lacking) == 0:
		return true, nil
	case names != nil && r.Name == "":
		return false, fmt.Errorf("%s:1: no column is called %s; the columns are %s", path, listed(lacking), listed(names))
	case names == nil:
		return false, fmt.Errorf("%s: no header line names the columns; signals are found by name: want %s; sed '1i NAME,NAME,…' FILE >FILE.csv writes such a line", path, listed(signals))
	}
	return false, fmt.Errorf("%s:1: the file has neither the signals of stream %s, of which these have no column: %s; nor the features of its samples, of which these have none: %s; the columns are %s",
		path, r.Name, listed(lacking), listed(missing), listed(names))
}

// layout finds the columns of a raw file.
func (r *Raw) layout(path string, names []string, f Format) (l layout, err error) {
	c := chooser{path: path, names: names, width: len(names)}
	parts := r.Stream.Sources()
	ownTime, ownLabel := codec.PlainName(parts[0].Time), ""
	for _, of := range parts {
		ownLabel = cmp.Or(ownLabel, codec.PlainName(of.Label))
	}
	decoder, err := codec.NewDecoder(r.Stream)
	if err != nil {
		return l, err
	}
	inputs := r.Stream.StageOptions().Inputs
	for i, of := range parts {
		s := source{decoder: decoder, labels: codec.PlainName(of.Label) == ownLabel}
		if ownLabel == "" { // they come otherwise: each of a row
			s.labels = len(r.Stream.Stage.Hold.On) == 0 || inputs == nil || inputs[i].On
		}
		if inputs := decoder.Inputs(); len(inputs) > 0 {
			s.decoder = inputs[i]
		}
		for _, name := range of.Stage.Signals {
			rule, at := of.Raw.Values[name], signalColumn(names, of, name)
			if contains(names[at+1:], names[at]) {
				return l, fmt.Errorf("%s:1: two columns are called %s, a signal: rename the one that is none", path, field.Quote(names[at]))
			}
			s.columns = append(s.columns, at)
			s.words = append(s.words, len(rule.Map)+len(rule.OneHot) > 0)
		}
		s.cells = make([]string, len(s.columns))
		l.sources = append(l.sources, s)
	}
	if l.ignored, err = c.find("--ignore", f.Ignore); err != nil {
		return l, err
	}
	if l.time, err = c.oneOr("--time", f.Time, append([]string{ownTime}, timeColumns...)...); err != nil {
		return l, err
	}
	if l.device, err = c.oneOr("--device", f.Device, deviceColumn); err != nil {
		return l, err
	}
	for _, at := range []*int{&l.time, &l.device} {
		if slices.Contains(l.ignored, *at) {
			*at = -1
		}
	}
	if l.label, err = c.oneOr("--label", f.Label, ownLabel, codec.DefaultStream().Label); err != nil {
		return l, err
	}
	if l.label < 0 && !f.Unlabeled {
		return l, fmt.Errorf("%s:1: no column is called %s: --label names that of the labels", path, cmp.Or(ownLabel, codec.DefaultStream().Label))
	}
	for _, s := range l.sources {
		if at := slices.IndexFunc(s.columns, func(i int) bool { return i == l.time || i == l.device || i == l.label }); at >= 0 {
			return l, fmt.Errorf("%s: %s is a signal, and the time, the device or the label as well", path, c.word(s.columns[at]))
		}
	}
	return l, r.checkTime(path, l.time)
}

// needs begins an error about times that are missing: the use that needs them.
func (r *Raw) needs() string {
	if r.Name == "" {
		return "windows by time need"
	}
	return "stream " + r.Name + " needs"
}

// checkTime returns an error if a stage needs times and the file has none; it names the use.
func (r *Raw) checkTime(path string, column int) error {
	c := r.Stream.StageConfig()
	switch rate := r.Stream.Raw.Rate.Hz; {
	case column >= 0:
		if c.Window.Length.Message && r.pause() == 0 {
			return fmt.Errorf("%s: window.length: message: a file has no messages; its rows are those of one message until a silence of window.max_gap, or of ten rows with rate: give one of them", path)
		}
		return nil
	case rate > 0 && !c.Window.Length.Message && len(c.Calendar) == 0:
		return nil // a row every 1/rate
	case c.Window.Length.Time > 0 || c.Window.Length.Message || c.Hold.Every > 0 || len(c.Calendar) > 0 || len(c.Derive) > 0:
		names := timeColumns
		if own := codec.PlainName(r.Stream.Time); !contains(names, own) {
			names = append([]string{own}, names...)
		}
		return fmt.Errorf("%s:1: no column has the time, which %s: want one called %s; or --time names the one that has it", path, r.needs(), strings.Join(names, ", "))
	}
	return nil
}

// checkUntimed returns an error if a row has a date and time in a column without a meaning: the
// rows of a file without times and rate would follow each other without their silences.
func (d *File) checkUntimed(record []string) error {
	l := &d.raw.layout
	for i, cell := range record {
		used := i == l.device || i == l.label || slices.Contains(l.ignored, i) || slices.ContainsFunc(l.sources, func(s source) bool { return slices.Contains(s.columns, i) })
		if cell = strings.TrimSpace(cell); !used && csvtext.IsTime(cell) {
			return d.at(i, fmt.Sprintf("column %s: %s is a time, and the column is called otherwise than that of the times: give --time %s, or drop it if rows follow each other evenly", d.column(i), field.Quote(cell), d.flagWord(i)))
		}
	}
	return nil
}

// pause returns the silence in ns that ends a piece of a recording; 0 where it is not
// known.
func (r *Raw) pause() int64 {
	c := r.Stream.StageConfig()
	if c.Window.Length.Message {
		c.Window.Length = signal.Span{Rows: 2}
		if c.Window.MaxGap == 0 && r.Stream.Raw.Rate.Hz == 0 {
			return 0
		}
	} else if !c.Window.Length.Set() {
		c.Window.Length = signal.Span{Rows: 2} // for its default
	}
	return int64(c.Gap(r.Stream.Raw.Rate.Hz))
}
