package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"edge/internal/broker"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/timing"
	"edge/stream/codec"
	"edge/stream/mqtt"
)

// Player publishes rows as a stream of sensor messages.
type Player struct {
	Rows     dataset.Rows
	Features []string
	Topic    string
	Prefix   string  // of the ids: <prefix>-<row number>
	Rate     float64 // rows a second; 0: no limit
	Labels   string  // one of the constants below
	Delay    Delay   // of delayed labels
	Fraction float64 // of the rows that have a label
	Seed     uint64  // of the choice of those rows
	Named    bool    // features as an object instead of an array
	Ahead    int     // rows that may be published before their prediction; 0: any number
	Node     string  // of the configuration; "": not known

	Raw   *RawSource // rows of signals in place of Rows; nil: none
	Speed float64    // of their times; 0: Rate

	// Scores, if set, judges the published predictions of the rows, unless Ahead is
	// 0.
	Scores *publishedScores

	// Waiting, if set, is called with the reason when rows are held back for long.
	Waiting func(reason string)
	// Idle, if set, is called at the end for each model that has learnt none of the labels.
	Idle func(node, model string, labels int)
	// Sent, if set, is called after each row.
	Sent func(row int)

	payloads

	explained bool // Waiting was called in this pause
}

// payloads are the formats in which a daemon reads the published messages.
type payloads struct {
	samples, labels *codec.Encoder // of other payloads than those of Sample, and of delayed labels
	classes         codec.LabelMap // of the labels
	labelFilters    []string       // topics of which the daemon takes delayed labels
}

// Values of Player.Labels: when the labels of a file are published.
const (
	LabelsInline  = "inline"  // each with its row
	LabelsDelayed = "delayed" // each some rows, or some time, after its row
	LabelsAsked   = "asked"   // those that models query
	LabelsNone    = "none"
)

const (
	holdPatience = 3 * time.Second       // without a daemon, before Waiting is called
	behindPause  = 10 * time.Millisecond // before each row, while learning is behind
	probeAfter   = 2 * time.Second       // of silence, before one row is published without its prediction
	lastPatience = 10 * time.Second      // of silence after the last row
	askPatience  = 3 * time.Second       // of silence after it, for queries
	idlePatience = 3 * time.Second       // for the metrics of a model whose predictions show no learning
	manyLabels   = 50                    // of which a model that learns has learnt some by then
)

// delayedLabel is a label that will be published on its own.
type delayedLabel struct {
	row   int
	at    time.Time
	label string
	topic string // of its row
}

// playback is one run of a Player.
type playback struct {
	*Player
	publisher *broker.Publisher
	progress  *progress
	choose    *rand.Rand
	late      []delayedLabel
	rows      int    // published
	last      int    // number of the last row, or sample of a stage
	topic     string // of the last row of signals, if possible one beside which the daemon takes labels
	sampled   int    // the last row of signals that completed a sample
}

// Play connects, publishes the rows and waits until the broker has acknowledged them
// and, unless Ahead is 0, the last one is predicted.
func (p *Player) Play(ctx context.Context, connection mqtt.Config) (rows int, err error) {
	progress := newProgress(connection.BaseTopic, p.Prefix, p.Scores)
	if p.Labels != LabelsInline {
		progress.messages = 2
	}
	if p.Node == "" && !p.Named { // no configuration says which order a daemon has
		progress.order = p.Features
	}
	var filters []string
	if p.Ahead > 0 {
		filters = progress.topics(p.Node)
	}
	pub, err := broker.NewPublisher(ctx, connection, byte(connection.QoS), broker.Listener{Filters: filters, Receive: progress.receive, Connected: progress.reconnected})
	if err != nil {
		return 0, err
	}
	defer pub.Close()
	b := &playback{Player: p, publisher: pub, progress: progress, choose: rand.New(rand.NewPCG(p.Seed, 1))}
	publish := b.publishRows
	if p.Raw != nil {
		publish = b.publishRaw
	}
	if err := publish(ctx); err != nil {
		return b.rows, err
	}
	if err := b.finish(ctx); err != nil {
		return b.rows, err
	}
	return b.rows, b.tellIdle(ctx)
}

// tellIdle calls Idle for the models that have learnt none of many labels.
func (b *playback) tellIdle(ctx context.Context) error {
	labels, models := b.progress.idle()
	if b.Idle == nil || labels < manyLabels {
		return nil
	}
	for since := time.Now(); len(models) > 0 && time.Since(since) < idlePatience; _, models = b.progress.idle() {
		if err := timing.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	for _, m := range models {
		b.Idle(m.node, m.model, labels)
	}
	return nil
}

// publishRows publishes every row, and the delayed labels that are due.
func (b *playback) publishRows(ctx context.Context) error {
	pace := pacer{rate: b.Rate}
	var row dataset.Row
	for {
		if err := b.Rows.Next(&row); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		b.last = row.Number
		if err := b.await(ctx, row.Number-b.Ahead, probeAfter); err != nil {
			return err
		}
		if err := pace.wait(ctx); err != nil {
			return err
		}
		if b.Ahead > 0 && b.progress.behind() {
			if err := timing.Sleep(ctx, behindPause); err != nil {
				return err
			}
		}
		if err := b.publishRow(ctx, &row); err != nil {
			return err
		}
		if err := b.publishLabels(ctx, row.Number); err != nil {
			return err
		}
	}
}

// publishLabels publishes the delayed labels that are due after a row, and answers queries.
func (b *playback) publishLabels(ctx context.Context, row int) error {
	for len(b.late) > 0 && row-b.late[0].row >= b.Delay.Rows && !time.Now().Before(b.late[0].at) {
		if err := b.publishDelayed(ctx); err != nil {
			return err
		}
	}
	_, err := b.answerQueries(ctx)
	return err
}

// publishRow publishes one row.
func (b *playback) publishRow(ctx context.Context, row *dataset.Row) error {
	labelled := (b.Labels == LabelsInline || b.Labels == LabelsDelayed) && row.Label != "" && (b.Fraction >= 1 || b.choose.Float64() < b.Fraction)
	inline := ""
	if labelled && b.Labels == LabelsInline {
		inline = row.Label
	}
	if b.Scores != nil {
		b.Scores.expect(row.Number, b.class(row.Label))
	}
	payload, err := b.payload(b.id(row.Number), row.X, inline)
	if err == nil {
		err = b.publisher.Publish(ctx, b.Topic, payload)
	}
	if err != nil {
		return err
	}
	b.rows++
	if inline != "" {
		b.progress.labelSent()
	}
	if b.Sent != nil {
		b.Sent(row.Number)
	}
	if labelled && b.Labels == LabelsDelayed {
		b.late = append(b.late, delayedLabel{row: row.Number, at: time.Now().Add(b.Delay.Time), label: row.Label, topic: b.Topic})
	}
	return nil
}

// class returns the class that a daemon makes of a label; that of no label is "".
func (p *Player) class(label string) string {
	if name, err := p.classes.Class(label); err == nil && label != "" {
		return name
	}
	return label
}

// leaveWords leaves the labels of a file that the topic of delayed labels has in its map: the daemon maps them.
func (p *Player) leaveWords(in dataset.Format) {
	if p.labels != nil {
		p.classes = p.labels.Labels()
		maps.DeleteFunc(in.Labels.Map, func(word, _ string) bool { _, its := p.classes[word]; return its })
	}
}

// checkLabels returns an error if a daemon would refuse a label, or the row with it.
func (p *Player) checkLabels(labels []string) error {
	for _, label := range labels {
		if _, err := p.classes.Class(label); err != nil {
			return exit.With(exit.Usage, err)
		}
	}
	return nil
}

// finish publishes the remaining labels, waits for the last prediction and answers
// the last queries.
func (b *playback) finish(ctx context.Context) error {
	for len(b.late) > 0 {
		if err := timing.Sleep(ctx, time.Until(b.late[0].at)); err != nil {
			return err
		}
		if err := b.publishDelayed(ctx); err != nil {
			return err
		}
	}
	if err := b.publisher.Drain(ctx); err != nil {
		return err
	}
	if err := b.await(ctx, b.last, lastPatience); err != nil {
		return err
	}
	if b.Labels != LabelsAsked {
		_, err := b.answerQueries(ctx) // counts the last queries
		return err
	}
	for more := true; more; { // an answer makes room for another query
		if err := timing.Sleep(ctx, askPatience); err != nil {
			return err
		}
		var err error
		if more, err = b.answerQueries(ctx); err != nil {
			return err
		}
	}
	return b.publisher.Drain(ctx)
}

// id returns the id of a row.
func (p *Player) id(row int) string { return fmt.Sprintf("%s-%06d", p.Prefix, row) }

// publishDelayed publishes the oldest delayed label.
func (b *playback) publishDelayed(ctx context.Context) error {
	l := b.late[0]
	b.late = b.late[1:]
	return b.publishLabel(ctx, l.topic+"/label", b.labels, l.row, l.label)
}

func (b *playback) publishLabel(ctx context.Context, topic string, as *codec.Encoder, row int, label string) error {
	id := b.id(row)
	if b.Raw != nil {
		id = b.progress.idOf(row)
	}
	if as == nil {
		as = codec.NewLabelEncoder(codec.DefaultLabels())
	}
	payload, err := as.Sample(id, nil, label)
	if err == nil {
		err = b.publisher.Publish(ctx, topic, payload)
	}
	if err == nil {
		b.progress.labelSent()
	}
	return err
}

// answerQueries counts the new queries for labels. It answers them if Labels is
// asked, and reports whether it has answered any.
func (b *playback) answerQueries(ctx context.Context) (answered bool, err error) {
	if b.Scores == nil {
		return false, nil
	}
	for _, q := range b.progress.newQueries() {
		label, known := b.Scores.labelOf(q.row)
		if !known || label == "" || b.Labels != LabelsAsked {
			continue
		}
		if err := b.publishLabel(ctx, q.topic, nil, q.row, label); err != nil {
			return answered, err
		}
		answered = true
	}
	return answered, nil
}

// payload returns the message of one row.
func (p *Player) payload(id string, x []float64, label string) ([]byte, error) {
	if p.samples != nil {
		return p.samples.Sample(id, x, label)
	}
	return p.Sample(id, x, label), nil
}

// Sample returns the message of one row, of JSON.
func (p *Player) Sample(id string, x []float64, label string) []byte {
	dst := gjson.AppendJSONString([]byte(`{"id":`), id)
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

// await waits until a daemon is ready and has predicted the row. A daemon that was
// killed may never predict rows that it had received, so await returns after this
// silence of a ready daemon.
func (b *playback) await(ctx context.Context, row int, silence time.Duration) error {
	if b.Ahead == 0 {
		return nil
	}
	since, seen := time.Now(), -1 // of the last change
	for {
		ready, last, why := b.progress.state()
		switch {
		case ready && why != "" && b.rows == 0:
			return exit.With(exit.Usage, errors.New(why))
		case ready && last >= row:
			b.explained = false
			return nil
		case last != seen:
			since, seen = time.Now(), last
		case ready && time.Since(since) > silence:
			b.explain(fmt.Sprintf("the daemon has predicted nothing on %s since row %d; going on slowly%s", b.Topic, last, b.unanswered(last)))
			return nil
		case !ready && time.Since(since) > holdPatience:
			hint := ""
			if b.Node == "" {
				hint = "; a broker that sends kept messages to whole topics alone, as RabbitMQ, needs -c, which names the node"
			}
			b.explain(fmt.Sprintf("%s under %s/; --ahead 0 publishes all the same%s", why, b.progress.base, hint))
			since = time.Now()
		}
		select {
		case <-b.progress.changed:
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// unanswered has the likely reasons why no row at all is predicted.
func (p *Player) unanswered(last int) string {
	if last > 0 {
		return ""
	}
	why := ". If none of its streams takes this topic, --topic gives another one"
	if p.Raw != nil {
		why += ". If it has had rows of these devices with later times, as from another replay, these count as late: later times, or another name of the device, are new to it"
	}
	return why
}

// explain calls Waiting with the reason for a pause, once in each pause.
func (p *Player) explain(reason string) {
	if !p.explained && p.Waiting != nil {
		p.Waiting(reason)
	}
	p.explained = true
}
