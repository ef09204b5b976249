package codec

import (
	"slices"

	"edge/stream/signal"
)

// StageOptions returns the options of the stage of a stream with signals: its features,
// in the order of the models, its inputs and its rate.
func (s Stream) StageOptions() signal.Options {
	opts := signal.Options{Config: s.StageConfig(), Features: s.Features, Rate: s.Raw.Rate.Hz}
	on := s.Stage.Hold.On
	for _, in := range s.Raw.Inputs {
		of := signal.Input{MaxAge: s.MaxAge(in), On: slices.Contains(on, HoldAny) || slices.Contains(on, in.Name)}
		from := 0
		if n := len(opts.Inputs); n > 0 {
			from = opts.Inputs[n-1].Signals[len(opts.Inputs[n-1].Signals)-1] + 1
		}
		for i := range s.From(in).SignalNames() {
			of.Signals = append(of.Signals, from+i)
		}
		opts.Inputs = append(opts.Inputs, of)
	}
	return opts
}

// ArrivalTimes reports whether payloads of the stream, or of one of its inputs, have no
// time: the rows then have that of their arrival.
func (s Stream) ArrivalTimes() bool {
	for _, in := range s.Raw.Inputs {
		if s.From(in).ArrivalTimes() {
			return true
		}
	}
	if len(s.Raw.Inputs) > 0 {
		return false
	}
	return s.Time == "" || s.Format == FormatValue || s.raw() || s.Format == formatCSV && !slices.Contains(s.Columns, PlainName(s.Time))
}
