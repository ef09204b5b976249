package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"edge/cmd/edge/internal/dataset"
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
func (p *Player) Play(ctx context.Context, broker mqtt.Config) (rows int, err error) {
	follow := newFollower(broker.BaseTopic, p.Prefix, p.Scores)
	var watch []string
	if p.Ahead > 0 {
		watch = follow.topics()
	}
	pub, err := NewPublisher(ctx, broker, byte(broker.QoS), watch, follow.hear, follow.reconnected)
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
		payload = p.appendSample(payload[:0], id, row.X, inline)
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
func (p *Player) teach(ctx context.Context, pub *Publisher, l lateLabel) error {
	return p.tell(ctx, pub, p.Topic+"/label", l.row, l.label)
}

func (p *Player) tell(ctx context.Context, pub *Publisher, topic string, row int, label string) error {
	payload := gjson.AppendJSONString([]byte(`{"id":`), fmt.Sprintf("%s-%06d", p.Prefix, row))
	payload = gjson.AppendJSONString(append(payload, `,"label":`...), label)
	return pub.Publish(ctx, topic, append(payload, '}'))
}

// reply counts the questions that have come. It answers them if only labels that
// are asked for are sent, and reports whether it has answered any.
func (p *Player) reply(ctx context.Context, pub *Publisher, follow *follower) (answered bool, err error) {
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

// appendSample appends the message of one row.
func (p *Player) appendSample(dst []byte, id string, x []float64, label string) []byte {
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

// brokerFlags say how a tool reaches the broker.
type brokerFlags struct {
	config, url, username, passwordFile, ca, base string
}

func (b *brokerFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&b.config, "config", "c", "", "take the connection from the mqtt section of this `FILE`")
	f.StringVar(&b.url, "broker", "", "`URL` of the broker, such as mqtt://127.0.0.1:1883 or mqtts://broker.lan")
	f.StringVar(&b.username, "username", "", "user `NAME` (default EDGE_MQTT_USERNAME)")
	f.StringVar(&b.passwordFile, "password-file", "", "`FILE` that holds the password (default EDGE_MQTT_PASSWORD_FILE)")
	f.StringVar(&b.ca, "ca", "", "`FILE` of certificates to trust (default EDGE_MQTT_TLS_CA, else the system's)")
	f.StringVar(&b.base, "base", "", "base `TOPIC` of the daemons (default edge)")
}

// mqtt is the connection that the flags, the configuration and the environment
// ask for; cfg is nil where no configuration is named.
func (b *brokerFlags) mqtt(environ []string) (m mqtt.Config, cfg *Config, err error) {
	if b.config != "" {
		if cfg, err = LoadConfig(b.config); err != nil {
			return m, nil, err
		}
		m = cfg.MQTT
	} else {
		plain := DefaultConfig()
		if _, err := plain.applyEnviron(environ); err != nil {
			return m, nil, coded(exitConfig, err)
		}
		m = plain.MQTT
	}
	if b.url != "" {
		m.Servers = []string{b.url}
	}
	if b.username != "" {
		m.Username = b.username
	}
	if b.passwordFile != "" {
		m.Password = mqtt.Secret{File: b.passwordFile}
	}
	if b.ca != "" {
		m.TLS.CA = b.ca
	}
	if b.base != "" {
		m.BaseTopic = b.base
	}
	return m, cfg, nil
}

func newReplayCommand() *cobra.Command {
	var (
		broker    brokerFlags
		p         Player
		data      dataFlags
		format    string
		shuffle   uint64
		selection dataset.Selection
		out       replayOutput
		qos       int
	)
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Publish a data file as a stream of sensor messages",
		Long: `replay publishes the rows of a CSV file, in order, one message a row:

  {"id":"gas-000123","features":[0.5,2],"label":"ok"}

A broker keeps a limited number of messages for a daemon that is behind
(mosquitto 1000) and drops the rest silently. So replay watches the daemon's
predictions and stays at most --ahead rows before them; it begins when a daemon
is online. A daemon learns a message once, and knows it by its id: to teach the
same rows again, give another --prefix.

With --labels delayed the label follows on <topic>/label, as {"id":…,"label":…};
with --labels asked only the daemon's queries are answered.

At the end it prints the scores of the predictions that each daemon published,
judged by the file's labels whether they were sent or not. They are those of
eval, as a subscriber sees them: made when the row came, with what had been
learnt by then, and with four decimals. eval predicts each row after all labels
before it; a replay that is faster than the daemon learns lags behind that.

A password is read from --password-file or EDGE_MQTT_PASSWORD_FILE.`,
		Example: `  edge replay gas.csv.gz --broker mqtt://127.0.0.1 --rate 500
  edge replay gas.csv.gz -c edge.yaml --labels delayed --delay 50 --label-fraction 0.1
  edge replay gas.csv.gz -c edge.yaml --labels asked --rate 20 --json
  edge replay iris.csv --topic lab/iris --shuffle 1 --loop --format named`,
		Args: cobra.ExactArgs(1),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("shuffle") {
				selection.Shuffle = &shuffle
			}
			switch {
			case !slices.Contains([]string{"inline", "delayed", "asked", "none"}, p.Labels):
				return coded(exitUsage, fmt.Errorf("--labels %s: want inline, delayed or none, or asked", p.Labels))
			case p.Ahead == 0 && (p.Labels == "asked" || out.plot != ""):
				return coded(exitUsage, errors.New("--labels asked and --plot need the daemon's predictions: give --ahead 1 or more"))
			case format != "array" && format != "named":
				return coded(exitUsage, fmt.Errorf("--format %s: want array or named", format))
			case !(p.Fraction >= 0 && p.Fraction <= 1):
				return coded(exitUsage, fmt.Errorf("--label-fraction %g: want 0 to 1", p.Fraction))
			case !(p.Rate >= 0) || p.Ahead < 0 || selection.First < 0:
				return coded(exitUsage, errors.New("--rate, --ahead and --first: want 0 or more"))
			}
			if err := data.check(); err != nil {
				return err
			}
			mqtt, cfg, err := broker.mqtt(os.Environ())
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("qos") {
				mqtt.QoS = qos
			}
			p.Named, p.Seed = format == "named", shuffle
			return replayFile(cmd, args[0], &data, selection, &out, &p, mqtt, cfg)
		}),
	}
	broker.add(cmd)
	f := cmd.Flags()
	f.StringVar(&p.Topic, "topic", "", "`TOPIC` to publish on (default sensors/<file's base name>, or the one that the configuration names)")
	f.StringVar(&p.Prefix, "prefix", "", "`TEXT` before the row number in the ids (default the file's base name)")
	f.Float64Var(&p.Rate, "rate", 0, "`N` rows a second (0: as fast as the daemon follows)")
	f.StringVar(&p.Labels, "labels", "inline", "inline, delayed, asked or none")
	p.Delay = Delay{Rows: 10}
	f.Var(&p.Delay, "delay", "how much later a delayed label comes: rows or time")
	f.Float64Var(&p.Fraction, "label-fraction", 1, "`FRACTION` of the rows that get a label at all")
	f.BoolVar(&out.loop, "loop", false, "begin again at the end, until interrupted")
	data.add(cmd, "`NAME` of the label's column (default the last one)")
	f.IntVar(&selection.First, "first", 0, "only the first `N` rows, after the shuffle (0: all)")
	f.Uint64Var(&shuffle, "shuffle", 0, "shuffle the whole file by this `SEED`")
	f.IntVar(&qos, "qos", 1, "quality of service, 0 or 1")
	f.StringVar(&format, "format", "array", "features as array or as named object")
	f.IntVar(&p.Ahead, "ahead", 100, "publish at most `N` rows ahead of the daemon's predictions (0: do not watch for a daemon, and print no scores)")
	f.BoolVar(&out.asJSON, "json", false, "print the scores as a JSON object a line for each node and model")
	f.StringVar(&out.plot, "plot", "", "draw error and log loss of the published predictions into this SVG `FILE`")
	return cmd
}

// replayOutput says what replay does with what it hears.
type replayOutput struct {
	loop   bool // again and again
	asJSON bool
	plot   string
}

// print writes the scores of what was published.
func (o *replayOutput) print(w io.Writer, reports []*Report) error {
	if o.asJSON {
		for _, r := range reports {
			if err := printJSON(w, r); err != nil {
				return err
			}
		}
	} else if len(reports) > 0 {
		if err := printPublished(w, reports); err != nil {
			return err
		}
	}
	if o.plot != "" {
		return plotCurves(o.plot, reports)
	}
	return nil
}

// topicOf is where the rows of a file of that name go: to sensors/<name>, or,
// where no stream of cfg takes that, to the only topic that its streams name. cfg
// is nil where there is none.
func topicOf(name string, cfg *Config) (string, error) {
	topic := "sensors/" + name
	if cfg == nil {
		return topic, nil
	}
	var named []string
	for _, key := range sortedKeys(cfg.Streams) {
		s := cfg.Streams[key]
		if s.Takes(topic) {
			return topic, nil
		}
		named = append(named, s.Topics...)
	}
	if len(named) == 1 && !strings.ContainsAny(named[0], "+#$") {
		return named[0], nil
	}
	return "", coded(exitUsage, fmt.Errorf("no stream of the configuration takes %s: give --topic one that matches %s", topic, strings.Join(named, " or ")))
}

// featuresOn are those of the stream that takes what is published on topic, in
// its order; nil: there is none.
func (c *Config) featuresOn(topic string) []string {
	if c == nil {
		return nil
	}
	for _, key := range sortedKeys(c.Streams) {
		if s := c.Streams[key]; s.Takes(topic) {
			return s.FeatureNames()
		}
	}
	return nil
}

// replayFile plays a file, and tells what was published for its rows.
func replayFile(cmd *cobra.Command, path string, data *dataFlags, s dataset.Selection, o *replayOutput, p *Player, broker mqtt.Config, cfg *Config) error {
	if p.Topic == "" {
		var err error
		if p.Topic, err = topicOf(dataset.NameOf(path), cfg); err != nil {
			return err
		}
	}
	format := data.of(nil)
	if wanted := cfg.featuresOn(p.Topic); wanted != nil && dataset.Has(path, data.of(wanted)) {
		format = data.of(wanted)
	}
	census, err := dataset.TakeCensus(path, format)
	if err != nil {
		return err
	}
	total := census.Rows
	if s.First > 0 {
		total = min(total, s.First)
	}
	if o.loop {
		total = -1
	}
	if p.Ahead > 0 {
		p.Scores = &publishedScores{Total: max(total, 0)}
	}
	rows := &fileRows{path: path, format: format, selection: s, loop: o.loop}
	if err := rows.open(); err != nil {
		return err
	}
	defer func() { rows.file.Close() }()
	data.warn(cmd.ErrOrStderr(), path, rows.file)
	p.Rows, p.Features = rows, rows.file.Features
	if p.Prefix == "" {
		p.Prefix = rows.file.Name
	}
	bar := newProgress(cmd.ErrOrStderr(), total, rows.file.Name)
	p.Sent = func(int) { bar.Add(1) }
	p.Waiting = func(why string) { fmt.Fprintln(cmd.ErrOrStderr(), "replay: waiting:", why) }
	start := time.Now()
	n, err := p.Play(cmd.Context(), broker)
	bar.Close()
	taken := time.Since(start)
	if cmd.Context().Err() != nil {
		err = nil // interrupted: what was published is told below
	}
	if err == nil && isTerminal(cmd.ErrOrStderr()) {
		fmt.Fprintf(cmd.ErrOrStderr(), "published %d rows on %s in %v, %.0f a second\n", n, p.Topic, taken.Round(time.Millisecond), float64(n)/taken.Seconds())
	}
	if p.Scores == nil || err != nil {
		return err
	}
	reports := p.Scores.reports(rows.file.Name)
	for _, r := range reports {
		if of := r.Published; of.Unanswered > 0 && !o.loop {
			fmt.Fprintf(cmd.ErrOrStderr(), "replay: model %s of node %s has not answered %d of %d rows: was the daemon interrupted, or had the broker no room (max_queued_messages)? --rate goes slower\n",
				of.Model, of.Node, of.Unanswered, of.Rows)
		}
	}
	return o.print(cmd.OutOrStdout(), reports)
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
