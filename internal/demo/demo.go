package demo

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

	"edge/internal/broker"
	"edge/internal/config"
	"edge/internal/daemon"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/replay"
	"edge/internal/report"
	"edge/internal/terminal"
	"edge/online"
	"edge/stream"
	"edge/stream/codec"
	"edge/stream/mqtt"
)

const (
	DefaultRate = 250         // rows a second: 2000 samples pass within ten seconds
	demoLabels  = 0.6         // of the simulated samples bring their label; a person may label the others
	demoTTL     = time.Minute // that these wait for it
	demoWaits   = 10_000      // of them, at most
	learntPoll  = 20 * time.Millisecond
	learntWait  = 2 * time.Second // until the demo stops waiting for samples of an idle learner, and for a busy one at its end
)

// Config is what the flags of the demo ask for.
type Config struct {
	File   string
	Data   dataset.Options
	Length time.Duration
	Rate   float64
	Seed   uint64
	AsJSON bool
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

func (d *Config) sensors() (*sensors, error) {
	if d.File == "" {
		w := dataset.NewWaveform(d.Seed)
		return &sensors{"waveform", w, w.Features(), w.Classes(), false, demoLabels, func() error { return nil }}, nil
	}
	if err := d.Data.Check(); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	census, err := dataset.TakeCensus(d.File, d.Data.Format)
	if err != nil {
		return nil, err
	}
	file, err := dataset.Open(d.File, d.Data.Format)
	if err != nil {
		return nil, err
	}
	return &sensors{file.Name, file, file.Features, census.Classes, census.Gaps > 0, 1, file.Close}, nil
}

// config is that of a daemon which learns the sensors' stream.
func (d *Config) config(s *sensors, broker, folder string) (*config.Config, error) {
	c := config.Default()
	name := stream.NodeName(s.name)
	in, m := codec.DefaultStream(), config.DefaultModel()
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

func (d *Config) Run(ctx context.Context, out, errOut io.Writer) error {
	if d.Length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Length)
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
	log := terminal.NewLogger(slog.LevelWarn, "auto", errOut)
	broker, err := broker.StartServer("127.0.0.1:0", slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer broker.Close()
	cfg, err := d.config(sensors, broker.URL(), folder)
	if err != nil {
		return exit.With(exit.Config, fmt.Errorf("demo: %w", err))
	}
	show := newView(out, sensors)
	if d.AsJSON {
		show = newView(errOut, sensors)
		show.muted = !terminal.IsTerminal(errOut)
	}
	daemon, err := daemon.New(cfg, log, show.predicted)
	if err != nil {
		return err
	}
	player := &replay.Player{
		Rows: sensors.rows, Features: sensors.features, Topic: "sensors/" + sensors.name, Prefix: sensors.name,
		Rate: d.Rate, Labels: "inline", Fraction: sensors.labels, Seed: d.Seed, Ahead: 100,
	}
	show.begin(broker.URL(), daemon.PageURL())
	curve, taught, err := play(ctx, daemon, stream.NodeName(sensors.name), player, cfg.MQTT, show)
	if unfinished(err) {
		log.Warn("this machine is too busy: the demo ended before the last samples were learnt; the summary is of those that were")
	} else if err != nil {
		return err
	}
	result, err := report.New(sensors.name, daemon.Loop(stream.NodeName(sensors.name)).Learner(), curve, taught)
	if err != nil {
		return err
	}
	if d.AsJSON {
		return terminal.PrintJSON(out, result)
	}
	return report.Print(out, []*report.Report{result})
}

// play runs daemon and player until the rows end and are learnt, or ctx ends,
// then stops the daemon. The daemon's learners are free to be asked then.
func play(ctx context.Context, daemon *daemon.Daemon, model string, player *replay.Player, broker mqtt.Config, show *view) (curve report.Curve, taught time.Duration, err error) {
	start := time.Now()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	playing, quit := context.WithCancel(ctx)
	defer quit()
	served, played := make(chan error, 1), make(chan error, 1)
	go func() { served <- daemon.Run(running) }()
	loop := daemon.Loop(model)
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
