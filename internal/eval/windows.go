package eval

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"edge/internal/config"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/stream/codec"
	"edge/stream/signal"
)

// Windows holds the options of edge windows.
type Windows struct {
	ConfigPath string
	Data       dataset.Options

	// Signals, Length, Hop, MaxGap and Derive are those of a stream without a
	// configuration, or replace those of the configured one; empty: as configured.
	Signals     []string
	Length, Hop string
	MaxGap      time.Duration
	Derive      []string // name=expression

	config *config.Config // nil without ConfigPath
}

// Prepare checks the options and reads the configuration.
func (w *Windows) Prepare() error {
	if err := w.Data.Check(); err != nil {
		return exit.With(exit.Usage, err)
	}
	raw := &dataset.Raw{Stream: codec.DefaultStream()}
	raw.Stream.Topics = []string{"file"}
	if w.ConfigPath != "" {
		c, err := config.Load(w.ConfigPath)
		if err != nil {
			return err
		}
		w.config = c
		if raw, err = dataset.RawOf(c, w.Data.Stream); err != nil {
			return exit.With(exit.Usage, err)
		}
		if raw == nil {
			return exit.With(exit.Config, fmt.Errorf("%s: no stream has signals, of which windows are made", w.ConfigPath))
		}
	} else if len(w.Signals) == 0 {
		return exit.With(exit.Usage, errors.New("-c names a configuration with a stream that has signals; or --signals their columns"))
	}
	if err := w.apply(&raw.Stream); err != nil {
		return exit.With(exit.Usage, err)
	}
	w.Data.Raw, w.Data.Unlabeled = raw, true
	if w.config != nil {
		w.Data.SetTopicLabels(w.config, "", raw.Name)
	}
	return nil
}

// apply sets the flags in the configuration of a stream.
func (w *Windows) apply(s *codec.Stream) error {
	if len(w.Signals) > 0 {
		s.Stage.Signals, s.Raw.Inputs = w.Signals, nil
	}
	for _, text := range w.Derive {
		name, formula, ok := strings.Cut(text, "=")
		if !ok {
			return fmt.Errorf("--derive %s: want NAME=EXPRESSION, such as p=log10(1+power)", text)
		}
		*s.Stage.Derive.Entry(strings.TrimSpace(name)).(*string) = strings.TrimSpace(formula)
	}
	for _, flag := range []struct {
		name, text string
		to         *signal.Span
	}{{"--length", w.Length, &s.Stage.Window.Length}, {"--hop", w.Hop, &s.Stage.Window.Hop}} {
		if flag.text == "" {
			continue
		}
		if err := flag.to.UnmarshalText([]byte(flag.text)); err != nil {
			return fmt.Errorf("%s %w", flag.name, err)
		}
		if flag.name == "--length" {
			s.Stage.Window.Hop = signal.Span{}
		}
	}
	if w.MaxGap != 0 {
		s.Stage.Window.MaxGap = w.MaxGap
	}
	return s.Validate()
}

// Print writes the samples of a file as CSV, and the tally of its rows to errOut. The samples do not tell that
// their windows share rows, so that errOut has that as well.
func (w *Windows) Print(ctx context.Context, path string, in io.Reader, out, errOut io.Writer) error {
	var tally dataset.Tally
	err := await(ctx, func() (err error) { tally, err = w.print(path, in, out); return err })
	if errors.Is(err, ErrInterrupted) {
		return fmt.Errorf("windows: %w", err)
	}
	if err != nil {
		return err
	}
	if c := w.Data.Raw.Stream.StageConfig(); c.Overlaps() {
		fmt.Fprintf(errOut, "a window of %s begins every %s: it shares rows with the one before, so that scores of these samples are too good; --hop %s makes windows that share none, and edge eval split --split device holds out whole devices\n",
			spanWords(c.Window.Length), spanWords(c.Hop()), c.Window.Length)
	}
	fmt.Fprintln(errOut, tally)
	return nil
}

// print writes the samples of a file.
func (w *Windows) print(path string, in io.Reader, out io.Writer) (tally dataset.Tally, err error) {
	to := bufio.NewWriter(out)
	lines := csv.NewWriter(to)
	format := w.Data.Of(nil)
	format.Idle = func() { lines.Flush(); to.Flush() } // an error occurs again at the end
	d, err := dataset.OpenInput(path, in, format)
	if err != nil {
		return tally, err
	}
	defer d.Close()
	if !d.Raw() {
		return tally, fmt.Errorf("%s: the file has the features of finished samples", path)
	}
	if err := lines.Write(slices.Concat(dataset.OriginColumns, d.Features, []string{"label"})); err != nil {
		return tally, err
	}
	var row dataset.Row
	var cells []string
	for {
		err := d.Next(&row)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			lines.Flush()
			return tally, errors.Join(err, to.Flush())
		}
		from := d.Origin()
		cells = append(cells[:0], from.ID, signal.Seconds(from.Time), from.Device)
		for _, v := range row.X {
			text := ""
			if !math.IsNaN(v) {
				text = strconv.FormatFloat(v, 'g', -1, 64)
			}
			cells = append(cells, text)
		}
		if err := lines.Write(append(cells, row.Label)); err != nil {
			return tally, err
		}
	}
	lines.Flush()
	return d.Tally(), errors.Join(lines.Error(), to.Flush())
}
