package top

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rivo/uniseg"

	"edge/internal/report"
	"edge/internal/terminal"
	"edge/online/score"
)

// panel writes a boardView as lines of text: what `edge top` shows.
type panel struct {
	width, height int      // columns; lines, 0 for as many as there is to say
	model         int      // which one is shown
	selected      uint64   // sample, by its sequence number; 0 for none
	paused        bool     // what is shown is not of this moment
	last          []string // lines below the rest: a question, a note, the keys
	paint         func(look look, text string) string
}

// look is the part that a text plays.
type look int

const (
	plainLook look = iota
	titleLook
	faintLook
	goodLook
	badLook
	chosenLook
)

// unpainted leaves a text as it is.
func unpainted(_ look, text string) string { return text }

const (
	minPanelWidth  = 40
	minLowerLines  = 4
	maxLowerLines  = 14
	minSampleLines = 2
	plainSamples   = 8  // where the height has no bound
	figureColumns  = 10 // of a figure's name
	cellColumns    = 6  // of a count in the confusion matrix
	nameColumns    = 10 // of a class beside it
	maxPanelClass  = 14 // of a class in the list of samples
)

// segment is a part of a line.
type segment struct {
	look look
	text string
}

// row joins segments by two spaces, as many as the width has room for.
func (p *panel) row(segments ...segment) string {
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
		b.WriteString(gap + p.paint(s.look, text))
		used += len(gap) + columns(text)
	}
	return b.String()
}

// lines are the panel of v.
func (p *panel) lines(v *boardView) []string {
	p.width = max(p.width, minPanelWidth)
	lines := []string{p.title(v)}
	if len(v.Models) == 0 {
		lines = append(lines, "", p.row(segment{plainLook, "nothing heard of its models yet"}), "")
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

// rest is how many lines may follow those that are there.
func (p *panel) rest(used int) int {
	if p.height == 0 {
		return maxLowerLines
	}
	return max(p.height-used-len(p.last), 0)
}

// finish puts the last lines where they belong.
func (p *panel) finish(lines []string) []string {
	if p.height > 0 {
		room := max(p.height-len(p.last), 0)
		lines = lines[:min(len(lines), room)]
		for len(lines) < room {
			lines = append(lines, "")
		}
	}
	return append(lines, p.last...)
}

func (p *panel) title(v *boardView) string {
	state := segment{badLook, v.State}
	switch {
	case !v.Connected:
		state.text = "no connection to the broker"
	case v.State == "online":
		state.look = goodLook
	case v.State == "":
		state.text = "state unknown: is the node's name right, and may this user read its topics?"
	}
	segments := []segment{{titleLook, "edge top"}, {titleLook, v.Node}, state}
	if p.paused {
		segments = append(segments, segment{chosenLook, "paused"})
	}
	if v.Started != nil && v.State == "online" {
		segments = append(segments, segment{faintLook, "up " + terminal.Duration(v.Time.Sub(*v.Started))})
	}
	return p.row(append(segments, segment{faintLook, strings.TrimSpace(v.Version + " " + v.Arch)})...)
}

// figures are the numbers of a model and of the node, and the courses.
func (p *panel) figures(v *boardView, m *boardModelView) []string {
	model := []segment{{plainLook, "model"}}
	for i := range v.Models {
		as, name := faintLook, v.Models[i].Model
		if i == p.model && len(v.Models) > 1 {
			as, name = chosenLook, "["+name+"]"
		}
		model = append(model, segment{as, name})
	}
	if !m.Learning {
		model = append(model, segment{badLook, "learning is off"})
	}
	if m.Heard && !m.WarmedUp {
		model = append(model, segment{faintLook, "warming up"})
	}
	if m.Beats != nil && !*m.Beats {
		model = append(model, segment{badLook, "no better than a baseline"})
	}
	now := []segment{
		{plainLook, fmt.Sprintf("%d samples judged", m.N)}, {plainLook, number(m.Rate, "%.1f") + " predictions/s"},
		{plainLook, fmt.Sprintf("%d wait for a label", m.Pending)}, {faintLook, "ece " + number(m.ECE, "%.3f")},
	}
	course := func(name string, all, window score.Real, of func(*report.CoursePoint) float64) string {
		head := fmt.Sprintf("%-*s%s   last %d: %s   ", figureColumns, name, number(all, "%.3f"), m.Window.N, number(window, "%.3f"))
		values := make([]float64, len(m.Course))
		for i := range values {
			values[i] = of(&m.Course[i])
		}
		return p.row(segment{plainLook, head + terminal.Sparkline(values, max(p.width-columns(head), 0))})
	}
	lines := []string{
		p.row(model...), p.row(now...),
		course("error", m.Error, m.Window.Error, func(c *report.CoursePoint) float64 { return c.WindowError }),
		course("log loss", m.LogLoss, m.Window.LogLoss, func(c *report.CoursePoint) float64 { return c.WindowLogLoss }),
	}
	if head := fmt.Sprintf("%-*s%s/s   ", figureColumns, "rate", number(m.Rate, "%.1f")); len(m.Rates) > 0 {
		lines = append(lines, p.row(segment{plainLook, head + terminal.Sparkline(m.Rates, max(p.width-columns(head), 0))}))
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
		if cause != "frozen" && cause != "values" { // which are not lost by a queue
			dropped += n
		}
	}
	trouble := func(n uint64) look {
		if n > 0 {
			return badLook
		}
		return plainLook
	}
	queued := 0
	for _, n := range h.Queues {
		queued += n
	}
	segments := []segment{
		{plainLook, fmt.Sprintf("%d received", h.Received)}, {plainLook, fmt.Sprintf("%d learnt", h.Learned)},
		{trouble(rejected), fmt.Sprintf("%d refused", rejected)}, {trouble(dropped), fmt.Sprintf("%d dropped", dropped)},
		{plainLook, fmt.Sprintf("%d queued", queued)}, {faintLook, "memory " + terminal.Bytes(h.RSS)}, {faintLook, "state " + terminal.Bytes(h.StoreBytes)},
	}
	if h.Status != "ok" {
		segments = append([]segment{{badLook, terminal.Plain(h.Status)}}, segments...)
	}
	return segments
}

// samples are the last n samples, newest first, below a heading.
func (p *panel) samples(m *boardModelView, n int) []string {
	device := false
	for i := range m.Samples {
		device = device || m.Samples[i].Device != ""
	}
	class := len("class")
	for _, c := range m.Classes {
		class = min(max(class, columns(c)), maxPanelClass)
	}
	const time, sure, novelty, label = len("15:04:05"), len("conf."), len("novelty"), len("came with it")
	names := p.width - (2 + time + 2 + 2 + class + 2 + sure + 2 + novelty + 2 + label)
	id, from := max(names, 8), 0
	if device {
		from = max(names/3, 6)
		id = max(names-from-2, 8)
	}
	line := func(as look, mark, at, name, device_, class_, sure_, novelty_, label_ string) string {
		text := mark + " " + at + "  " + pad(name, id)
		if device {
			text += "  " + pad(device_, from)
		}
		return p.paint(as, fit(fmt.Sprintf("%s  %s  %*s  %*s  %s", text, pad(class_, class), sure, sure_, novelty, novelty_, label_), p.width))
	}
	lines := []string{line(faintLook, " ", "time    ", "sample", "device", "class", "conf.", "novelty", "label")}
	if len(m.Samples) == 0 {
		return append(lines, p.row(segment{faintLook, "  none yet"}))
	}
	first := 0 // the chosen one is among those that are shown
	if at := slices.IndexFunc(m.Samples, func(s boardSample) bool { return s.Seq == p.selected }); at >= n {
		first = at - n + 1
	}
	for i := first; i < min(len(m.Samples), first+n); i++ {
		s := &m.Samples[i]
		as, mark := plainLook, " "
		if s.Seq == p.selected {
			as, mark = chosenLook, ">"
		}
		told := s.Label
		switch {
		case told != "":
		case s.Learned:
			told = "came with it"
		case s.Asked != "":
			told = "is asked for"
		}
		lines = append(lines, line(as, mark, s.Time.Format("15:04:05"), s.idText(), s.Device, cmp.Or(s.Class, "none yet"),
			fmt.Sprintf("%.3f", s.Confidence), fmt.Sprintf("%.3f", s.Novelty), told))
	}
	return lines
}

// lower are the confusion matrix and, right of it, the events.
func (p *panel) lower(v *boardView, m *boardModelView, n int) []string {
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

// confusion is the matrix of a model, as much of it as there is room for, in at
// most three fifths of the width.
func (p *panel) confusion(m *boardModelView, n int) []string {
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

// events are the last n-1 events, newest first, below a heading.
func (p *panel) events(v *boardView, n, width int) []string {
	const narrowest = 16
	if n < 2 || width < narrowest {
		return nil
	}
	lines := []string{p.paint(faintLook, fit("events", width))}
	if len(v.Events) == 0 {
		return append(lines, p.paint(faintLook, fit("none since this program listens", width)))
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

// number writes a score; a dash if it is not defined.
func number(v score.Real, format string) string {
	if math.IsNaN(float64(v)) {
		return "–"
	}
	return fmt.Sprintf(format, float64(v))
}

// shortCount writes a count in at most five characters.
func shortCount(n uint64) string {
	switch {
	case n < 1e5:
		return fmt.Sprint(n)
	case n < 1e7:
		return fmt.Sprintf("%dk", n/1e3)
	}
	return fmt.Sprintf("%.0fM", float64(n)/1e6)
}

// columns is the width of a text on a terminal.
func columns(s string) int { return uniseg.StringWidth(s) }

// fit cuts a text to a width.
func fit(s string, width int) string {
	if columns(s) <= width {
		return s
	}
	var b strings.Builder
	used, state := 0, -1
	for rest := s; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used+w > width-1 {
			break
		}
		b.WriteString(cluster)
		used += w
	}
	if width > 0 {
		b.WriteString("…")
	}
	return b.String()
}

// pad brings a text to a width, cut or filled up on its right.
func pad(s string, width int) string {
	s = fit(s, width)
	return s + strings.Repeat(" ", max(width-columns(s), 0))
}

func padLeft(s string, width int) string {
	return strings.Repeat(" ", max(width-columns(s), 0)) + s
}
