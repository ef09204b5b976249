package codec

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"edge/stream/field"
)

// Input is one of several sources of a stream's signals: topics and the decoding of
// their payloads. Its keys have the meaning of those of a stream.
type Input struct {
	// Name of the input, its key in the configuration.
	Name string `yaml:"-"`
	// Topics are MQTT filters.
	Topics []string `yaml:"topics"`
	// TopicTemplate names levels of the topics. The levels that the templates of all
	// inputs have join the inputs of one device.
	TopicTemplate string `yaml:"topic_template"`
	// Format and Compression of the payloads. Defaults json, none.
	Format      string `yaml:"format" jsonschema:"enum=json,enum=cbor,enum=float32,enum=float64,enum=influx,enum=csv,enum=value"`
	Compression string `yaml:"compression" jsonschema:"enum=none,enum=gzip,enum=zstd,enum=auto"`
	// Signals of the input, in the order of an array. Default: the names in Fields, or
	// else one signal with the name of the input.
	Signals []string `yaml:"signals"`
	// Fields are the paths of signals in the payload.
	Fields Paths `yaml:"fields"`
	// Columns of csv, in order.
	Columns []string `yaml:"columns"`
	// Values are rules for the values of signals.
	Values map[string]Value `yaml:"values"`
	// Time is the path of the payload's time. Default ts.
	Time string `yaml:"time"`
	// Label is the path of a label in the payload. Default "": the input has none.
	Label string `yaml:"label"`
	// MaxPayload bounds a message. Default 64KiB.
	MaxPayload field.ByteSize `yaml:"max_payload"`
	// AllowRetained accepts messages that the broker kept: true, false, or auto: where
	// values are held and never get too old. Default auto.
	AllowRetained Switch `yaml:"allow_retained"`
	// QoS of the subscriptions. Default "": that of the stream.
	QoS QoS `yaml:"qos"`
	// MaxAge is the age above which a value is missing; 0s: none. Default "": max_age
	// of hold.
	MaxAge Age `yaml:"max_age"`
	// Rate of the rows in one payload. Default 0.
	Rate Rate `yaml:"rate"`
	// Entries say which rows a payload has, and of which device.
	Entries Entries `yaml:",inline"`
}

// DefaultInput returns the defaults of an input, without topics.
func DefaultInput() Input {
	s := DefaultStream()
	return Input{Format: s.Format, Compression: s.Compression, Time: s.Time, MaxPayload: s.MaxPayload, AllowRetained: switchAuto, Entries: DefaultEntries()}
}

// UnmarshalYAML sets absent keys to their defaults.
func (in *Input) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Input
	p := plain(DefaultInput())
	p.Name = in.Name
	if err := unmarshal(&p); err != nil {
		return err
	}
	*in = Input(p)
	return nil
}

// signalNames returns the names of the input's signals as they are configured.
func (in Input) signalNames() []string {
	switch {
	case len(in.Signals) > 0:
		return in.Signals
	case len(in.Fields) > 0:
		names := make([]string, len(in.Fields))
		for i, f := range in.Fields {
			names[i] = f.Name
		}
		return names
	}
	return []string{in.Name}
}

// Sources returns the streams of all inputs, each alone; without inputs the stream itself.
func (s Stream) Sources() []Stream {
	if len(s.Raw.Inputs) == 0 {
		return []Stream{s}
	}
	all := make([]Stream, len(s.Raw.Inputs))
	for i, in := range s.Raw.Inputs {
		all[i] = s.From(in)
	}
	return all
}

// From returns the stream of one input alone: its topics and payloads, without the
// steps of the stage.
func (s Stream) From(in Input) Stream {
	of := DefaultStream()
	of.Topics, of.TopicTemplate, of.Format, of.Compression = in.Topics, in.TopicTemplate, in.Format, in.Compression
	of.Columns, of.Time, of.Label, of.LabelMap = in.Columns, in.Time, in.Label, s.LabelMap
	of.OnMissing, of.MaxPayload, of.MaxBatch = s.OnMissing, in.MaxPayload, s.MaxBatch
	if of.AllowRetained = switchOff; s.TakesRetained(in) {
		of.AllowRetained = switchOn
	}
	of.Fields = in.Fields.paths()
	of.Entries = in.Entries
	of.Raw = Raw{Values: in.Values, Rate: in.Rate, QoS: in.QoS}
	if in.QoS == "" {
		of.Raw.QoS = s.Raw.QoS
	}
	of.Stage.Signals, of.Stage.TimeZone = in.signalNames(), s.Stage.TimeZone
	return of
}

// MaxAge returns the age above which a value of the input is missing, 0 for none.
func (s Stream) MaxAge(in Input) time.Duration {
	if in.MaxAge.Set {
		return in.MaxAge.Time
	}
	return s.Stage.Hold.MaxAge
}

// TakesRetained reports whether messages of the input that the broker kept are values.
func (s Stream) TakesRetained(in Input) bool {
	return in.AllowRetained.or(s.Stage.Hold.Set() && s.MaxAge(in) == 0)
}

// AcceptsRetained reports whether messages on the stream's own topics that the broker kept are
// accepted.
func (s Stream) AcceptsRetained() bool {
	return s.AllowRetained.or(s.Stage.Hold.Set() && s.Stage.Hold.MaxAge == 0)
}

// Inputs are inputs in the order of the configuration, where they are a mapping from
// name to Input.
type Inputs []Input

// Entry returns the input of a name, a new one at the end if there is none.
func (l *Inputs) Entry(name string) any {
	i := slices.IndexFunc(*l, func(in Input) bool { return in.Name == name })
	if i < 0 {
		i = len(*l)
		*l = append(*l, Input{Name: name})
	}
	return &(*l)[i]
}

// Entries returns names and inputs in order.
func (l *Inputs) Entries() iter.Seq2[string, any] {
	return entriesOf(*l, func(in *Input) string { return in.Name }, func(in *Input) any { return in })
}

// Path is the place of a signal in a payload.
type Path struct{ Name, Path string }

// Paths are paths in the order of the configuration, where they are a mapping from
// signal to path.
type Paths []Path

// Entry returns the path of a signal, a new one at the end if there is none.
func (l *Paths) Entry(name string) any {
	i := slices.IndexFunc(*l, func(p Path) bool { return p.Name == name })
	if i < 0 {
		i = len(*l)
		*l = append(*l, Path{Name: name})
	}
	return &(*l)[i].Path
}

// Entries returns signals and paths in order.
func (l *Paths) Entries() iter.Seq2[string, any] {
	return entriesOf(*l, func(p *Path) string { return p.Name }, func(p *Path) any { return &p.Path })
}

// paths returns the paths by signal.
func (l Paths) paths() map[string]string {
	if len(l) == 0 {
		return nil
	}
	m := make(map[string]string, len(l))
	for _, p := range l {
		m[p.Name] = p.Path
	}
	return m
}

// Age is a longest age. The zero value: not configured.
type Age struct {
	Set  bool
	Time time.Duration
}

// String returns the age as it is configured.
func (a Age) String() string {
	if !a.Set {
		return ""
	}
	return a.Time.String()
}

// MarshalText is String.
func (a Age) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads a duration, or "".
func (a *Age) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*a = Age{}
		return nil
	}
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%.40s: want a duration with its unit, such as 250ms, 30s or 24h", text)
	}
	*a = Age{Set: true, Time: d}
	return nil
}

// Switch is true, false, or auto: as other keys require.
type Switch string

const (
	switchAuto Switch = "auto"
	switchOn   Switch = "true"
	switchOff  Switch = "false"
)

// or returns the value of the switch, byDefault for auto.
func (w Switch) or(byDefault bool) bool { return w == switchOn || w != switchOff && byDefault }

// MarshalText returns the text of the configuration.
func (w Switch) MarshalText() ([]byte, error) { return []byte(w), nil }

// UnmarshalText reads auto, true, false, and the other words of YAML for the two.
func (w *Switch) UnmarshalText(text []byte) error {
	switch strings.ToLower(string(text)) {
	case "auto":
		*w = switchAuto
	case "true", "yes", "on":
		*w = switchOn
	case "false", "no", "off":
		*w = switchOff
	default:
		return fmt.Errorf("%.40s: want true, false or auto", text)
	}
	return nil
}

// didYouMean returns a hint at the candidate that is closest to a word, "" if none is.
func didYouMean(word string, candidates []string) string {
	if near := field.Nearest(word, candidates); near != "" {
		return "; did you mean " + strconv.Quote(near) + "?"
	}
	return ""
}
