// Package propose makes a configuration for data files: topics, features and classes, and for a file
// of signals the window whose samples are predicted best. It serves `edge config sample --from`.
package propose

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"edge/internal/dataset"
	"edge/internal/eval"
	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/signal"
)

const (
	proposeRows    = 100_000 // of a file on which lengths are tried
	proposeWindows = 2000    // of each length, at most: with fewer, long windows win that a model sees most of
	fewWindows     = 50      // below which a length has no score
)

// Config returns a configuration for what `edge replay` publishes of data files. Warnings go to
// errOut; a terminal there shows the progress.
func Config(ctx context.Context, paths []string, data *dataset.Options, errOut io.Writer) ([]byte, error) {
	signals := map[string]*signalStream{}
	for _, path := range paths {
		s, err := streamFor(ctx, path, *data, errOut)
		if err != nil {
			return nil, err
		}
		if s != nil {
			signals[path] = s
		}
	}
	return sample(ctx, paths, data, signals, errOut)
}

// streamFor returns a stream for a file of signals, with a window whose length had the
// lowest error on the beginning of the file; nil for a file of samples. A terminal at errOut
// shows the progress.
func streamFor(ctx context.Context, path string, data dataset.Options, errOut io.Writer) (*signalStream, error) {
	r, ok, err := dataset.Detect(path, data.Of(nil))
	if r.Shared {
		data.Warn(errOut, path, fmt.Sprintf("rows share times in column %s, so that they count as samples: if they are rows of signals of several devices, --device names the column of the device", field.Quote(r.Time)))
	}
	if err != nil || !ok {
		return nil, err
	}
	if none := append(r.Rising, r.Times...); len(none) > 0 {
		data.Warn(errOut, path, fmt.Sprintf("%s rises with every row, as a time or the number of the row does, or is the label in other words, and is no signal here", field.Listed(none)))
	}
	rate := 1 / r.Step.Seconds()
	lengths := []int{32, 64, 128, 256, 512, 1024}
	if r.Regular && rate < codec.MinRate || !r.Regular && r.Step > signal.MaxTime/time.Duration(lengths[0]) { // no window is long enough
		return nil, nil
	}
	s := &signalStream{Recording: r, Rate: significant(rate, 3)}
	stream := codec.DefaultStream()
	stream.Topics, stream.Time, stream.Stage.Signals = []string{"file"}, r.Time, r.Signals
	if r.Lacking {
		stream.OnMissing = codec.OnMissingMarginalise
	}
	if r.Sparse {
		stream.Stage.Hold.On = []string{"any"}
	}
	window := &stream.Stage.Window
	var words []string
	if r.Regular {
		stream.Raw.Rate.Hz = s.Rate // of which the default of max_gap follows
		for _, n := range lengths {
			words = append(words, strconv.Itoa(n))
		}
		s.Length = signal.Span{Rows: 128}
	} else {
		s.MaxGap = roundTime(30 * r.Step)
		s.Resample = roundTime(r.Step)
		for _, n := range lengths {
			if r.Step <= signal.MaxTime/time.Duration(n) {
				words = append(words, roundTime(time.Duration(n)*r.Step).String())
			}
		}
		s.Length = signal.Span{Time: roundTime(128 * r.Step)}
	}
	if !r.Labelled {
		s.Reason = "no label tells which length is right"
		return s, nil
	}
	window.MaxGap, window.Length, window.Resample = s.MaxGap, s.Length, s.Resample
	w := &eval.Windows{Data: data}
	w.Data.Raw = &dataset.Raw{Name: "of the file", Stream: stream, Rows: proposeRows}
	w.Data.Label = r.Label
	scores, err := w.Scores(ctx, path, words, proposeWindows, errOut)
	if err != nil {
		return nil, err
	}
	best, covered := -1, 0.0
	for _, score := range scores {
		covered = max(covered, score.Covered)
	}
	var tried []string
	for i, score := range scores {
		if score.Windows < fewWindows || score.Covered < covered/2 { // of the longest recordings alone
			continue
		}
		tried = append(tried, fmt.Sprintf("%s %.3f", eval.SpanText(score.Length), score.Report.Error))
		if best < 0 || score.Report.Error < scores[best].Report.Error {
			best = i
		}
	}
	if best < 0 {
		s.Length = scores[0].Length
		s.Reason = fmt.Sprintf("no length has %d windows with one label in the first %d rows: this is the shortest", fewWindows, proposeRows)
		return s, nil
	}
	s.Length = scores[best].Length
	s.Reason = fmt.Sprintf("error by length: %s; edge windows --lengths tries others", strings.Join(tried, ", "))
	return s, nil
}

// significant rounds to a number of digits.
func significant(v float64, digits int) float64 {
	text := strconv.FormatFloat(v, 'g', digits, 64)
	v, _ = strconv.ParseFloat(text, 64)
	return v
}

// roundTime rounds a time to two digits of the unit that people would take, at most that of a window.
func roundTime(d time.Duration) time.Duration {
	unit := time.Hour
	for _, u := range []time.Duration{time.Hour, time.Minute, time.Second, time.Millisecond, time.Microsecond} {
		if unit = u; d >= u {
			break
		}
	}
	n := significant(float64(d)/float64(unit), 2)
	return min(max(time.Millisecond, time.Duration(math.Round(n*float64(unit)))), signal.MaxTime)
}
