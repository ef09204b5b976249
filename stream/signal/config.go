package signal

import (
	"time"

	"edge/stream/field"
	"edge/stream/signal/formula"
)

// Config describes how the rows of a stream become samples. The zero value of each part
// leaves it out.
type Config struct {
	// Signals are the names of the S numbers of a row, in the order of an array.
	Signals []string `yaml:"signals"`
	// Hold keeps the last values of signals that come at different moments.
	Hold Hold `yaml:"hold"`
	// Derive are signals made from others, in order: p: log10(1 + power).
	Derive Formulas `yaml:"derive"`
	// Calendar are signals of the row's local time: hour, weekday, yearday. Each is two:
	// hour.sin and hour.cos.
	Calendar []string `yaml:"calendar"`
	// TimeZone is the zone of Calendar and of times without one, such as Europe/Berlin.
	// Default "": the host's.
	TimeZone string `yaml:"time_zone"`
	// Window makes one sample of many rows.
	Window Window `yaml:"window"`
}

// Formulas are derived signals in the order of the configuration, where they are a
// mapping from name to expression.
type Formulas []formula.Definition

// Hold configures rows of held values. Without Every and On the rows are as they come.
type Hold struct {
	// Every makes a row at each multiple of this time since 1970. Range 10ms to 24h.
	Every time.Duration `yaml:"every"`
	// On makes a row whenever one of these inputs brings a value; any: each of them.
	On field.Words `yaml:"on"`
	// MaxAge is the age above which a held value is missing; an input may have its own.
	// 0: none. Default 0.
	MaxAge time.Duration `yaml:"max_age"`
}

// Set reports whether values are held.
func (h Hold) Set() bool { return h.Every != 0 || len(h.On) > 0 }

// Window configures the windows of a stream. Without a length every row is a sample.
type Window struct {
	// Length is a number of rows, a time, or message: the rows of one message.
	Length Span `yaml:"length"`
	// Hop is the distance between two windows, of the kind of Length and at most as
	// long. Default half of it.
	Hop Span `yaml:"hop"`
	// MaxGap is the silence of a device after which its window begins anew. Default ten
	// rows and at least 2ms where the stream has a rate; else 1m by rows, a quarter of Length
	// by time. Before a message of rows without times, at least half of the time that they
	// take; where rows are held, at least ten times Every.
	MaxGap time.Duration `yaml:"max_gap"`
	// MinRows is the number of rows below which a window by time is left out, and of
	// values, or of all rows if they are fewer, below which the features of a signal are
	// missing. Default 8.
	MinRows int `yaml:"min_rows"`
	// Resample makes, of a window by time, Length/Resample values of each signal: the
	// last one at each moment. Default 0s: the rows as they are.
	Resample time.Duration `yaml:"resample"`
	// Of are the signals that have windows; the others give their last value. Default:
	// the derived ones, and those that no derived one uses.
	Of []string `yaml:"of"`
	// Features are names and groups of features, for each signal: default, shape, level,
	// time, spectrum, bands. Default [default].
	Features Choice `yaml:"features"`
	// Correlations adds the correlation of each pair of signals, of at most six. Default
	// true.
	Correlations bool `yaml:"correlations"`
	// Label decides when a window with several labels has one: pure (at least 90 % of the
	// rows have it, and no row another), majority or last. Default pure.
	Label string `yaml:"label"`
	// MaxRows bounds the rows of a window by time. Default 4096, range 2 to 1000000.
	MaxRows int `yaml:"max_rows"`
	// Devices is the number of devices that have windows; the one that is silent for
	// longest makes room. Default 1000, range 1 to 100000.
	Devices int `yaml:"devices"`
	// Floor is added to a standard deviation before its logarithm is taken, in the unit
	// of the signal. Default 0.001.
	Floor float64 `yaml:"floor"`
}

// Choice names features and groups: All for every signal, or Of for each one, by its
// name. In the configuration it is a list, or a mapping from signal to list.
type Choice struct {
	All []string
	Of  map[string][]string
}

// How a window with several labels gets one.
const (
	LabelPure     = "pure"
	LabelMajority = "majority"
	LabelLast     = "last"
)

// DefaultConfig returns the defaults that configs/edge.yaml documents. It is not inlined: the
// value is large.
//
//go:noinline
func DefaultConfig() Config {
	return Config{Window: Window{
		MinRows: 8, Features: Choice{All: []string{"default"}}, Correlations: true, Label: LabelPure,
		MaxRows: 4096, Devices: 1000, Floor: 0.001,
	}}
}

// Set reports whether the stream has the stage.
func (c Config) Set() bool { return len(c.Signals) > 0 }

// Hop returns the distance between two windows: as configured, or half of their length.
// It is zero without windows, and for windows that are messages.
func (c *Config) Hop() Span {
	w := &c.Window
	if w.Hop.Set() {
		return w.Hop
	}
	return Span{Rows: (w.Length.Rows + 1) / 2, Time: w.Length.Time / 2}
}
