package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/broker"
	"edge/internal/config"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/report"
	"edge/internal/terminal"
	"edge/stream/mqtt"
)

// Player publishes rows as a stream of sensor messages.
type Player struct {
	Rows     dataset.Rows
	Features []string
	Topic    string
	Prefix   string  // of the ids: <prefix>-<row number>
	Rate     float64 // rows a second; 0: as fast as it goes
	Labels   string  // inline, delayed, asked or none
	Delay    Delay   // of delayed labels
	Fraction float64 // of the rows that have a label
	Seed     uint64  // of the choice of those rows
	Named    bool    // features as an object instead of an array
	Ahead    int     // rows that may be published before their prediction; 0: any number

	// Scores, if set, judges the predictions that are published for the rows,
	// unless Ahead is 0.
	Scores *publishedScores

	// Waiting, if set, is told when rows are held back for long, and why.
	Waiting func(why string)
	// Sent, if set, is called after each row.
	Sent func(row int)

	told bool // Waiting was told, and nothing has happened since
}

const (
	holdPatience = 3 * time.Second       // without a daemon, until Waiting is told
	behindPause  = 10 * time.Millisecond // before each row, while learning is behind
	probeAfter   = 2 * time.Second       // of silence, until one row is published all the same
	lastPatience = 10 * time.Second      // of silence after the last row
	askPatience  = 3 * time.Second       // of silence after it, for questions
)

// Delay is how much later than its sample a label comes.
type Delay struct {
	Rows int           // so many rows later
	Time time.Duration // or so much time
}

// String and Set make a flag of it: "50" is rows, "5s" time.
func (d *Delay) String() string {
	if d.Time > 0 {
		return d.Time.String()
	}
	return strconv.Itoa(d.Rows)
}

// Set reads what String writes.
func (d *Delay) Set(s string) error {
	if n, err := strconv.Atoi(s); err == nil && n >= 0 {
		*d = Delay{Rows: n}
		return nil
	}
	t, err := time.ParseDuration(s)
	if err != nil || t < 0 {
		return errors.New("want a number of rows, such as 50, or a duration, such as 5s")
	}
	*d = Delay{Time: t}
	return nil
}

// Type is the flag's type in the help.
func (d *Delay) Type() string { return "ROWS|DURATION" }

// lateLabel waits to be published.
type lateLabel struct {
	row   int
	at    time.Time
	label string
}

// Play connects, publishes the rows and waits until the broker has them all
// and, unless Ahead is 0, the last one was predicted.
func (p *Player) Play(ctx context.Context, connection mqtt.Config) (rows int, err error) {
	follow := newFollower(connection.BaseTopic, p.Prefix, p.Scores)
	var watch []string
	if p.Ahead > 0 {
		watch = follow.topics()
	}
	pub, err := broker.NewPublisher(ctx, connection, byte(connection.QoS), watch, follow.hear, follow.reconnected)
	if err != nil {
		return 0, err
	}
	defer pub.Close()
	var (
		row     dataset.Row
		late    []lateLabel
		payload []byte
		choose  = rand.New(rand.NewPCG(p.Seed, 1))
		pace    = pacer{rate: p.Rate}
	)
	for {
		if err := p.Rows.Next(&row); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return rows, err
		}
		if err := p.await(ctx, follow, row.Number-p.Ahead, probeAfter); err != nil {
			return rows, err
		}
		if err := pace.wait(ctx); err != nil {
			return rows, err
		}
		if p.Ahead > 0 && follow.behind() {
			if err := sleep(ctx, behindPause); err != nil {
				return rows, err
			}
		}
		id := fmt.Sprintf("%s-%06d", p.Prefix, row.Number)
		labelled := (p.Labels == "inline" || p.Labels == "delayed") && row.Label != "" && (p.Fraction >= 1 || choose.Float64() < p.Fraction)
		inline := ""
		if labelled && p.Labels == "inline" {
			inline = row.Label
		}
		payload = p.AppendSample(payload[:0], id, row.X, inline)
		if p.Scores != nil {
			p.Scores.expect(row.Number, row.Label)
		}
		if err := pub.Publish(ctx, p.Topic, append([]byte(nil), payload...)); err != nil {
			return rows, err
		}
		rows++
		if inline != "" {
			follow.teach()
		}
		if p.Sent != nil {
			p.Sent(row.Number)
		}
		if labelled && p.Labels == "delayed" {
			late = append(late, lateLabel{row.Number, time.Now().Add(p.Delay.Time), row.Label})
		}
		for len(late) > 0 && row.Number-late[0].row >= p.Delay.Rows && !time.Now().Before(late[0].at) {
			if err := p.teach(ctx, pub, late[0]); err != nil {
				return rows, err
			}
			late = late[1:]
		}
		if _, err := p.reply(ctx, pub, follow); err != nil {
			return rows, err
		}
	}
	for _, l := range late {
		if err := sleep(ctx, time.Until(l.at)); err != nil {
			return rows, err
		}
		if err := p.teach(ctx, pub, l); err != nil {
			return rows, err
		}
	}
	if err := pub.Drain(ctx); err != nil {
		return rows, err
	}
	if err := p.await(ctx, follow, row.Number, lastPatience); err != nil {
		return rows, err
	}
	if p.Labels != "asked" {
		_, err := p.reply(ctx, pub, follow) // which counts the last questions
		return rows, err
	}
	for more := true; more; { // an answer makes room for another question
		if err := sleep(ctx, askPatience); err != nil {
			return rows, err
		}
		if more, err = p.reply(ctx, pub, follow); err != nil {
			return rows, err
		}
	}
	return rows, pub.Drain(ctx)
}

// teach publishes a label on its own.
func (p *Player) teach(ctx context.Context, pub *broker.Publisher, l lateLabel) error {
	return p.tell(ctx, pub, p.Topic+"/label", l.row, l.label)
}

func (p *Player) tell(ctx context.Context, pub *broker.Publisher, topic string, row int, label string) error {
	payload := gjson.AppendJSONString([]byte(`{"id":`), fmt.Sprintf("%s-%06d", p.Prefix, row))
	payload = gjson.AppendJSONString(append(payload, `,"label":`...), label)
	return pub.Publish(ctx, topic, append(payload, '}'))
}

// reply counts the questions that have come. It answers them if only labels that
// are asked for are sent, and reports whether it has answered any.
func (p *Player) reply(ctx context.Context, pub *broker.Publisher, follow *follower) (answered bool, err error) {
	if p.Scores == nil {
		return false, nil
	}
	for _, q := range follow.questions() {
		label, known := p.Scores.labelOf(q.row)
		if !known || label == "" || p.Labels != "asked" {
			continue
		}
		if err := p.tell(ctx, pub, q.topic, q.row, label); err != nil {
			return answered, err
		}
		answered = true
	}
	return answered, nil
}

// AppendSample appends the message of one row.
func (p *Player) AppendSample(dst []byte, id string, x []float64, label string) []byte {
	dst = gjson.AppendJSONString(append(dst, `{"id":`...), id)
	if p.Named {
		dst = append(dst, `,"features":{`...)
	} else {
		dst = append(dst, `,"features":[`...)
	}
	for i, v := range x {
		if i > 0 {
			dst = append(dst, ',')
		}
		if p.Named {
			dst = append(gjson.AppendJSONString(dst, p.Features[i]), ':')
		}
		if math.IsNaN(v) {
			dst = append(dst, "null"...)
		} else {
			dst = strconv.AppendFloat(dst, v, 'g', -1, 64)
		}
	}
	if p.Named {
		dst = append(dst, '}')
	} else {
		dst = append(dst, ']')
	}
	if label != "" {
		dst = gjson.AppendJSONString(append(dst, `,"label":`...), label)
	}
	return append(dst, '}')
}

// await waits until a daemon is ready and has predicted the row. A daemon that
// was killed may never publish predictions of rows that it had received, so
// after so much silence of a daemon that is ready, await goes on.
func (p *Player) await(ctx context.Context, follow *follower, row int, silence time.Duration) error {
	if p.Ahead == 0 {
		return nil
	}
	since, seen := time.Now(), -1 // of the last change
	for {
		ready, last := follow.state()
		switch {
		case ready && last >= row:
			p.told = false
			return nil
		case last != seen:
			since, seen = time.Now(), last
		case ready && time.Since(since) > silence:
			p.explain(fmt.Sprintf("the daemon has predicted nothing on %s since row %d; going on slowly", p.Topic, last))
			return nil
		case !ready && time.Since(since) > holdPatience:
			p.explain(fmt.Sprintf("no daemon is online under %s/; --ahead 0 publishes all the same", follow.base))
			since = time.Now()
		}
		select {
		case <-follow.changed:
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// explain says why nothing happens, once until something happens again.
func (p *Player) explain(why string) {
	if !p.told && p.Waiting != nil {
		p.Waiting(why)
	}
	p.told = true
}

// pacer spaces events evenly. After a delay it catches up for a little while
// only.
type pacer struct {
	rate float64 // events a second; 0: no limit
	next time.Time
}

const catchUp = 100 * time.Millisecond

func (p *pacer) wait(ctx context.Context) error {
	if p.rate <= 0 {
		return ctx.Err()
	}
	now := time.Now()
	if p.next.Before(now.Add(-catchUp)) {
		p.next = now
	}
	due := p.next
	p.next = due.Add(time.Duration(float64(time.Second) / p.rate))
	return sleep(ctx, due.Sub(now))
}

// sleep waits for d, or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// topicOf is where the rows of a file of that name go: to sensors/<name>, or,
// where no stream of cfg takes that, to the only topic that its streams name. cfg
// is nil where there is none.
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

// featuresOn are those of the stream that takes what is published on topic, in
// its order; nil: there is none.
func featuresOn(c *config.Config, topic string) []string {
	if c == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(c.Streams)) {
		if s := c.Streams[key]; s.Takes(topic) {
			return s.FeatureNames()
		}
	}
	return nil
}

// Source is the part of a data file that is replayed.
type Source struct {
	Path      string
	Data      dataset.Options
	Selection dataset.Selection
	Loop      bool // begin again at the end, until interrupted
}

// File publishes the rows of a file and reports the predictions that were
// published for them. A loop has no end.
func File(ctx context.Context, src *Source, p *Player, mqtt mqtt.Config, cfg *config.Config, errOut io.Writer) ([]*report.Report, error) {
	if p.Topic == "" {
		var err error
		if p.Topic, err = topicOf(dataset.BaseName(src.Path), cfg); err != nil {
			return nil, err
		}
	}
	format := src.Data.Of(nil)
	if wanted := featuresOn(cfg, p.Topic); wanted != nil && dataset.HasColumns(src.Path, src.Data.Of(wanted)) {
		format = src.Data.Of(wanted)
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
	src.Data.Warn(errOut, src.Path, rows.file)
	p.Rows, p.Features = rows, rows.file.Features
	if p.Prefix == "" {
		p.Prefix = rows.file.Name
	}
	bar := terminal.NewProgress(errOut, total, rows.file.Name)
	p.Sent = func(int) { bar.Add(1) }
	p.Waiting = func(why string) { fmt.Fprintln(errOut, "replay: waiting:", why) }
	start := time.Now()
	n, err := p.Play(ctx, mqtt)
	bar.Close()
	taken := time.Since(start)
	if ctx.Err() != nil {
		err = nil // interrupted: what was published is told below
	}
	if err == nil && terminal.IsTerminal(errOut) {
		fmt.Fprintf(errOut, "published %d rows on %s in %v, %.0f a second\n", n, p.Topic, taken.Round(time.Millisecond), float64(n)/taken.Seconds())
	}
	if p.Scores == nil || err != nil {
		return nil, err
	}
	reports := p.Scores.reports(rows.file.Name)
	for _, r := range reports {
		if of := r.Published; of.Unanswered > 0 && !src.Loop {
			fmt.Fprintf(errOut, "replay: model %s of node %s has not answered %d of %d rows: was the daemon interrupted, or had the broker no room (max_queued_messages)? --rate goes slower\n",
				of.Model, of.Node, of.Unanswered, of.Rows)
		}
	}
	return reports, nil
}

// fileRows reads a selection of a file, numbered without end if it loops.
type fileRows struct {
	path       string
	format     dataset.Format
	selection  dataset.Selection
	loop       bool
	file       *dataset.File
	rows       dataset.Rows
	base, last int // of the row numbers
}

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
