package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"edge/internal/broker/embedded"
	"edge/internal/daemon"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/replay"
	"edge/internal/report"
	"edge/internal/terminal"
	"edge/stream"
	"edge/stream/mqtt"
)

// DefaultRate is the default of Config.Rate: 2000 samples in eight seconds.
const DefaultRate = 250

// Config configures a demo.
type Config struct {
	File    string          // data file in place of the simulated sensors; "": none
	Signals bool            // a sensor of vibrations, whose rows become windows, in place of the simulated ones
	Data    dataset.Options // format of File
	Length  time.Duration   // of the demo; 0: until ctx or the file ends
	Rate    float64         // samples a second, with Signals rows; 0: as fast as the daemon follows
	Seed    uint64          // of the simulated sensors
	Fleet   int             // nodes of a fleet; 0: one node alone
	AsJSON  bool            // print the summary as JSON, and nothing else

	messages int64 // of Signals; 0: until the end of the demo
}

// site is where a demo runs.
type site struct {
	sensors *sensors
	broker  string // URL
	folder  string // of the state
	log     *slog.Logger
}

// Run runs the demo until its length, the end of the file or ctx, then prints a
// summary on out.
func (d *Config) Run(ctx context.Context, out, errOut io.Writer) error {
	sensors, err := d.openSensors(ctx, errOut)
	if err != nil {
		return err
	}
	defer sensors.close()
	folder, err := os.MkdirTemp("", "edge-demo-")
	if err != nil {
		return fmt.Errorf("demo: a folder for its state: %w; set TMPDIR to a folder in which you may write", err)
	}
	defer os.RemoveAll(folder)
	defer removeAtSecond(folder)()
	broker, err := embedded.Start("127.0.0.1:0", embedded.Options{})
	if err != nil {
		return err
	}
	defer broker.Close()
	at := site{sensors, broker.URL(), folder, terminal.NewLogger(slog.LevelWarn, "auto", errOut)}
	if d.Fleet > 0 {
		return d.runFleet(ctx, at, out, errOut)
	}
	return d.runNode(ctx, at, out, errOut)
}

// removeAtSecond removes a folder at the second SIGINT or SIGTERM, and ends the process as that
// signal would, until stop is called.
func removeAtSecond(folder string) (stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		<-signals // it ends the context of the command
		if second, ok := (<-signals).(syscall.Signal); ok {
			os.RemoveAll(folder)
			os.Exit(128 + int(second))
		}
	})
	return func() {
		signal.Stop(signals)
		close(signals)
		waiting.Wait()
	}
}

// runNode runs the demo of one node.
func (d *Config) runNode(ctx context.Context, at site, out, errOut io.Writer) error {
	if d.Length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Length)
		defer cancel()
	}
	sensors := at.sensors
	cfg, err := d.config(at)
	if err != nil {
		return exit.With(exit.Config, fmt.Errorf("demo: %w", err))
	}
	show := newView(out, sensors)
	if d.AsJSON {
		show = newView(errOut, sensors)
		show.muted = !terminal.IsTerminal(errOut)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	show.out = &ending{Writer: show.out, end: end}
	sensor := newSensor(d, sensors)
	daemon, err := daemon.New(cfg, at.log, func(p *stream.Prediction) {
		sensor.predicted.Add(1)
		show.predicted(p)
	})
	if err != nil {
		return err
	}
	sensor.ready = func() bool { return daemon.Stats().Subscribed }
	var player player = &replay.Player{
		Rows: sensors.rows, Features: sensors.features, Topic: "sensors/" + sensors.name, Prefix: sensors.name,
		Rate: d.Rate, Labels: replay.LabelsInline, Fraction: sensors.labels, Seed: d.Seed, Ahead: 100,
	}
	if d.Signals {
		player = sensor
	}
	show.begin(at.broker, daemon.PageURL())
	curve, took, err := play(ctx, daemon, stream.ModelName(sensors.name), player, cfg.MQTT, show)
	if unfinished(err) {
		at.log.Warn("this machine is too busy: the demo ended before the last samples were learnt; the summary does not include them")
	} else if err != nil {
		return err
	}
	result, err := report.New(sensors.name, daemon.Loop(stream.ModelName(sensors.name)).Learner(), curve, took)
	if err != nil {
		return err
	}
	if d.AsJSON {
		return terminal.PrintJSON(out, result)
	}
	err = report.Print(out, []*report.Report{result})
	if rows := daemon.Stats().Streams[stream.ModelName(sensors.name)].Signals; rows != nil {
		fmt.Fprintf(out, "%d rows: %d windows of %d rows, of which %d were labelled (%d late, %d gaps, %d mixed)\n", rows.Rows, rows.Samples, windowRows, result.Samples, rows.Late, rows.Gaps, rows.Mixed)
	}
	return err
}

// player publishes rows until they or ctx end, and returns the number of samples that the
// daemon will judge.
type player interface {
	Play(ctx context.Context, connection mqtt.Config) (samples int, err error)
}

// play runs daemon and player until the rows end and are learnt, or ctx ends,
// then stops the daemon. Afterwards the daemon's learners may be read. took is
// the time until the stop.
func play(ctx context.Context, daemon *daemon.Daemon, model string, player player, broker mqtt.Config, show *view) (curve report.Curve, took time.Duration, err error) {
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

	tick := time.NewTicker(updateEvery)
	defer tick.Stop()
	update := func() {
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
		case err = <-served: // the daemon has ended by itself
			quit()
			<-played
			return curve, time.Since(start), err
		case <-tick.C:
			update()
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
	took = time.Since(start)
	stop()
	err = errors.Join(err, <-served)
	show.end(loop.Status())
	return curve, took, err
}
