package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"edge/internal/report"
	"edge/internal/terminal"
	"edge/online/score"
)

// layout writes a view as lines of text: what `edge top` shows.
type layout struct {
	width, height int      // columns; lines, 0 for no bound
	model         int      // index of the shown one
	selected      uint64   // sequence number of a sample; 0 without a choice
	paused        bool     // the shown view is not the present one
	last          []string // lines at the bottom: a question, a note, the keys
	styles        styles
}

// styles are the emphases of a layout. The zero value leaves a text as it is.
type styles struct{ title, faint, good, bad, chosen lipgloss.Style }

// coloured returns styles of the terminal's own sixteen colours. No information is in
// the colour alone, for terminals without colours.
func coloured() styles {
	none := lipgloss.NewStyle()
	return styles{
		title: none.Bold(true), faint: none.Faint(true), good: none.Foreground(lipgloss.Green),
		bad: none.Bold(true).Foreground(lipgloss.Red), chosen: none.Reverse(true),
	}
}

const (
	minWidth        = 40
	minLowerLines   = 4
	maxLowerLines   = 14
	minSampleLines  = 2
	columnGap       = 2
	plainSamples    = 8  // where the height has no bound
	figureColumns   = 10 // of a figure's name
	cellColumns     = 6  // of a count in the confusion matrix
	nameColumns     = 10 // of a class beside it
	maxClassColumns = 14 // of a class in the list of samples
)

// segment is a part of a line.
type segment struct {
	style lipgloss.Style
	text  string
}

// row joins the segments by two spaces and cuts them to the width.
func (l *layout) row(segments ...segment) string {
	var parts []string
	for _, s := range segments {
		if s.text != "" {
			parts = append(parts, s.style.Render(s.text))
		}
	}
	return fit(strings.Join(parts, "  "), l.width)
}

// fit cuts a text to a width.
func fit(s string, width int) string { return ansi.Truncate(s, width, "…") }

// lines returns the lines of text that show v.
func (l *layout) lines(v *view) []string {
	l.width = max(l.width, minWidth)
	lines := []string{l.title(v)}
	if len(v.Models) == 0 {
		lines = append(lines, "", l.row(segment{text: "no message of its models yet"}), "")
		return l.finish(append(lines, l.events(v, l.rest(len(lines)), l.width)...))
	}
	l.model = min(l.model, len(v.Models)-1)
	m := &v.Models[l.model]
	lines = append(append(lines, l.figures(v, m)...), "")
	samples, lower := plainSamples, min(len(m.Classes)+2, maxLowerLines)
	if l.height > 0 {
		room := l.rest(len(lines)) - 2 // without the samples' heading and the line after them
		lower = max(min(max(lower, minLowerLines), room-minSampleLines, room/2), 0)
		samples = max(room-lower, 0)
	}
	lines = append(append(lines, l.samples(m, samples)...), "")
	return l.finish(append(lines, l.lower(v, m, max(lower, minLowerLines))...))
}

// rest returns the number of lines that may follow the used ones.
func (l *layout) rest(used int) int {
	if l.height == 0 {
		return maxLowerLines
	}
	return max(l.height-used-len(l.last), 0)
}

// finish appends the last lines at the bottom.
func (l *layout) finish(lines []string) []string {
	if l.height > 0 {
		room := max(l.height-len(l.last), 0)
		lines = lines[:min(len(lines), room)]
		for len(lines) < room {
			lines = append(lines, "")
		}
	}
	return append(lines, l.last...)
}

func (l *layout) title(v *view) string {
	state := segment{l.styles.bad, v.State}
	switch {
	case !v.Connected:
		state.text = "no connection to the broker"
	case v.State == "online":
		state.style = l.styles.good
	case v.State == "":
		state.text = "state unknown: is the node's name right, and may this user read its topics?"
	}
	segments := []segment{{l.styles.title, "edge top"}, {l.styles.title, v.Node}, state}
	if l.paused {
		segments = append(segments, segment{l.styles.chosen, "paused"})
	}
	if v.Started != nil && v.State == "online" {
		segments = append(segments, segment{l.styles.faint, v.uptime()})
	}
	return l.row(append(segments, segment{l.styles.faint, strings.TrimSpace(v.Version + " " + v.Arch)})...)
}

// uptime returns the time since the node's start. Before its first health that is known by its clock alone.
func (v *view) uptime() string {
	since := v.since
	if since.IsZero() {
		since = *v.Started
	}
	if up := v.Time.Sub(since); up > -time.Second {
		return "up " + terminal.Duration(up)
	}
	return "its clock is ahead"
}

// figures returns the figures of a model and of the node, with the courses.
func (l *layout) figures(v *view, m *modelView) []string {
	model := []segment{{text: "model"}}
	for i := range v.Models {
		as, name := l.styles.faint, v.Models[i].Model
		if i == l.model && len(v.Models) > 1 {
			as, name = l.styles.chosen, "["+name+"]"
		}
		model = append(model, segment{as, name})
	}
	if !m.Learning {
		model = append(model, segment{l.styles.bad, "learning is off"})
	}
	if m.Recovery != nil {
		model = append(model, segment{l.styles.faint, fmt.Sprintf("recovering, %d records to learn", *m.Recovery)})
	}
	if m.Received && !m.WarmedUp {
		model = append(model, segment{l.styles.faint, "warming up"})
	}
	if m.Beats != nil && !*m.Beats {
		model = append(model, segment{l.styles.bad, "no better than a baseline"})
	}
	now := []segment{
		{text: fmt.Sprintf("%d samples judged", m.N)}, {text: number(m.Rate, "%.1f") + " predictions/s"},
		{text: fmt.Sprintf("%d wait for a label", m.Pending)}, {l.styles.faint, "ece " + number(m.ECE, "%.3f")},
	}
	course := func(name string, all, window score.Real, of func(*report.CoursePoint) float64) string {
		head := fmt.Sprintf("%-*s%s   last %d: %s   ", figureColumns, name, number(all, "%.3f"), m.Window.N, number(window, "%.3f"))
		values := make([]float64, len(m.Course))
		for i := range values {
			values[i] = of(&m.Course[i])
		}
		return l.row(segment{text: head + terminal.Sparkline(values, max(l.width-lipgloss.Width(head), 0))})
	}
	lines := []string{
		l.row(model...), l.row(now...),
		course("error", m.Error, m.Window.Error, func(c *report.CoursePoint) float64 { return c.WindowError }),
		course("log loss", m.LogLoss, m.Window.LogLoss, func(c *report.CoursePoint) float64 { return c.WindowLogLoss }),
	}
	if head := fmt.Sprintf("%-*s%s/s   ", figureColumns, "rate", number(m.Rate, "%.1f")); len(m.Rates) > 0 {
		lines = append(lines, l.row(segment{text: head + terminal.Sparkline(m.Rates, max(l.width-lipgloss.Width(head), 0))}))
	}
	if h := v.Health; h != nil {
		lines = append(lines, l.row(l.health(h)...))
	}
	return lines
}

func (l *layout) health(h *healthView) []segment {
	rejected, dropped := uint64(0), uint64(0)
	for _, n := range h.Rejected {
		rejected += n
	}
	for cause, n := range h.Dropped {
		if cause != "frozen" && cause != "values" { // not losses of a queue
			dropped += n
		}
	}
	trouble := func(n uint64) lipgloss.Style {
		if n > 0 {
			return l.styles.bad
		}
		return lipgloss.NewStyle()
	}
	queued := 0
	for _, n := range h.Queues {
		queued += n
	}
	segments := []segment{
		{text: fmt.Sprintf("%d received", h.Received)}, {text: fmt.Sprintf("%d learnt", h.Learned)},
		{trouble(rejected), fmt.Sprintf("%d refused", rejected)}, {trouble(dropped), fmt.Sprintf("%d dropped", dropped)},
		{text: fmt.Sprintf("%d queued", queued)}, {l.styles.faint, "memory " + terminal.Bytes(h.RSS)}, {l.styles.faint, "state " + terminal.Bytes(h.StoreBytes)},
	}
	if h.Status != "ok" {
		segments = append([]segment{{l.styles.bad, terminal.Plain(h.Status)}}, segments...)
	}
	return segments
}

// samples returns the last n samples, newest first, below a heading.
func (l *layout) samples(m *modelView, n int) []string {
	class := len("class")
	for _, c := range m.Classes {
		class = min(max(class, lipgloss.Width(terminal.Plain(c))), maxClassColumns)
	}
	// Widths of the columns: time with the mark of the chosen sample, id, device,
	// class, confidence, novelty, label.
	widths := []int{len("> 15:04:05"), 0, 0, class, len("conf."), len("novelty"), len("came with it")}
	const id, device = 1, 2
	names := l.width - columnGap*(len(widths)-2)
	for _, w := range widths {
		names -= w
	}
	widths[id] = max(names, 8)
	devices := slices.ContainsFunc(m.Samples, func(s sampleView) bool { return s.Device != "" })
	if devices {
		widths[device] = max(names/3, 6)
		widths[id] = max(names-widths[device]-columnGap, 8)
	}
	first := 0 // so that the chosen one is shown
	if at := slices.IndexFunc(m.Samples, func(s sampleView) bool { return s.Seq == l.selected }); at >= n {
		first = at - n + 1
	}
	shown := m.Samples[first:min(len(m.Samples), first+n)]
	cells := [][]string{{"  time", "sample", "device", "class", "conf.", "novelty", "label"}}
	for i := range shown {
		cells = append(cells, l.cells(&shown[i]))
	}
	if !devices {
		widths = slices.Delete(widths, device, device+1)
		for i := range cells {
			cells[i] = slices.Delete(cells[i], device, device+1)
		}
	}
	last := len(widths) - 1
	columns := make([]column, len(widths))
	for i, w := range widths {
		columns[i] = column{w, columnGap, i == last-1 || i == last-2} // novelty, confidence
	}
	columns[last].gap = 0
	var lines []string
	for i, row := range cells {
		style := l.styles.faint
		if i > 0 {
			style = lipgloss.NewStyle()
		}
		if i > 0 && shown[i-1].Seq == l.selected {
			style = l.styles.chosen
		}
		lines = append(lines, fit(tableRow(style, columns, row), l.width))
	}
	if len(m.Samples) == 0 {
		lines = append(lines, l.row(segment{l.styles.faint, "  none yet"}))
	}
	return lines
}

// cells returns a sample's line in the table of samples.
func (l *layout) cells(s *sampleView) []string {
	mark, label := "  ", terminal.Plain(s.Label)
	if s.Seq == l.selected {
		mark = "> "
	}
	switch {
	case label != "":
	case s.Learned:
		label = "came with it"
	case s.Asked != "":
		label = "is asked for"
	}
	return []string{
		mark + s.Time.Format("15:04:05"), s.idText(), terminal.Plain(s.Device), cmp.Or(terminal.Plain(s.Class), "none yet"),
		fmt.Sprintf("%.3f", s.Confidence), fmt.Sprintf("%.3f", s.Novelty), label,
	}
}

// column is a column of a table: its width, the spaces after it, and whether its cells are at its
// right edge.
type column struct {
	width, gap int
	right      bool
}

// tableRow returns a line of a table, in which a long cell is cut.
func tableRow(style lipgloss.Style, columns []column, cells []string) string {
	var line strings.Builder
	for i, c := range columns {
		cell := style.Width(c.width + c.gap).PaddingRight(c.gap)
		if c.right {
			cell = cell.Align(lipgloss.Right)
		}
		line.WriteString(cell.Render(fit(cells[i], c.width)))
	}
	return line.String()
}

// lower returns the confusion matrix and, right of it, the events.
func (l *layout) lower(v *view, m *modelView, n int) []string {
	left := l.confusion(m, n)
	if left == "" {
		return l.events(v, n, l.width)
	}
	left = lipgloss.NewStyle().PaddingRight(3).Render(left)
	right := strings.Join(l.events(v, n, l.width-lipgloss.Width(left)), "\n")
	return strings.Split(lipgloss.JoinHorizontal(lipgloss.Top, left, right), "\n")
}

// confusion returns the part of a model's confusion matrix that fits into n lines and
// three fifths of the width.
func (l *layout) confusion(m *modelView, n int) string {
	shown := min(len(m.Confusion), n-2, (l.width*3/5-nameColumns-2)/cellColumns)
	if shown < 1 {
		return ""
	}
	head := "confusion: label down, class across"
	if shown < len(m.Confusion) {
		head = fmt.Sprintf("confusion, %d of %d classes", shown, len(m.Confusion))
	}
	names := terminal.PlainAll(m.Classes[:min(shown, len(m.Classes))])
	for len(names) < shown {
		names = append(names, "?")
	}
	columns := []column{{nameColumns, 1, false}}
	for range names {
		columns = append(columns, column{cellColumns - 1, 1, true})
	}
	columns[len(names)].gap = 0
	lines := []string{head, tableRow(lipgloss.NewStyle(), columns, append([]string{""}, names...))}
	for i, name := range names {
		row := []string{name}
		for j := range shown {
			count := uint64(0)
			if j < len(m.Confusion[i]) {
				count = m.Confusion[i][j]
			}
			row = append(row, shortCount(count))
		}
		lines = append(lines, tableRow(lipgloss.NewStyle(), columns, row))
	}
	return strings.Join(lines, "\n")
}

// events returns the last n-1 events, newest first, below a heading.
func (l *layout) events(v *view, n, width int) []string {
	const narrowest = 16
	if n < 2 || width < narrowest {
		return nil
	}
	lines := []string{l.styles.faint.Render(fit("events", width))}
	if len(v.Events) == 0 {
		return append(lines, l.styles.faint.Render(fit("none since this program started", width)))
	}
	for _, e := range v.Events[:min(len(v.Events), n-1)] {
		words := e.Time.Format("15:04:05") + " " + e.Event
		for _, more := range []string{e.Model, e.Detail} {
			if more != "" {
				words += " " + more
			}
		}
		lines = append(lines, fit(words, width))
	}
	return lines
}
