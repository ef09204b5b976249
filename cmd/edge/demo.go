package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"edge/cmd/edge/internal/dataset"
	"edge/online"
	"edge/stream"
	"edge/stream/codec"
	"edge/stream/mqtt"
)

const (
	demoRate   = 250         // rows a second: 2000 samples pass within ten seconds
	demoLabels = 0.6         // of the simulated samples bring their label; a person may label the others
	demoTTL    = time.Minute // that these wait for it
	demoWaits  = 10_000      // of them, at most
	learntPoll = 20 * time.Millisecond
	learntWait = 2 * time.Second // until the demo stops waiting for samples of an idle learner, and for a busy one at its end
)

// demo is what the flags of the demo ask for.
type demo struct {
	file   string
	data   dataFlags
	length time.Duration
	rate   float64
	seed   uint64
	asJSON bool
}

func newDemoCommand() *cobra.Command {
	var d demo
	cmd := &cobra.Command{
		Use:   "demo [FILE]",
		Short: "See it work: broker, sensors and daemon in one process",
		Long: `demo starts an MQTT broker on a free port of the loopback interface, sensors that
publish on it, and the daemon of ` + "`edge run`" + ` with a state file that is removed at
the end. It shows error, log loss, rate and the last predictions, and more on a
page of its own in a browser, until Ctrl-C, the end of the file or --for, and
then a summary.

Without FILE the sensors are the waveform generator of Breiman et al. (1984): 21
features, three classes; the best that any classifier can do is an error of 0.133.
Six of ten samples bring their label. The page shows the values of the others and takes a label for
them, as it does for a person who knows what a real sample was.`,
		Example: `  edge demo
  edge demo --for 30s --json
  edge demo gas.csv.gz --rate 500`,
		Args: cobra.MaximumNArgs(1),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				d.file = args[0]
			}
			if !(d.rate >= 0) || d.length < 0 {
				return coded(exitUsage, errors.New("--rate and --for: want 0 or more"))
			}
			return d.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	f := cmd.Flags()
	f.DurationVar(&d.length, "for", 0, "end after this `DURATION` (0: at Ctrl-C, or the end of the file)")
	f.Float64Var(&d.rate, "rate", demoRate, "`N` samples a second (0: as fast as it goes)")
	f.Uint64Var(&d.seed, "seed", 1, "`SEED` of the simulated sensors")
	d.data.add(cmd, "`NAME` of the label's column of FILE (default the last one)")
	f.BoolVar(&d.asJSON, "json", false, "print the summary as the object of edge eval --json, and nothing else")
	return cmd
}

// sensors are what the demo's daemon is to learn.
type sensors struct {
	name     string
	rows     dataset.Rows
	features []string
	classes  []string
	gaps     bool    // features or labels are missing
	labels   float64 // fraction of the rows that is sent with its label
	close    func() error
}

func (d *demo) sensors() (*sensors, error) {
	if d.file == "" {
		w := dataset.NewWaveform(d.seed)
		return &sensors{"waveform", w, w.Features(), w.Classes(), false, demoLabels, func() error { return nil }}, nil
	}
	if err := d.data.check(); err != nil {
		return nil, err
	}
	census, err := dataset.TakeCensus(d.file, d.data.Format)
	if err != nil {
		return nil, err
	}
	file, err := dataset.Open(d.file, d.data.Format)
	if err != nil {
		return nil, err
	}
	return &sensors{file.Name, file, file.Features, census.Classes, census.Gaps > 0, 1, file.Close}, nil
}

// config is that of a daemon which learns the sensors' stream.
func (d *demo) config(s *sensors, broker, folder string) (*Config, error) {
	c := DefaultConfig()
	name := stream.NodeName(s.name)
	in, m := codec.DefaultStream(), DefaultModel()
	in.Topics, in.Features = []string{"sensors/" + s.name}, s.features
	if s.gaps {
		in.OnMissing = codec.OnMissingImpute
	}
	in.MaxPayload = max(in.MaxPayload, codec.ByteSize(40*len(s.features))) // a number takes 25 bytes at most
	m.Streams, m.Learner.Classes.Names = []string{name}, s.classes
	m.Learner.Classes.Max = max(m.Learner.Classes.Max, len(s.classes))
	if s.labels < 1 {
		m.Pending.TTL, m.Pending.Max = demoTTL, demoWaits
	}
	c.Node, c.MQTT.Servers = "demo", []string{broker}
	c.Streams[name], c.Models[name] = in, m
	c.Store.Path = filepath.Join(folder, "edge.db")
	c.HTTP.Listen = "127.0.0.1:0"
	c.Control.Enabled = true // the page takes labels
	return &c, c.Validate()
}

func (d *demo) run(ctx context.Context, out, errOut io.Writer) error {
	if d.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.length)
		defer cancel()
	}
	sensors, err := d.sensors()
	if err != nil {
		return err
	}
	defer sensors.close()
	folder, err := os.MkdirTemp("", "edge-demo-")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer os.RemoveAll(folder)
	log := newLogger(Log{Level: slog.LevelWarn, Format: "auto"}, errOut)
	broker, err := StartBroker("127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer broker.Close()
	cfg, err := d.config(sensors, broker.URL(), folder)
	if err != nil {
		return coded(exitConfig, fmt.Errorf("demo: %w", err))
	}
	show := newView(out, sensors)
	if d.asJSON {
		show = newView(errOut, sensors)
		show.muted = !isTerminal(errOut)
	}
	daemon, err := NewDaemon(cfg, log, show.predicted)
	if err != nil {
		return err
	}
	player := &Player{
		Rows: sensors.rows, Features: sensors.features, Topic: "sensors/" + sensors.name, Prefix: sensors.name,
		Rate: d.rate, Labels: "inline", Fraction: sensors.labels, Seed: d.seed, Ahead: 100,
	}
	show.begin(broker.URL(), daemon.web.url())
	curve, taught, err := play(ctx, daemon, player, cfg.MQTT, show)
	if unfinished(err) {
		log.Warn("this machine is too busy: the demo ended before the last samples were learnt; the summary is of those that were")
	} else if err != nil {
		return err
	}
	report, err := newReport(sensors.name, daemon.now().models[0].loop.Learner(), curve, taught)
	if err != nil {
		return err
	}
	if d.asJSON {
		return printJSON(out, report)
	}
	return printReports(out, []*Report{report})
}

// play runs daemon and player until the rows end and are learnt, or ctx ends,
// then stops the daemon. The daemon's learners are free to be asked then.
func play(ctx context.Context, daemon *Daemon, player *Player, broker mqtt.Config, show *view) (curve Curve, taught time.Duration, err error) {
	start := time.Now()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	playing, quit := context.WithCancel(ctx)
	defer quit()
	served, played := make(chan error, 1), make(chan error, 1)
	go func() { served <- daemon.Run(running) }()
	loop := daemon.now().models[0].loop
	go func() {
		rows, err := player.Play(playing, broker)
		if err == nil {
			err = learnt(playing, loop, uint64(rows))
		}
		played <- err
	}()

	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	look := func() {
		s := loop.Status()
		if curve.Due(s.Scores.N) {
			curve.Add(s.Scores)
		}
		show.update(s)
	}
	for waiting := true; waiting; {
		select {
		case err = <-played:
			waiting = false
		case err = <-served: // the daemon ends before it is asked to
			quit()
			<-played
			return curve, time.Since(start), err
		case <-tick.C:
			look()
		}
	}
	if ctx.Err() != nil { // Ctrl-C and --for are the usual ends
		err = nil
		settling, done := context.WithTimeout(running, learntWait)
		if loop.Idle(settling) != nil {
			err = stream.ErrUnfinished
		}
		done()
	}
	taught = time.Since(start)
	stop()
	err = errors.Join(err, <-served)
	show.end(loop.Status())
	return curve, taught, err
}

// unfinished says whether a stop that had no time for the last samples is all
// that went wrong.
func unfinished(err error) bool {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(err error) bool { return !unfinished(err) })
	case interface{ Unwrap() error }:
		return unfinished(e.Unwrap())
	}
	return err == stream.ErrUnfinished
}

// learner is what the demo asks of an online.Loop.
type learner interface {
	Status() *online.Status
	Idle(ctx context.Context) error
}

// learnt waits until so many samples have been judged and what they teach is
// learnt. Rows that the daemon refuses never are judged, so it gives up when
// nothing happens any more: a learner that is busy, with a first model to build
// say, is waited for.
func learnt(ctx context.Context, l learner, rows uint64) error {
	last, since := uint64(0), time.Now()
	for {
		if err := l.Idle(ctx); err != nil {
			return err
		}
		s := l.Status()
		if s.Seq != last {
			last, since = s.Seq, time.Now()
		}
		if s.Scores.N >= rows || time.Since(since) >= learntWait {
			return nil
		}
		if err := sleep(ctx, learntPoll); err != nil {
			return err
		}
	}
}
