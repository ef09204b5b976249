package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
	paint         func(style textStyle, text string) string
}

// textStyle is the emphasis of a text.
type textStyle int

const (
	plainStyle textStyle = iota
	titleStyle
	faintStyle
	goodStyle
	badStyle
	chosenStyle
)

// unpainted returns a text without style.
func unpainted(_ textStyle, text string) string { return text }

const (
	minWidth        = 40
	minLowerLines   = 4
	maxLowerLines   = 14
	minSampleLines  = 2
	plainSamples    = 8  // where the height has no bound
	figureColumns   = 10 // of a figure's name
	cellColumns     = 6  // of a count in the confusion matrix
	nameColumns     = 10 // of a class beside it
	maxClassColumns = 14 // of a class in the list of samples
)

// segment is a part of a line.
type segment struct {
	style textStyle
	text  string
}

// row joins the segments that fit into the width by two spaces.
func (p *layout) row(segments ...segment) string {
	var b strings.Builder
	used := 0
	for _, s := range segments {
		if s.text == "" {
			continue
		}
		gap := "  "
		if used == 0 {
			gap = ""
		}
		text := fit(s.text, p.width-used-len(gap))
		if text == "" {
			break
		}
		b.WriteString(gap + p.paint(s.style, text))
		used += len(gap) + columns(text)
	}
	return b.String()
}

// lines returns the lines of v.
func (p *layout) lines(v *view) []string {
	p.width = max(p.width, minWidth)
	lines := []string{p.title(v)}
	if len(v.Models) == 0 {
		lines = append(lines, "", p.row(segment{plainStyle, "no message of its models yet"}), "")
		return p.finish(append(lines, p.events(v, p.rest(len(lines)), p.width)...))
	}
	p.model = min(p.model, len(v.Models)-1)
	m := &v.Models[p.model]
	lines = append(append(lines, p.figures(v, m)...), "")
	samples, lower := plainSamples, min(len(m.Classes)+2, maxLowerLines)
	if p.height > 0 {
		room := p.rest(len(lines)) - 2 // without the samples' heading and the line after them
		lower = max(min(max(lower, minLowerLines), room-minSampleLines, room/2), 0)
		samples = max(room-lower, 0)
	}
	lines = append(append(lines, p.samples(m, samples)...), "")
	return p.finish(append(lines, p.lower(v, m, max(lower, minLowerLines))...))
}

// rest returns the number of lines that may follow the used ones.
func (p *layout) rest(used int) int {
	if p.height == 0 {
		return maxLowerLines
	}
	return max(p.height-used-len(p.last), 0)
}

// finish appends the last lines at the bottom.
func (p *layout) finish(lines []string) []string {
	if p.height > 0 {
		room := max(p.height-len(p.last), 0)
		lines = lines[:min(len(lines), room)]
		for len(lines) < room {
			lines = append(lines, "")
		}
	}
	return append(lines, p.last...)
}

func (p *layout) title(v *view) string {
	state := segment{badStyle, v.State}
	switch {
	case !v.Connected:
		state.text = "no connection to the broker"
	case v.State == "online":
		state.style = goodStyle
	case v.State == "":
		state.text = "state unknown: is the node's name right, and may this user read its topics?"
	}
	segments := []segment{{titleStyle, "edge top"}, {titleStyle, v.Node}, state}
	if p.paused {
		segments = append(segments, segment{chosenStyle, "paused"})
	}
	if v.Started != nil && v.State == "online" {
		segments = append(segments, segment{faintStyle, "up " + terminal.Duration(v.Time.Sub(*v.Started))})
	}
	return p.row(append(segments, segment{faintStyle, strings.TrimSpace(v.Version + " " + v.Arch)})...)
}

// figures returns the figures of a model and of the node, with the courses.
func (p *layout) figures(v *view, m *modelView) []string {
	model := []segment{{plainStyle, "model"}}
	for i := range v.Models {
		as, name := faintStyle, v.Models[i].Model
		if i == p.model && len(v.Models) > 1 {
			as, name = chosenStyle, "["+name+"]"
		}
		model = append(model, segment{as, name})
	}
	if !m.Learning {
		model = append(model, segment{badStyle, "learning is off"})
	}
	if m.Received && !m.WarmedUp {
		model = append(model, segment{faintStyle, "warming up"})
	}
	if m.Beats != nil && !*m.Beats {
		model = append(model, segment{badStyle, "no better than a baseline"})
	}
	now := []segment{
		{plainStyle, fmt.Sprintf("%d samples judged", m.N)}, {plainStyle, number(m.Rate, "%.1f") + " predictions/s"},
		{plainStyle, fmt.Sprintf("%d wait for a label", m.Pending)}, {faintStyle, "ece " + number(m.ECE, "%.3f")},
	}
	course := func(name string, all, window score.Real, of func(*report.CoursePoint) float64) string {
		head := fmt.Sprintf("%-*s%s   last %d: %s   ", figureColumns, name, number(all, "%.3f"), m.Window.N, number(window, "%.3f"))
		values := make([]float64, len(m.Course))
		for i := range values {
			values[i] = of(&m.Course[i])
		}
		return p.row(segment{plainStyle, head + terminal.Sparkline(values, max(p.width-columns(head), 0))})
	}
	lines := []string{
		p.row(model...), p.row(now...),
		course("error", m.Error, m.Window.Error, func(c *report.CoursePoint) float64 { return c.WindowError }),
		course("log loss", m.LogLoss, m.Window.LogLoss, func(c *report.CoursePoint) float64 { return c.WindowLogLoss }),
	}
	if head := fmt.Sprintf("%-*s%s/s   ", figureColumns, "rate", number(m.Rate, "%.1f")); len(m.Rates) > 0 {
		lines = append(lines, p.row(segment{plainStyle, head + terminal.Sparkline(m.Rates, max(p.width-columns(head), 0))}))
	}
	if h := v.Health; h != nil {
		lines = append(lines, p.row(healthSegments(h)...))
	}
	return lines
}

func healthSegments(h *healthView) []segment {
	rejected, dropped := uint64(0), uint64(0)
	for _, n := range h.Rejected {
		rejected += n
	}
	for cause, n := range h.Dropped {
		if cause != "frozen" && cause != "values" { // not losses of a queue
			dropped += n
		}
	}
	trouble := func(n uint64) textStyle {
		if n > 0 {
			return badStyle
		}
		return plainStyle
	}
	queued := 0
	for _, n := range h.Queues {
		queued += n
	}
	segments := []segment{
		{plainStyle, fmt.Sprintf("%d received", h.Received)}, {plainStyle, fmt.Sprintf("%d learnt", h.Learned)},
		{trouble(rejected), fmt.Sprintf("%d refused", rejected)}, {trouble(dropped), fmt.Sprintf("%d dropped", dropped)},
		{plainStyle, fmt.Sprintf("%d queued", queued)}, {faintStyle, "memory " + terminal.Bytes(h.RSS)}, {faintStyle, "state " + terminal.Bytes(h.StoreBytes)},
	}
	if h.Status != "ok" {
		segments = append([]segment{{badStyle, terminal.Plain(h.Status)}}, segments...)
	}
	return segments
}

// samples returns the last n samples, newest first, below a heading.
func (p *layout) samples(m *modelView, n int) []string {
	device := false
	for i := range m.Samples {
		device = device || m.Samples[i].Device != ""
	}
	class := len("class")
	for _, c := range m.Classes {
		class = min(max(class, columns(c)), maxClassColumns)
	}
	const time, sure, novelty, label = len("15:04:05"), len("conf."), len("novelty"), len("came with it")
	names := p.width - (2 + time + 2 + 2 + class + 2 + sure + 2 + novelty + 2 + label)
	id, from := max(names, 8), 0
	if device {
		from = max(names/3, 6)
		id = max(names-from-2, 8)
	}
	line := func(as textStyle, mark, at, name, device_, class_, sure_, novelty_, label_ string) string {
		text := mark + " " + at + "  " + pad(name, id)
		if device {
			text += "  " + pad(device_, from)
		}
		return p.paint(as, fit(fmt.Sprintf("%s  %s  %*s  %*s  %s", text, pad(class_, class), sure, sure_, novelty, novelty_, label_), p.width))
	}
	lines := []string{line(faintStyle, " ", "time    ", "sample", "device", "class", "conf.", "novelty", "label")}
	if len(m.Samples) == 0 {
		return append(lines, p.row(segment{faintStyle, "  none yet"}))
	}
	first := 0 // so that the chosen one is shown
	if at := slices.IndexFunc(m.Samples, func(s sampleView) bool { return s.Seq == p.selected }); at >= n {
		first = at - n + 1
	}
	for i := first; i < min(len(m.Samples), first+n); i++ {
		s := &m.Samples[i]
		as, mark := plainStyle, " "
		if s.Seq == p.selected {
			as, mark = chosenStyle, ">"
		}
		label := s.Label
		switch {
		case label != "":
		case s.Learned:
			label = "came with it"
		case s.Asked != "":
			label = "is asked for"
		}
		lines = append(lines, line(as, mark, s.Time.Format("15:04:05"), s.idText(), s.Device, cmp.Or(s.Class, "none yet"),
			fmt.Sprintf("%.3f", s.Confidence), fmt.Sprintf("%.3f", s.Novelty), label))
	}
	return lines
}

// lower returns the confusion matrix and, right of it, the events.
func (p *layout) lower(v *view, m *modelView, n int) []string {
	left := p.confusion(m, n)
	width := 0
	for _, line := range left {
		width = max(width, columns(line))
	}
	const gap = 3
	right := p.events(v, n, p.width-width-gap)
	if len(left) == 0 {
		return right
	}
	var lines []string
	for i := range max(len(left), len(right)) {
		var line string
		if i < len(left) {
			line = left[i]
		}
		if i < len(right) {
			line = pad(line, width+gap) + right[i]
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	return lines
}

// confusion returns the part of a model's confusion matrix that fits into n lines and
// three fifths of the width.
func (p *layout) confusion(m *modelView, n int) []string {
	if len(m.Confusion) == 0 || n < 3 {
		return nil
	}
	shown := min(len(m.Confusion), n-2, (p.width*3/5-nameColumns-2)/cellColumns)
	if shown < 1 {
		return nil
	}
	head := "confusion: label down, class across"
	if shown < len(m.Confusion) {
		head = fmt.Sprintf("confusion, %d of %d classes", shown, len(m.Confusion))
	}
	name := func(i int) string {
		if i < len(m.Classes) {
			return m.Classes[i]
		}
		return "?"
	}
	across := pad("", nameColumns)
	for j := range shown {
		across += " " + padLeft(fit(name(j), cellColumns-1), cellColumns-1)
	}
	lines := []string{head, across}
	for i := range shown {
		line := pad(name(i), nameColumns)
		for j := range shown {
			count := uint64(0)
			if j < len(m.Confusion[i]) {
				count = m.Confusion[i][j]
			}
			line += " " + padLeft(shortCount(count), cellColumns-1)
		}
		lines = append(lines, line)
	}
	return lines
}

// events returns the last n-1 events, newest first, below a heading.
func (p *layout) events(v *view, n, width int) []string {
	const narrowest = 16
	if n < 2 || width < narrowest {
		return nil
	}
	lines := []string{p.paint(faintStyle, fit("events", width))}
	if len(v.Events) == 0 {
		return append(lines, p.paint(faintStyle, fit("none since this program started", width)))
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
