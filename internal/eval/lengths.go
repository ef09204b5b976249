package eval

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/report"
	"edge/internal/terminal"
	"edge/online"
	"edge/online/active"
	"edge/stream/field"
	"edge/stream/signal"
)

// LengthScore is the result of learning windows of one length.
type LengthScore struct {
	Length, Hop signal.Span
	Windows     int            // that were learnt
	Covered     float64        // rows, or seconds, that all windows take, each counted once
	Report      *report.Report // nil: no window
}

// Scores learns the windows of each length, in their order and without the order of
// labels, by a new model without known classes. The ratio of hop and length is that of the
// configuration. With most above 0 only each n-th window is learnt, so that there are at
// most as many of each length, from the whole file. errOut gets the progress.
func (w *Windows) Scores(ctx context.Context, path string, lengths []string, most int, errOut io.Writer) ([]LengthScore, error) {
	base := w.Data.Raw.Stream.StageConfig()
	ratio := 0.5
	if length, hop := base.Window.Length, base.Hop(); length.Rows > 0 {
		ratio = float64(hop.Rows) / float64(length.Rows)
	} else if length.Time > 0 {
		ratio = float64(hop.Time) / float64(length.Time)
	}
	learnt, err := w.learner()
	if err != nil {
		return nil, err
	}
	spans := make([]signal.Span, len(lengths))
	for i, text := range lengths {
		if err := spans[i].UnmarshalText([]byte(text)); err != nil || !spans[i].Set() || spans[i].Message {
			return nil, exit.With(exit.Usage, fmt.Errorf("--lengths %s: want numbers of rows or times, such as 1s,2s,4s", text))
		}
	}
	var all []LengthScore
	for i, text := range lengths {
		length, raw := spans[i], *w.Data.Raw
		window := &raw.Stream.Stage.Window
		window.Length = length
		window.Hop = signal.Span{Rows: int(math.Round(ratio * float64(length.Rows))), Time: time.Duration(ratio * float64(length.Time)).Round(time.Millisecond)}
		if length.Time == 0 {
			window.Resample = 0
		}
		if err := raw.Stream.Validate(); err != nil {
			return nil, exit.With(exit.Usage, fmt.Errorf("--lengths %s: %w", text, err))
		}
		e := New()
		e.Data = w.Data
		e.Data.Raw, e.Data.Unlabeled = &raw, false
		e.Mixing.Temporal, e.Undeclared = online.TemporalOff, true
		e.config, e.learnt, e.Arrival.OnMissing = w.config, learnt, raw.Stream.OnMissing
		e.progress, e.title = errOut, fmt.Sprintf("windows of %s (%d of %d)", SpanText(length), i+1, len(lengths))
		score := LengthScore{Length: length, Hop: window.Hop}
		if most > 0 {
			columns, err := summarize(ctx, path, e.Data.Of(nil))
			if err != nil && !errors.Is(err, dataset.ErrNoSample) {
				return nil, err
			}
			raw.Every = (columns.Rows + most - 1) / most
			score.Covered = float64(columns.Rows) * (float64(window.Hop.Rows) + window.Hop.Time.Seconds())
		}
		score.Report, err = e.file(ctx, path, active.Config{}, io.Discard)
		switch {
		case errors.Is(err, ErrInterrupted):
			return nil, fmt.Errorf("windows: %w", err)
		case errors.Is(err, dataset.ErrNoSample):
			err = nil
		case err == nil:
			score.Windows = int(score.Report.Samples)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, score)
	}
	return all, nil
}

// learner returns the configuration of the first model of the stream; the default one
// without any.
func (w *Windows) learner() (online.Config, error) {
	if w.config != nil {
		for _, name := range field.Names(w.config.Models) {
			m := w.config.Models[name]
			if !slices.Contains(m.Streams, w.Data.Raw.Name) {
				continue
			}
			cfg, err := w.config.Learner(name)
			if len(m.Features) == 0 {
				cfg.Features = w.Data.Raw.Stream.FeatureNames()
			}
			return cfg, err
		}
	}
	cfg := online.DefaultConfig()
	cfg.Inducing = 0
	return cfg, nil
}

// PrintLengths writes a table of scores by length.
func PrintLengths(out io.Writer, scores []LengthScore) error {
	t := new(strings.Builder)
	fmt.Fprintln(t, "length\thop\twindows\terror\tnll\tmacro-f1\t")
	for _, s := range scores {
		fmt.Fprintf(t, "%s\t%s\t%d\t", SpanText(s.Length), SpanText(s.Hop), s.Windows)
		if s.Report == nil {
			fmt.Fprintln(t, "–\t–\t–\t")
			continue
		}
		fmt.Fprintf(t, "%.4f\t%.4f\t%.4f\t\n", s.Report.Error, s.Report.NLL, s.Report.MacroF1)
	}
	return terminal.Table(out, t.String())
}

// SpanText returns a span for people, 5m in place of 5m0s.
func SpanText(s signal.Span) string {
	text := s.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
