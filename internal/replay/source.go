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
	"edge/internal/terminal"
	"edge/stream/mqtt"
	"edge/stream/topic"
)

// topicOf returns the topic for the rows of a file: sensors/<name> or, if no stream of
// cfg subscribes to that, the only topic of its streams. cfg may be nil.
func topicOf(name string, cfg *config.Config) (string, error) {
	topic := "sensors/" + name
	if cfg == nil {
		return topic, nil
	}
	var named []string
	for _, key := range slices.Sorted(maps.Keys(cfg.Streams)) {
		s := cfg.Streams[key]
		if s.Takes(topic) {
			return topic, nil
		}
		named = append(named, s.Topics...)
	}
	if len(named) == 1 && !strings.ContainsAny(named[0], "+#$") {
		return named[0], nil
	}
	return "", exit.With(exit.Usage, fmt.Errorf("no stream of the configuration takes %s: give --topic one that matches %s", topic, strings.Join(named, " or ")))
}

// takesLabels returns the error of a configuration, which may be nil, that takes no label by
// the id of its sample on any of these topics, which may have wildcards.
func takesLabels(cfg *config.Config, topics ...string) error {
	if cfg == nil {
		return nil
	}
	var filters []string
	for _, l := range cfg.Labels {
		if !l.Sticky {
			filters = append(filters, l.Topics...)
		}
	}
	for _, s := range cfg.Streams {
		if !s.StageConfig().Set() {
			filters = append(filters, s.Filters()...)
		}
	}
	for _, filter := range filters {
		plain, _ := topic.Unshare(filter)
		if slices.ContainsFunc(topics, func(t string) bool { return topic.Overlap(plain, t) }) {
			return nil
		}
	}
	return exit.With(exit.Usage, fmt.Errorf("--labels delayed: the configuration takes no labels on %s: add that under labels: [{topics: […]}]", strings.Join(topics, ", ")))
}

// formatOn returns the format of a file whose rows go to topic: the features are those of
// the first stream that subscribes to it and whose columns the file has, else all columns.
// The error is that of a file without the features of any such stream.
func formatOn(src *Source, c *config.Config, topic string) (format dataset.Format, err error) {
	format = src.Data.Of(nil)
	if c == nil {
		return format, nil
	}
	for _, key := range slices.Sorted(maps.Keys(c.Streams)) {
		s := c.Streams[key]
		if !s.Takes(topic) {
			continue
		}
		wanted := src.Data.Of(s.FeatureNames())
		d, failed := dataset.Open(src.Path, wanted)
		if failed == nil {
			return wanted, d.Close()
		}
		if err == nil {
			err = failed
		}
	}
	return format, err
}

// Source is a selection of rows of a data file.
type Source struct {
	Path      string
	Data      dataset.Options
	Selection dataset.Selection
	Loop      bool // begin again at the end, until interrupted
}

// File publishes the rows of a source and returns a report on the predictions that
// daemons publish for them, one for each node and model. A loop ends with ctx.
func File(ctx context.Context, src *Source, p *Player, mqtt mqtt.Config, cfg *config.Config, errOut io.Writer) ([]*report.Report, error) {
	raw, err := openRaw(src, cfg, p.Topic)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	if raw != nil {
		defer raw.File.Close()
		if p.Labels == "delayed" {
			if err := takesLabels(cfg, raw.labelTopics()...); err != nil {
				return nil, err
			}
		}
		return playRaw(ctx, src, p, raw, mqtt, errOut)
	}
	if p.Topic == "" {
		if p.Topic, err = topicOf(dataset.BaseName(src.Path), cfg); err != nil {
			return nil, err
		}
	}
	if p.Labels == "delayed" {
		if err := takesLabels(cfg, p.Topic+"/label"); err != nil {
			return nil, err
		}
	}
	format, err := formatOn(src, cfg, p.Topic)
	if err != nil {
		return nil, err
	}
	summary, err := dataset.Summarize(src.Path, format)
	if err != nil {
		return nil, err
	}
	total := summary.Rows
	if src.Selection.First > 0 {
		total = min(total, src.Selection.First)
	}
	if src.Loop {
		total = -1
	}
	if p.Ahead > 0 {
		p.Scores = &publishedScores{Total: max(total, 0)}
	}
	rows := &fileRows{path: src.Path, format: format, selection: src.Selection, loop: src.Loop}
	if err := rows.open(); err != nil {
		return nil, err
	}
	defer func() { rows.file.Close() }()
	src.Data.Warn(errOut, src.Path, summary.Doubt)
	p.Rows, p.Features = rows, rows.file.Features
	if p.Prefix == "" {
		p.Prefix = rows.file.Name
	}
	return play(ctx, src, p, mqtt, rows.file.Name, total, errOut)
}

// play runs a player and returns its reports; name is that of the file, of total rows.
func play(ctx context.Context, src *Source, p *Player, mqtt mqtt.Config, name string, total int, errOut io.Writer) ([]*report.Report, error) {
	bar := terminal.NewProgress(errOut, total, name)
	p.Sent = func(int) { bar.Add(1) }
	p.Waiting = func(why string) { fmt.Fprintln(errOut, "replay: waiting:", why) }
	start := time.Now()
	n, err := p.Play(ctx, mqtt)
	bar.Close()
	taken := time.Since(start)
	if ctx.Err() != nil {
		err = nil // interrupted: report the rows so far
	}
	if err == nil && terminal.IsTerminal(errOut) {
		fmt.Fprintf(errOut, "published %d rows on %s in %v, %.0f a second\n", n, p.Topic, taken.Round(time.Millisecond), float64(n)/taken.Seconds())
	}
	if p.Scores == nil || err != nil {
		return nil, err
	}
	reports := p.Scores.reports(name)
	for _, r := range reports {
		if of := r.Published; of.Unanswered > 0 && !src.Loop {
			fmt.Fprintf(errOut, "replay: model %s of node %s has not answered %d of %d rows: was the daemon interrupted, or had the broker no room (max_queued_messages)? --rate goes slower\n",
				of.Model, of.Node, of.Unanswered, of.Rows)
		}
	}
	return reports, nil
}

// fileRows reads a selection of a file. A loop continues the row numbers.
type fileRows struct {
	path       string
	format     dataset.Format
	selection  dataset.Selection
	loop       bool
	file       *dataset.File
	rows       dataset.Rows
	base, last int // of the row numbers
}

// open opens the file at its beginning.
func (f *fileRows) open() (err error) {
	if f.file != nil {
		f.file.Close()
	}
	if f.file, err = dataset.Open(f.path, f.format); err != nil {
		return err
	}
	f.rows, err = f.selection.Of(f.file)
	return err
}

// Next reads the next row.
func (f *fileRows) Next(row *dataset.Row) error {
	err := f.rows.Next(row)
	if errors.Is(err, io.EOF) && f.loop && f.last > f.base {
		f.base = f.last
		if err := f.open(); err != nil {
			return err
		}
		err = f.rows.Next(row)
	}
	if err == nil {
		row.Number += f.base
		f.last = row.Number
	}
	return err
}
