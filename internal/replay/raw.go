package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"edge/internal/config"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/report"
	"edge/internal/timing"
	"edge/stream/codec"
	"edge/stream/mqtt"
)

// RawSource publishes rows of signals as the sensors of a stream send them. The stage of
// the file makes the samples that a daemon makes, so that their ids and labels are known.
type RawSource struct {
	File  *dataset.File
	First int // rows; 0: all

	format dataset.Format
	routes []route
}

// openRaw opens a file of signals, by the first stream of cfg whose signals it has; nil if
// it has none of them. given is a topic in place of that of the stream.
func openRaw(src *Source, cfg *config.Config, given string) (*RawSource, error) {
	if cfg == nil {
		return nil, nil
	}
	for _, name := range cfg.SignalStreams() {
		if src.Data.Stream != "" && name != src.Data.Stream {
			continue
		}
		raw, err := dataset.RawOf(cfg, name)
		if err != nil {
			return nil, err
		}
		if raw.Device, err = deviceOf(raw.Stream, given); err != nil {
			return nil, err
		}
		format := src.Data.Of(nil)
		format.Raw, format.Unlabeled = raw, true
		format.SetTopicLabels(cfg, "", name)
		d, err := dataset.Open(src.Path, format)
		if err != nil {
			if src.Data.Stream != "" {
				return nil, err
			}
			continue
		}
		if !d.Raw() {
			d.Close()
			continue
		}
		routes, err := routesOf(raw.Stream, given)
		if err != nil {
			d.Close()
			return nil, fmt.Errorf("stream %s: %w", name, err)
		}
		return &RawSource{File: d, First: src.Selection.First, format: format, routes: routes}, nil
	}
	return nil, nil
}

// labelTopics returns filters of the topics of delayed labels: one for each input, and
// each signal with a topic of its own.
func (r *RawSource) labelTopics() (filters []string) {
	for _, of := range r.routes {
		templates := slices.Sorted(maps.Values(of.topics))
		if of.template != "" {
			templates = append(templates, of.template)
		}
		for _, t := range templates {
			filters = append(filters, strings.NewReplacer(deviceLevel, "+", codec.SignalLevel, "+").Replace(t)+"/label")
		}
	}
	return filters
}

// timed reports whether all payloads have the time of their row, from which the ids of samples
// follow.
func (r *RawSource) timed() bool {
	return r.File.Timed() && !slices.ContainsFunc(r.routes, func(of route) bool { return !of.encoder.Timed() })
}

// labelled reports whether a payload has the label of its row.
func (r *RawSource) labelled() bool {
	return slices.ContainsFunc(r.routes, func(of route) bool { return of.encoder.Labelled() })
}

const (
	unconfirmed = 400                   // rows without a sample, after which they go slowly,
	slowRows    = 50                    // so many
	slowPause   = 10 * time.Millisecond // between two pauses
)

// completed is a sample and the row that completes it.
type completed struct{ sample, row int }

// publishRaw publishes every row of signals.
func (b *playback) publishRaw(ctx context.Context) error {
	pace := clock{pacer: pacer{rate: b.Rate}, speed: b.Speed, first: -1}
	var row dataset.RawRow
	var open []completed // whose prediction is not awaited yet
	for {
		err := b.Raw.File.NextRaw(&row)
		if errors.Is(err, io.EOF) || b.Raw.First > 0 && row.Number > b.Raw.First {
			return nil
		}
		if err != nil {
			return err
		}
		awaited := -1
		for len(open) > 0 && open[0].row <= row.Number-b.Ahead {
			awaited, open = open[0].sample, open[1:]
		}
		if b.rows == 0 {
			awaited = 0 // for a daemon
		}
		if awaited >= 0 {
			if err := b.await(ctx, awaited, probeAfter); err != nil {
				return err
			}
		}
		if err := pace.waitFor(ctx, row.Time); err != nil {
			return err
		}
		if err := b.slowDown(ctx, row.Number); err != nil {
			return err
		}
		for _, s := range row.Samples {
			open = append(open, completed{b.last + 1, row.Number})
			b.expectSample(s)
		}
		if err := b.publishRawRow(ctx, &row); err != nil {
			return err
		}
		if err := b.publishLabels(ctx, b.last); err != nil {
			return err
		}
	}
}

// slowDown pauses where no prediction shows how far the daemon has come.
func (b *playback) slowDown(ctx context.Context, row int) error {
	since := row - b.sampled
	if b.Ahead == 0 || b.Speed > 0 || since < unconfirmed || since%slowRows != 0 {
		if b.Ahead > 0 && b.progress.behind() {
			return timing.Sleep(ctx, behindPause)
		}
		return nil
	}
	return timing.Sleep(ctx, slowPause)
}

// expectSample records a sample before the row that completes it is sent.
func (b *playback) expectSample(s dataset.RawSample) {
	b.last++
	b.progress.expect(s.ID, b.last)
	if b.Scores != nil {
		b.Scores.expect(b.last, b.class(s.Label))
	}
}

// publishRawRow publishes the signals of a row.
func (b *playback) publishRawRow(ctx context.Context, row *dataset.RawRow) error {
	inline := ""
	if b.Labels == LabelsInline {
		inline = row.Label
	}
	labelled := false // b.topic is one beside which the daemon takes labels
	for i := range b.Raw.routes {
		r := &b.Raw.routes[i]
		device := r.encoder.SetDevice(strings.Split(row.Device, "/"))
		var payloads []codec.Payload
		var err error
		if row.Rows != nil {
			payloads = make([]codec.Payload, 1)
			payloads[0].Data, err = r.encoder.Rows(row.Rows, row.Time, inline)
		} else if row.Cells[i] != nil {
			payloads, err = r.encoder.Row(row.Cells[i], row.Time, inline)
		}
		if err != nil {
			return err
		}
		for _, p := range payloads {
			to, err := r.topic(device, p.Signal)
			if err != nil {
				return fmt.Errorf("row %d: %w", row.Number, err)
			}
			if err := b.publisher.Publish(ctx, to, p.Data); err != nil {
				return err
			}
		}
		if to, err := r.topic(device, ""); err == nil && !labelled {
			b.topic, labelled = to, overlap(b.labelFilters, to+"/label")
		}
	}
	b.rows += max(1, len(row.Rows))
	for i, s := range row.Samples {
		b.sampled = row.Number
		switch {
		case s.Label == "":
		case b.Labels == LabelsInline:
			b.progress.labelSent()
		case b.Labels == LabelsDelayed && (b.Fraction >= 1 || b.choose.Float64() < b.Fraction):
			b.late = append(b.late, delayedLabel{row: b.last - len(row.Samples) + 1 + i, at: time.Now().Add(b.Delay.Time), label: s.Label, topic: b.topic})
		}
	}
	if b.Sent != nil {
		b.Sent(row.Number)
	}
	return nil
}

// playRaw publishes a file of signals.
func playRaw(ctx context.Context, src *Source, p *Player, raw *RawSource, mqtt mqtt.Config, errOut io.Writer) ([]*report.Report, error) {
	switch {
	case src.Selection.Shuffle != nil || src.Loop:
		return nil, exit.With(exit.Usage, errors.New("--shuffle and --loop are for files of samples: rows of signals have an order, and times"))
	case p.Labels == LabelsInline && p.Fraction < 1:
		return nil, exit.With(exit.Usage, errors.New("--label-fraction is for labels of samples: give --labels delayed"))
	case !raw.timed() && (p.Ahead > 0 || p.Labels == LabelsDelayed):
		return nil, exit.With(exit.Usage, errors.New("the payloads have no times, so that the ids of the daemon's samples are not known: give --ahead 0, which waits for no predictions, a --rate, and no --labels delayed"))
	}
	p.leaveWords(raw.format)
	summary, err := dataset.Summarize(ctx, src.Path, raw.format)
	if ctx.Err() != nil {
		return nil, nil // interrupted: no row so far
	} else if err != nil && !errors.Is(err, dataset.ErrNoSample) {
		return nil, err
	}
	if len(summary.Classes) == 0 && summary.Tally.Mixed > 0 {
		fmt.Fprintln(errOut, "replay:", summary.Tally.Unlabelled(src.Path))
	}
	if p.Labels == LabelsInline && len(summary.Classes) > 0 && !raw.labelled() {
		return nil, exit.With(exit.Usage, fmt.Errorf("the payloads of stream %s have no labels, so that those of the file would teach nothing: give --labels delayed, which sends them by the ids of the samples, or --labels none; states of topics that are sticky are not sent", raw.File.Of().Name))
	}
	if err := p.checkLabels(summary.Classes); err != nil {
		return nil, err
	}
	total := int(summary.Tally.Rows)
	if raw.First > 0 {
		total = min(total, raw.First)
	}
	p.Raw, p.Topic, p.Prefix = raw, raw.routes[0].template, raw.File.Name
	if p.Ahead > 0 {
		p.Scores = &publishedScores{Total: summary.Rows}
	}
	return play(ctx, src, p, mqtt, raw.File.Name, total, errOut)
}
