package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"edge/internal/config"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/report"
	"edge/internal/terminal"
	"edge/internal/timing"
	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/mqtt"
	"edge/stream/topic"
)

// topicOf returns the topic for the rows of a file: sensors/<name> or, if no stream of
// cfg subscribes to that, the only topic of its streams. cfg may be nil.
func topicOf(name string, cfg *config.Config) (string, error) {
	topic := dataset.Topic(name)
	if cfg == nil {
		return topic, nil
	}
	var named []string
	for _, key := range field.Names(cfg.Streams) {
		s := cfg.Streams[key]
		if s.Takes(topic) {
			return topic, nil
		}
		named = append(named, s.Filters()...)
	}
	if len(named) == 1 && !strings.ContainsAny(named[0], "+#$") {
		return named[0], nil
	}
	return "", exit.With(exit.Usage, fmt.Errorf("no stream of the configuration takes %s: give --topic one that matches %s", topic, strings.Join(named, " or ")))
}

// overlap reports whether a topic may match one of some filters, and one of others.
func overlap(filters []string, topics ...string) bool {
	for _, filter := range filters {
		plain, _ := topic.Unshare(filter)
		for _, other := range topics {
			if topic.Overlap(plain, other) {
				return true
			}
		}
	}
	return false
}

// takeLabels sets the encoder of labels by the id of their sample for any of these topics,
// which may have wildcards, and where the configuration takes them; neither without one. The error is
// that of a configuration which takes no such labels there.
func (p *Player) takeLabels(cfg *config.Config, topics ...string) error {
	if cfg == nil {
		return nil
	}
	for _, l := range cfg.Labels {
		if !l.Sticky && l.ID != "" && overlap(l.Topics, topics...) {
			p.labels, p.labelFilters = codec.NewLabelEncoder(l), l.Topics
			return nil
		}
	}
	for _, name := range field.Names(cfg.Streams) {
		s := cfg.Streams[name]
		if s.StageConfig().Set() || !overlap(s.Filters(), topics...) {
			continue
		}
		if e, err := codec.NewEncoder(s); err == nil && e.Identified() && e.Labelled() {
			p.labels, p.labelFilters = e, s.Filters()
			return nil
		}
	}
	return exit.With(exit.Usage, fmt.Errorf("--labels delayed: the configuration takes no labels on %s: add that under labels: [{topics: […]}]", strings.Join(topics, ", ")))
}

// formatOn returns the format of a file whose rows go to topic, and the stream that takes
// them, the first one that subscribes to it and whose features are columns of the file. Where
// none subscribes, the features are all columns, and the name is "". The error is that of a
// file without the features of any such stream.
func formatOn(src *Source, c *config.Config, topic string) (format dataset.Format, name string, err error) {
	format = src.Data.Of(nil)
	if c == nil {
		return format, "", nil
	}
	for _, key := range field.Names(c.Streams) {
		s := c.Streams[key]
		if !s.Takes(topic) {
			continue
		}
		if s.StageConfig().Set() {
			err = cmp.Or(err, exit.With(exit.Usage, fmt.Errorf("stream %s, which takes %s, makes its samples of rows of signals: want a file that has a column for each; the samples of %s cannot be sent to it", key, topic, src.Path)))
			continue
		}
		wanted := src.Data.Of(s.FeatureNames())
		wanted.OwnLabel = codec.PlainName(s.Label)
		wanted.SetTopicLabels(c, "", key)
		d, failed := dataset.Open(src.Path, wanted)
		if failed == nil {
			return wanted, key, d.Close()
		}
		err = cmp.Or(err, failed)
	}
	return format, "", err
}

// writeFor makes the player write the payloads that a stream reads. labelled: rows have labels.
func (p *Player) writeFor(name string, s codec.Stream, labelled bool) (err error) {
	if p.samples, err = codec.NewEncoder(s); err != nil {
		return fmt.Errorf("stream %s: %w", name, err)
	}
	switch {
	case !p.samples.Identified() && (p.Ahead > 0 || p.Labels == LabelsDelayed):
		return fmt.Errorf("the payloads of stream %s have no ids, so that its predictions and labels are not found by them: give --ahead 0, which waits for no predictions, a --rate, and no --labels delayed", name)
	case !p.samples.Labelled() && labelled && p.Labels == LabelsInline:
		return fmt.Errorf("the payloads of stream %s have no labels, so that those of the file would teach nothing: give --labels none, or a stream with format: json beside this one", name)
	}
	if own := codec.DefaultStream(); s.Format == own.Format && len(s.Fields) == 0 && len(s.Entries.Device.Names())+len(s.Entries.Where) == 0 && s.ID == own.ID && s.Label == own.Label {
		p.samples = nil
	}
	return nil
}

// Source is a selection of rows of a data file.
type Source struct {
	Path      string
	Data      dataset.Options
	Selection dataset.Selection
	Loop      bool // begin again at the end, until interrupted
}

// File publishes the rows of a source and returns a report on the predictions that
// daemons publish for them, one for each node and model. It ends with ctx, also while it reads a large
// file for the first time.
func File(ctx context.Context, src *Source, p *Player, mqtt mqtt.Config, cfg *config.Config, errOut io.Writer) ([]*report.Report, error) {
	if err := topic.Check(cmp.Or(p.Topic, "sensors")); err != nil { // brokers end the connection, again and again
		return nil, exit.With(exit.Usage, fmt.Errorf("--topic %.80q: it %w", p.Topic, err))
	}
	if err := dataset.ReadTwice(src.Path); err != nil {
		return nil, err
	}
	if cfg != nil {
		p.Node = cfg.Node
	}
	raw, err := openRaw(src, cfg, p.Topic)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	if raw != nil {
		defer raw.File.Close()
		if p.Labels == LabelsDelayed {
			if err := p.takeLabels(cfg, raw.labelTopics()...); err != nil {
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
	if p.Labels == LabelsDelayed {
		if err := p.takeLabels(cfg, p.Topic+"/label"); err != nil {
			return nil, err
		}
	}
	format, stream, err := formatOn(src, cfg, p.Topic)
	if err != nil {
		return nil, err
	}
	if stream != "" {
		p.classes = codec.NewLabelMap(cfg.Streams[stream].LabelMap)
	}
	p.leaveWords(format)
	summary, err := dataset.Summarize(ctx, src.Path, format)
	if ctx.Err() != nil {
		return nil, nil // interrupted: no row so far
	} else if err != nil {
		return nil, err
	}
	if stream != "" {
		if err := p.writeFor(stream, cfg.Streams[stream], len(summary.Classes) > 0); err != nil {
			return nil, exit.With(exit.Usage, err)
		}
	}
	if err := p.checkLabels(summary.Classes); err != nil {
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
	if err := timing.Await(ctx, rows.open); ctx.Err() != nil {
		return nil, nil // interrupted
	} else if err != nil {
		return nil, err
	}
	defer func() { rows.file.Close() }()
	src.Data.Warn(errOut, src.Path, summary.Warning)
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
	p.Idle = func(node, model string, labels int) {
		hint := ""
		if p.Labels == LabelsDelayed && p.labels == nil {
			hint = "does a topic under labels: take " + p.Topic + "/label? -c edge.yaml checks it; "
		}
		fmt.Fprintf(errOut, "replay: model %s of node %s has learnt none of %d labels: %sthose of ids that it knows teach nothing, which another --prefix changes; the daemon's log has those that it refused\n",
			terminal.Plain(model), terminal.Plain(node), labels, hint)
	}
	start := time.Now()
	n, err := p.Play(ctx, mqtt)
	bar.Close()
	taken := time.Since(start)
	if ctx.Err() != nil {
		err = nil // interrupted: report the rows so far
	}
	if err == nil && terminal.IsTerminal(errOut) {
		fmt.Fprintf(errOut, "published %s on %s in %v, %.0f a second\n", terminal.Count(n, "row"), p.Topic, taken.Round(time.Millisecond), float64(n)/taken.Seconds())
	}
	if p.Scores == nil || err != nil {
		return nil, err
	}
	reports := p.Scores.reports(name)
	for _, r := range reports {
		if of := r.Published; of.Unanswered > 0 && !src.Loop {
			fmt.Fprintf(errOut, "replay: model %s of node %s has not answered %d of %d rows: did it refuse them, as those without any feature (its log says so), was it interrupted, or had the broker no room (max_queued_messages)? --rate goes slower\n",
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

// open opens the file at its beginning, in place of the one that is open. After an error, that
// stays.
func (f *fileRows) open() error {
	file, err := dataset.Open(f.path, f.format)
	if err != nil {
		return err
	}
	rows, err := f.selection.Of(file)
	if err != nil {
		file.Close()
		return err
	}
	if f.file != nil {
		f.file.Close()
	}
	f.file, f.rows = file, rows
	return nil
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
