package doctor

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"edge/internal/config"
	"edge/internal/doctor/diagnosis"
	"edge/stream/codec"
	"edge/stream/signal"
)

const (
	assumedRate = 100.  // rows a second of a stream whose rate is not known
	stageRows   = 32    // of a synthetic message
	burstRows   = 256   // of one that is a window
	stageTakes  = 64    // messages between two looks at the clock
	busyStage   = 0.25  // fraction of a processor above which doctor warns
	stageStart  = 1.7e9 // s since 1970, of the first synthetic row
)

// stageSpeed is the measured speed of the stage of one stream on this machine.
type stageSpeed struct {
	RowsASecond    float64 `json:"rows_per_second"`    // of one device: by rate or hold.every, or assumed
	Assumed        bool    `json:"assumed"`            // RowsASecond is
	SamplesASecond float64 `json:"samples_per_second"` // that these rows make
	RowMicros      float64 `json:"row_us"`             // mean time of a row, its part of the features included
	Processor      float64 `json:"processor"`          // fraction of one processor that RowsASecond rows take
	Rows           int     `json:"rows"`               // measured
	MessageRows    int     `json:"message_rows"`       // of them in one message
}

// stageRate returns the rows a second of one device, and whether it is assumed.
func stageRate(s codec.Stream) (rate float64, assumed bool) {
	switch every := s.Stage.Hold.Every; {
	case every > 0:
		return 1 / every.Seconds(), false
	case s.Raw.Rate.Hz > 0:
		return s.Raw.Rate.Hz, false
	}
	return assumedRate, true
}

// measureStage gives the stage of a stream random rows of one device at its rate, until
// within has passed or ctx ends. The time is that of the stage alone: reading, decoding
// and predicting are not in it.
func measureStage(ctx context.Context, s codec.Stream, within time.Duration) (stageSpeed, error) {
	speed := stageSpeed{MessageRows: stageRows}
	speed.RowsASecond, speed.Assumed = stageRate(s)
	opts := s.StageOptions()
	if opts.Config.Window.Length.Message {
		speed.MessageRows = burstRows
	}
	stage, err := signal.NewStage(opts, nil)
	if err != nil {
		return speed, err
	}
	inputs := max(len(opts.Inputs), 1)
	rng := rand.New(rand.NewPCG(1, 1))
	m := signal.Message{Own: true}
	for range speed.MessageRows {
		x := make([]float64, len(opts.Config.Signals))
		for j := range x {
			x[j] = rng.NormFloat64()
		}
		m.Rows = append(m.Rows, signal.Row{X: x})
	}
	at, step := int64(stageStart*1e9), int64(1e9/speed.RowsASecond)
	first, samples := at, 0
	var took time.Duration
	// A window, or many rows, at least: the first ones are not like the others.
	size := opts.Config.Size(speed.RowsASecond)
	least := max(8*speed.MessageRows, 2*size.Rows)
	for end := time.Now().Add(within); (speed.Rows < least || samples == 0 || time.Now().Before(end)) && time.Now().Before(end.Add(within)) && ctx.Err() == nil; {
		began := time.Now()
		for i := range stageTakes {
			for k := range m.Rows {
				at += step
				m.Rows[k].Time = at
			}
			m.Input, m.Arrived = i%inputs, at
			samples += len(stage.Take(&m))
			speed.Rows += speed.MessageRows
		}
		took += time.Since(began)
	}
	if speed.Rows > 0 {
		speed.RowMicros = took.Seconds() * 1e6 / float64(speed.Rows)
		if speed.SamplesASecond = size.PerHour / 3600; size.PerHour == 0 {
			speed.SamplesASecond = float64(samples) / (float64(at-first) / 1e9)
		}
		speed.Processor = speed.RowMicros / 1e6 * speed.RowsASecond
	}
	return speed, nil
}

// examineStage measures the stage of one stream with signals.
func examineStage(ctx context.Context, d *diagnosis.Diagnosis, cfg *config.Config, name string, within time.Duration) {
	check, s := "signals of "+name, cfg.Streams[name]
	v, err := measureStage(ctx, s, within)
	if err != nil {
		d.Fail(check, err.Error(), "")
		return
	}
	if v.Rows == 0 {
		return // the examination has ended
	}
	detail := fmt.Sprintf("%.4g rows/s → %.3g samples/s, %s of this processor for each device, beside receiving and decoding them", v.RowsASecond, v.SamplesASecond, percent(v.Processor))
	if s.Stage.Window.Length.Message {
		detail += fmt.Sprintf("; in messages of %d rows", v.MessageRows)
	}
	if v.Assumed {
		detail += "; the rate is assumed, as the configuration does not have it"
	}
	if v.Processor > busyStage {
		d.Add(check, diagnosis.Warn, detail, "a longer hop, fewer features, or none of the groups spectrum and bands", v)
		return
	}
	d.Add(check, diagnosis.OK, detail, "", v)
}

// percent returns a fraction in percent with two digits, below 0.01 % as that.
func percent(v float64) string {
	switch p := 100 * v; {
	case p < 0.01:
		return "less than 0.01 %"
	case p < 1:
		digits := 1 - int(math.Floor(math.Log10(p)))
		return fmt.Sprintf("%.*f %%", min(digits, 2), p)
	default:
		return fmt.Sprintf("%.3g %%", p)
	}
}
