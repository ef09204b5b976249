package codec

import (
	"slices"

	"edge/stream/signal"
)

// StageOptions returns the options of the stage of a stream with signals: its features,
// in the order of the models, its inputs and its rate.
func (s Stream) StageOptions() signal.Options {
	opts := signal.Options{Config: s.StageConfig(), Features: s.Features, Rate: s.Raw.Rate.Hz}
	on, next := s.Stage.Hold.On, 0
	for _, in := range s.Raw.Inputs {
		of := signal.Input{MaxAge: s.MaxAge(in), On: slices.Contains(on, HoldAny) || slices.Contains(on, in.Name)}
		for range s.From(in).SignalNames() {
			of.Signals = append(of.Signals, next)
			next++
		}
		opts.Inputs = append(opts.Inputs, of)
	}
	return opts
}

// ArrivalTimes reports whether payloads of the stream, or of one of its inputs, have no
// time: the rows then have that of their arrival.
func (s Stream) ArrivalTimes() bool {
	return slices.ContainsFunc(s.Sources(), func(s Stream) bool {
		return s.Time == "" || s.Format == FormatValue || s.raw() || s.Format == formatCSV && !slices.Contains(s.Columns, PlainName(s.Time))
	})
}
