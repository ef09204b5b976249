package demo

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"edge/internal/config"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/online"
	"edge/stream"
	"edge/stream/codec"
	"edge/stream/field"
	"edge/stream/signal"
)

// Labels of the simulated sensors: a fraction of the samples is sent without, so
// that a person can label them on the page.
const (
	labelFraction = 0.6
	pendingTTL    = time.Minute // that a sample waits for its label
	pendingMax    = 10_000      // samples that wait
)

// sensors are the source of the demo's samples.
type sensors struct {
	name     string
	rows     dataset.Rows // nil: the sensor sends raw signals
	features []string
	classes  []string
	gaps     bool    // features or labels are missing
	labels   float64 // fraction of the rows that is sent with its label
	close    func() error
}

// openSensors opens the data file, or returns the simulated sensors. It reports rows that are
// left out on errOut.
func (d *Config) openSensors(ctx context.Context, errOut io.Writer) (*sensors, error) {
	if d.Signals {
		s := &sensors{name: "vibration", classes: states, labels: labelFraction, close: func() error { return nil }}
		s.features = vibrationStream().FeatureNames()
		return s, nil
	}
	if d.File == "" && d.Fleet > 0 {
		m, err := newMachines(d.Seed)
		if err != nil {
			return nil, err
		}
		return &sensors{"vibration", m, m.stage.Features(), states, false, 1, func() error { return nil }}, nil
	}
	if d.File == "" {
		w := dataset.NewWaveform(d.Seed)
		return &sensors{"waveform", w, w.Features(), w.Classes(), false, labelFraction, func() error { return nil }}, nil
	}
	if err := d.Data.Check(); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	summary, err := dataset.Summarize(ctx, d.File, d.Data.Format)
	if err != nil {
		return nil, err
	}
	d.Data.Warn(errOut, d.File, summary.Warning)
	switch n := summary.Empty; {
	case n == summary.Rows:
		return nil, fmt.Errorf("%s: every row lacks all features", d.File)
	case n > 0:
		fmt.Fprintf(errOut, "%s: %d of %d rows are left out, which lack all features\n", d.File, n, summary.Rows)
	}
	file, err := dataset.Open(d.File, d.Data.Format)
	if err != nil {
		return nil, err
	}
	return &sensors{file.Name, &sampleRows{rows: file}, file.Features, summary.Classes, summary.Gaps > 0, 1, file.Close}, nil
}

// sampleRows leaves out rows without a feature, which a daemon refuses and a player would
// wait for, and numbers the others.
type sampleRows struct {
	rows   dataset.Rows
	number int
}

func (s *sampleRows) Next(row *dataset.Row) error {
	for {
		if err := s.rows.Next(row); err != nil {
			return err
		}
		if !row.Empty() {
			s.number++
			row.Number = s.number
			return nil
		}
	}
}

// vibrationStream returns the stream of the simulated sensor of vibrations, without its
// topic. Its windows do not overlap, so that no row is both learnt and judged.
func vibrationStream() codec.Stream {
	in := codec.DefaultStream()
	in.ID, in.Time, in.Raw.Rate.Hz = "", "t", vibrationRate
	in.Stage.Signals = []string{"x", "y", "z"}
	in.Stage.Window.Length, in.Stage.Window.Hop = signal.Span{Rows: windowRows}, signal.Span{Rows: windowRows}
	return in
}

// config returns the configuration of a daemon that learns from the sensors.
func (d *Config) config(at site) (*config.Config, error) {
	c, s := config.Default(), at.sensors
	name := stream.ModelName(s.name)
	in, m := codec.DefaultStream(), config.DefaultModel()
	if d.Signals {
		in = vibrationStream()
		m.Learner.Temporal = online.TemporalOff // each state lasts: its order alone would predict most labels
	} else {
		in.Features = s.features
	}
	in.Topics = []string{"sensors/" + s.name}
	if s.gaps {
		in.OnMissing = codec.OnMissingImpute
	}
	in.MaxPayload = max(in.MaxPayload, field.ByteSize(40*len(s.features))) // a number takes 25 bytes at most
	m.Streams, m.Learner.Classes.Names = []string{name}, s.classes
	m.Learner.Classes.Max = max(m.Learner.Classes.Max, len(s.classes))
	if s.labels < 1 {
		m.Pending.TTL, m.Pending.Max = pendingTTL, pendingMax
	}
	c.Node, c.MQTT.Servers = "demo", []string{at.broker}
	c.Streams[name], c.Models[name] = in, m
	c.Store.Path = filepath.Join(at.folder, "edge.db")
	c.HTTP.Listen = "127.0.0.1:0"
	c.Control.Enabled = true // the page accepts labels
	return &c, c.Validate()
}
