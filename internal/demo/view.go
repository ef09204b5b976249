package demo

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"edge/internal/report"
	"edge/internal/terminal"
	"edge/online"
	"edge/stream"
)

// view shows the figures of a running demo: lines that are rewritten on a
// terminal, one line every plainEvery elsewhere.
type view struct {
	out     io.Writer
	live    bool // out is a terminal
	muted   bool // print nothing
	sensors *sensors
	start   time.Time
	drawn   int       // lines that the next update rewrites
	errors  []float64 // of the window, for the sparkline
	last    uint64    // samples at the last update
	at      time.Time // of the last update
	rate    float64   // samples a second, smoothed

	mu          sync.Mutex
	predictions []*stream.Prediction // latest last
}

const (
	updateEvery      = 250 * time.Millisecond
	plainEvery       = 2 * time.Second
	keptErrors       = 1024 // for the sparkline; when full, every other one is dropped
	shownPredictions = 5
	sparkWidth       = 40
	viewWidth        = 78
)

// newView returns the view of sensors on out.
func newView(out io.Writer, s *sensors) *view {
	return &view{out: out, live: terminal.IsTerminal(out), sensors: s, start: time.Now(), at: time.Now()}
}

// predicted stores a prediction. The daemon calls it; it does not wait.
func (v *view) predicted(p *stream.Prediction) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.predictions) == shownPredictions {
		v.predictions = append(v.predictions[:0], v.predictions[1:]...)
	}
	kept := new(stream.Prediction)
	p.CopyTo(kept)
	v.predictions = append(v.predictions, kept)
}

// begin prints the addresses of broker and page.
func (v *view) begin(broker, page string) {
	if v.muted {
		return
	}
	port := broker[strings.LastIndex(broker, ":")+1:]
	fmt.Fprintf(v.out, "edge demo: %s, %d features, %d classes; broker on %s\n", v.sensors.name, len(v.sensors.features), len(v.sensors.classes), broker)
	if v.sensors.rows == nil {
		fmt.Fprintf(v.out, "raw signals: %d rows a second of x, y, z; %d rows become a sample\n", vibrationRate, windowRows)
	}
	if page != "" {
		hint := ""
		if v.sensors.labels < 1 {
			hint = fmt.Sprintf(" (%.0f %% of the samples bring their label; label others there)", 100*v.sensors.labels)
		}
		fmt.Fprintf(v.out, "look at it: %s%s\n", page, hint)
	}
	fmt.Fprintf(v.out, "watch it: mosquitto_sub -p %s -t 'edge/#' -v    end it: Ctrl-C\n", port)
}

// update shows a status.
func (v *view) update(s *online.Status) {
	if v.muted || !v.live && time.Since(v.at) < plainEvery {
		return
	}
	v.measure(s.Scores.N)
	v.draw(s)
}

// draw prints a status, on a terminal over the previous one.
func (v *view) draw(s *online.Status) {
	if !v.live {
		fmt.Fprintln(v.out, v.plain(s))
		return
	}
	if s.Scores.Window.N > 0 {
		v.errors = append(v.errors, s.Scores.Window.Error)
	}
	if len(v.errors) == keptErrors {
		for i := range keptErrors / 2 {
			v.errors[i] = v.errors[2*i+1]
		}
		v.errors = v.errors[:keptErrors/2]
	}
	var b strings.Builder
	if v.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", v.drawn) // up, and clear to the end of the screen
	}
	lines := v.lines(s)
	v.drawn = len(lines)
	for _, line := range lines {
		if runes := []rune(line); len(runes) > viewWidth {
			line = string(runes[:viewWidth-1]) + "…"
		}
		b.WriteString(line + "\n")
	}
	io.WriteString(v.out, b.String())
}

// measure updates the rate, smoothed over a few updates.
func (v *view) measure(samples uint64) {
	now := time.Now()
	if d := now.Sub(v.at).Seconds(); d > 0.1 {
		rate := float64(samples-v.last) / d
		if v.rate == 0 {
			v.rate = rate
		}
		v.rate += (rate - v.rate) * min(1, d)
		v.last, v.at = samples, now
	}
}

// plain returns a status on one line.
func (v *view) plain(s *online.Status) string {
	sc, last := s.Scores, s.Scores.Window
	line := fmt.Sprintf("%3.0fs  %6d samples  %5.0f/s  error %s (last %d: %s)  log loss %s",
		time.Since(v.start).Seconds(), sc.N, v.rate, report.Figure(sc.N, "%.3f", sc.Error), last.N, report.Figure(last.N, "%.3f", last.Error), report.Figure(sc.N, "%.3f", sc.NLL))
	v.mu.Lock()
	defer v.mu.Unlock()
	if n := len(v.predictions); n > 0 {
		line += "  " + predictionWords(v.predictions[n-1])
	}
	return line
}

// lines returns a status for a terminal.
func (v *view) lines(s *online.Status) []string {
	sc := s.Scores
	lines := []string{
		"",
		fmt.Sprintf("%5.0f s   %d samples, %.0f a second; %d steps learnt", time.Since(v.start).Seconds(), sc.N, v.rate, s.Counters.Steps),
		fmt.Sprintf("error     %s    last %d: %s   %s", report.Figure(sc.N, "%.3f", sc.Error), sc.Window.N, report.Figure(sc.Window.N, "%.3f", sc.Window.Error), terminal.Sparkline(v.errors, sparkWidth)),
		fmt.Sprintf("log loss  %s    last %d: %s", report.Figure(sc.N, "%.3f", sc.NLL), sc.Window.N, report.Figure(sc.Window.N, "%.3f", sc.Window.NLL)),
		"",
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.predictions {
		lines = append(lines, "  "+predictionWords(p))
	}
	return lines
}

// predictionWords returns a prediction in short.
func predictionWords(p *stream.Prediction) string {
	if p.Class < 0 {
		return p.ID + ": no class known yet"
	}
	words := fmt.Sprintf("%s: %s with %.2f", p.ID, p.Classes[p.Class], p.Probs[p.Class])
	switch {
	case p.Label == "":
		return words
	case p.Label == p.Classes[p.Class]:
		return words + ", right"
	}
	return words + ", was " + p.Label
}

// end shows the last status; later output goes below it.
func (v *view) end(s *online.Status) {
	if !v.muted {
		v.draw(s)
		fmt.Fprintln(v.out)
	}
}
