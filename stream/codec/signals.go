package codec

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"edge/stream/field"
	"edge/stream/signal"
	"edge/stream/topic"
)

// Raw configures how payloads become the rows of a stream with signals.
type Raw struct {
	// Values are rules for the values of signals, by name. A signal without a rule
	// takes numbers, also as text; true and false, ON and OFF, open and closed, online
	// and offline are 1 and 0; null, "", unknown, unavailable, none and nan are missing.
	Values map[string]Value `yaml:"values"`
	// Rate is the sampling rate of the rows in one payload, in Hz. Default 0: the rows
	// share the payload's time.
	Rate Rate `yaml:"rate"`
	// Inputs are the topics of a stream whose signals come on several ones, by name and
	// in order. Empty: the stream has topics of its own.
	Inputs Inputs `yaml:"inputs"`
	// QoS of the stream's subscriptions: 0, 1 or 2. Default "": that of mqtt.
	QoS QoS `yaml:"qos"`
}

// Rate is the sampling rate of the rows in a payload: Hz, or the path of a member of
// the payload that holds it. The zero value: none.
type Rate struct {
	Hz   float64
	Path string
}

// Form implements the forms of a configuration value: a number, or {path: fs}.
func (r *Rate) Form(kind field.Kind) any {
	switch {
	case kind == field.Word:
		*r = Rate{}
		return &r.Hz
	case kind == field.Mapping:
		*r = Rate{}
		return (*ratePath)(r)
	case kind == field.Present && r.Path != "":
		return (*ratePath)(r)
	case kind == field.Present:
		return &r.Hz
	}
	return nil
}

// Forms lists the forms.
func (*Rate) Forms() string { return "a number of Hz, or {path: KEY}, the member that holds it" }

// ratePath is a Rate that is written as a mapping.
type ratePath struct {
	Hz   float64 `yaml:"-"`
	Path string  `yaml:"path"`
}

// QoS is a quality of service, "" for that of the connection.
type QoS string

// UnmarshalText reads 0, 1, 2 or "".
func (q *QoS) UnmarshalText(text []byte) error {
	switch word := string(text); word {
	case "", "0", "1", "2":
		*q = QoS(word)
		return nil
	default:
		return fmt.Errorf("%.40s: want 0, 1 or 2, or \"\" for that of mqtt", word)
	}
}

// MarshalText returns the text of the configuration.
func (q QoS) MarshalText() ([]byte, error) { return []byte(q), nil }

// Level returns the quality of service, with a default for "".
func (q QoS) Level(byDefault int) int {
	if n, err := strconv.Atoi(string(q)); err == nil {
		return n
	}
	return byDefault
}

// SignalNames returns the names of the S signals of a row, in the order of Reading.X; nil
// for a stream without signals. A signal that is one-hot has a name for each of its words.
func (s Stream) SignalNames() []string {
	var names []string
	for _, from := range s.Sources() {
		for _, name := range from.Stage.Signals {
			words := from.Raw.Values[name].OneHot
			if len(words) == 0 {
				names = append(names, name)
			}
			for _, word := range words {
				names = append(names, name+"."+word)
			}
		}
	}
	return names
}

// StageConfig returns the configuration of the stage, with the signals of all inputs and
// those of one-hot rules. It is not Set where the stream has no signals. It is not inlined: the
// value is large.
//
//go:noinline
func (s Stream) StageConfig() signal.Config {
	c := s.Stage
	c.Signals = s.SignalNames()
	return c
}

// Filters returns the MQTT filters of the stream, or those of its inputs. It is not inlined, which
// would make its callers 400 bytes larger.
//
//go:noinline
func (s Stream) Filters() []string {
	filters := slices.Clone(s.Topics)
	for _, in := range s.Raw.Inputs {
		filters = append(filters, in.Topics...)
	}
	return filters
}

// SignalLevel is the level of a topic template that names the signal; FeatureLevel has
// the same meaning.
const SignalLevel = "{signal}"

// DeviceTemplate returns the topic template without the level that names the feature or
// signal: the other levels name the device.
func (s Stream) DeviceTemplate() string {
	if s.Format != FormatValue {
		return s.TopicTemplate
	}
	return strings.Replace(strings.Replace(s.TopicTemplate, FeatureLevel, "+", 1), SignalLevel, "+", 1)
}

// Devices returns the number of devices that may have windows: one if neither topic nor payload
// names a device.
func (s Stream) Devices() int {
	if slices.ContainsFunc(s.Sources(), func(s Stream) bool {
		return strings.Contains(s.DeviceTemplate(), "{") || len(s.Entries.Device.levels()) > 0
	}) {
		return s.Stage.Window.Devices
	}
	return 1
}

// checkStage checks the signals and the stage, or that a stream without signals has
// neither. The stage's features are checked only where valid is true: the rest of the
// stream has no error.
func (s *Stream) checkStage(valid bool) error {
	if len(s.Stage.Signals) == 0 && len(s.Raw.Inputs) == 0 {
		return s.checkNoStage()
	}
	own, names := DefaultStream(), s.SignalNames()
	errs := []error{
		field.Check(s.Dimension == 0, "dimension", s.Dimension, "none: signals have names"),
		field.Check(s.Join == own.Join, "join", s.Join, "none in a stream with signals: hold keeps values of several topics"),
		field.Check(s.ID == "" || s.ID == own.ID, "id", s.ID, "none: the samples of a stream with signals have ids of their own"),
		field.Check(len(names) <= maxFeatures, "signals", fmt.Sprintf("%d names", len(names)), fmt.Sprintf("at most %d", maxFeatures)),
		s.checkHold(),
	}
	if twice := firstTwice(names); twice != "" {
		if firstTwice(s.Stage.Signals) == "" { // which the payload's checks report
			errs = append(errs, field.Check(false, "signals", twice, "each name once, in all inputs and with the words of one_hot"))
		}
		return field.Join(errs...)
	}
	stage := s.StageConfig()
	err := field.Join(append(errs, stage.Validate())...)
	if err == nil && valid {
		names, err = stage.Features(s.Features)
		if twice := firstTwice(names); twice != "" {
			err = field.Check(false, "signals", twice, "a name that no feature of the windows has")
		}
	}
	return err
}

// checkNoStage checks that a stream without signals has no key that needs them.
func (s *Stream) checkNoStage() error {
	var (
		errs []error
		def  = signal.DefaultConfig()
		need = func(ok bool, key string, value any) {
			errs = append(errs, field.Check(ok, key, value, "signals beside it: without them the numbers of a payload are the sample"))
		}
	)
	need(len(s.Raw.Values) == 0, "values", "{…}")
	need(s.Raw.Rate == Rate{}, "rate", s.Raw.Rate)
	need(!s.Stage.Hold.Set() && s.Stage.Hold.MaxAge == 0, "hold", "{…}")
	need(len(s.Stage.Derive) == 0, "derive", "{…}")
	need(len(s.Stage.Calendar) == 0, "calendar", s.Stage.Calendar)
	need(s.Stage.TimeZone == "", "time_zone", s.Stage.TimeZone)
	w := s.Stage.Window
	w.Of = def.Window.Of // an empty list is not nil
	need(len(s.Stage.Window.Of) == 0 && reflect.DeepEqual(w, def.Window) || reflect.DeepEqual(w, signal.Window{}), "window", "{…}")
	return field.Join(errs...)
}

// String returns the rate as it is configured.
func (r Rate) String() string {
	if r.Path != "" {
		return "{path: " + r.Path + "}"
	}
	return strconv.FormatFloat(r.Hz, 'g', -1, 64)
}

// MinRate and maxRate bound a rate, in Hz: a row in eleven days, and one a nanosecond.
const (
	MinRate = 1e-6
	maxRate = 1e9
)

func (s *Stream) checkRate() error {
	r := s.Raw.Rate
	if r.Path == "" {
		return field.Check(r.Hz == 0 || r.Hz >= MinRate && r.Hz <= maxRate, "rate", r, "0, or 1e-6 to 1e9 Hz")
	}
	return field.Join(
		checkPath("rate.path", r.Path),
		field.Check(s.Format == FormatJSON || s.Format == FormatCBOR, "rate", r, "a number: payloads of "+s.Format+" have no member beside the rows"),
	)
}

// firstTwice returns the first name that occurs twice, "" if none does.
func firstTwice(names []string) string {
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if seen[name] {
			return name
		}
		seen[name] = true
	}
	return ""
}

// checkInputs checks the inputs of a stream. The stream must not have a key that its inputs have of
// their own.
func (s *Stream) checkInputs() error {
	own := DefaultStream()
	none := func(ok bool, key string, value any) error {
		return field.Check(ok, key, value, "none beside inputs, which have their own")
	}
	errs := []error{
		none(len(s.Topics) == 0, "topics", s.Topics),
		none(s.TopicTemplate == "", "topic_template", s.TopicTemplate),
		none(s.Format == own.Format, "format", s.Format),
		none(s.Compression == own.Compression, "compression", s.Compression),
		none(len(s.Stage.Signals) == 0, "signals", s.Stage.Signals),
		none(len(s.Fields) == 0, "fields", "{…}"),
		none(len(s.Columns) == 0, "columns", s.Columns),
		none(len(s.Raw.Values) == 0, "values", "{…}"),
		none(s.Raw.Rate == Rate{}, "rate", s.Raw.Rate),
		none(s.Time == own.Time, "time", s.Time),
		none(s.Label == own.Label, "label", s.Label),
		none(s.AllowRetained == own.AllowRetained, "allow_retained", s.AllowRetained),
		none(s.MaxPayload == own.MaxPayload, "max_payload", s.MaxPayload),
		none(s.Entries.Batch == own.Entries.Batch, "batch", s.Entries.Batch),
		none(len(s.Entries.Device.levels()) == 0, "device", "{…}"),
		none(len(s.Entries.Where) == 0, "where", "{…}"),
	}
	for _, in := range s.Raw.Inputs {
		key, of := "inputs."+in.Name, s.From(in)
		errs = append(errs,
			field.Check(topic.IsName(in.Name) && in.Name != HoldAny, "inputs", in.Name, "names of [a-z0-9_-], and not "+HoldAny),
			field.Check(in.MaxAge.Time >= 0, key+".max_age", in.MaxAge, "0s or more"),
			field.Within(key, of.checkPayload()))
	}
	return field.Join(errs...)
}

// checkHold checks the names of the inputs whose values make a row.
func (s *Stream) checkHold() error {
	var errs []error
	var names []string
	want := HoldAny + ": the stream has no inputs"
	for _, in := range s.Raw.Inputs {
		names = append(names, in.Name)
		want = HoldAny + ", or inputs: " + strings.Join(names, ", ")
	}
	for _, name := range s.Stage.Hold.On {
		errs = append(errs, field.Check(name == HoldAny || slices.Contains(names, name), "hold.on", name, want))
	}
	return field.Join(errs...)
}

// HoldAny, in Hold.On, stands for every input.
const HoldAny = "any"

// checkValues checks the rules for values.
func (s *Stream) checkValues() error {
	var errs []error
	for _, name := range field.Names(s.Raw.Values) {
		key := "values." + name
		if !slices.Contains(s.Stage.Signals, name) {
			errs = append(errs, field.Check(false, "values", name, "the name of a signal"+didYouMean(name, s.Stage.Signals)))
			continue
		}
		v := s.Raw.Values[name]
		errs = append(errs, field.Within(key, v.Validate()),
			field.Check(!s.raw() || len(v.Map)+len(v.OneHot) == 0 && v.Unit == "", key, "{…}", "scale and offset alone: raw numbers have no words"))
	}
	return field.Join(errs...)
}

// Value is the rule for the values of one signal. At most one of Map, OneHot and Unit is
// given; Scale and Offset are applied to what results: value·scale + offset.
type Value struct {
	// Map gives the numbers of texts, booleans and numbers.
	Map map[string]float64 `yaml:"map"`
	// Other is the meaning of a text that is not known: refuse, missing, or a number.
	// Default refuse.
	Other Other `yaml:"other"`
	// OneHot are up to 32 words, each a signal NAME.WORD that is 1 when it comes, else
	// 0.
	OneHot []string `yaml:"one_hot"`
	// Unit may follow a number in a text: "12.5 W".
	Unit string `yaml:"unit"`
	// Scale and Offset change the number. Defaults 1, 0.
	Scale  float64 `yaml:"scale"`
	Offset float64 `yaml:"offset"`
}

// DefaultValue returns the defaults of a rule.
func DefaultValue() Value { return Value{Scale: 1} }

// UnmarshalYAML sets absent keys to their defaults.
func (v *Value) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Value
	p := plain(DefaultValue())
	if err := unmarshal(&p); err != nil {
		return err
	}
	*v = Value(p)
	return nil
}

const (
	maxOneHot = 32 // words
	maxWord   = 64 // bytes
)

// Validate reports every field that is out of range, joined.
func (v Value) Validate() error {
	kinds := 0
	for _, set := range []bool{len(v.Map) > 0, len(v.OneHot) > 0, v.Unit != ""} {
		if set {
			kinds++
		}
	}
	hot := len(v.OneHot) > 0
	errs := []error{
		field.Check(kinds <= 1, "map", "{…}", "at most one of map, one_hot and unit"),
		field.Check(len(v.OneHot) <= maxOneHot, "one_hot", fmt.Sprintf("%d words", len(v.OneHot)), fmt.Sprintf("at most %d", maxOneHot)),
		field.Check(len(v.Map) <= 1000, "map", fmt.Sprintf("%d words", len(v.Map)), "at most 1000"),
		field.Check(firstTwice(v.OneHot) == "", "one_hot", v.OneHot, "each word once"),
		field.Check(!hot || v.Other.Number == 0, "other", v.Other, "refuse, missing, or 0 for none of the words"),
		field.Check(!hot || v.Scale == 1 && v.Offset == 0, "scale", v.Scale, "1, and offset 0: the signals of one_hot are 0 and 1"),
		field.Check(v.Scale != 0 && !math.IsInf(v.Scale, 0) && !math.IsNaN(v.Scale), "scale", v.Scale, "a number other than 0"),
		field.Check(!math.IsInf(v.Offset, 0) && !math.IsNaN(v.Offset), "offset", v.Offset, "a number"),
		field.Check(len(v.Unit) <= maxWord && strings.TrimSpace(v.Unit) == v.Unit && !strings.ContainsAny(firstByte(v.Unit), "0123456789.+-"), "unit", fmt.Sprintf("%.40q", v.Unit), "a word such as W or °C"),
	}
	for _, word := range v.OneHot {
		errs = append(errs, field.Check(word != "" && len(word) <= maxWord, "one_hot", fmt.Sprintf("%.40q", word), fmt.Sprintf("words of 1 to %d bytes", maxWord)))
	}
	for _, word := range field.Names(v.Map) {
		number, _, ok := plainNumber(word)
		to, twice := v.Map[number]
		errs = append(errs,
			field.Check(len(word) <= maxWord, "map", fmt.Sprintf("%.40q", word), fmt.Sprintf("words of at most %d bytes", maxWord)),
			field.Check(!ok || number == word || !twice || to == v.Map[word], "map", word, "one value for one number: "+number+" is a key as well"))
	}
	return field.Join(errs...)
}

func firstByte(text string) string { return text[:min(len(text), 1)] }

// Other is the meaning of a text that a rule does not know. The zero value refuses it.
type Other struct {
	Missing bool // it is a missing value
	Numeric bool // it is Number
	Number  float64
}

// String returns refuse, missing, or the number.
func (o Other) String() string {
	switch {
	case o.Missing:
		return "missing"
	case o.Numeric:
		return strconv.FormatFloat(o.Number, 'g', -1, 64)
	}
	return "refuse"
}

// MarshalText is String.
func (o Other) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads refuse, missing, or a number.
func (o *Other) UnmarshalText(text []byte) error {
	switch word := string(text); word {
	case "refuse":
		*o = Other{}
	case "missing":
		*o = Other{Missing: true}
	default:
		v, err := decimal(word)
		if err != nil {
			return fmt.Errorf("%.40s: want refuse, missing, or a number", cmp.Or(word, `""`))
		}
		*o = Other{Numeric: true, Number: v}
	}
	return nil
}

// entriesOf returns the entries of a list as those of an ordered mapping.
func entriesOf[T any](list []T, name func(*T) string, value func(*T) any) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for i := range list {
			if !yield(name(&list[i]), value(&list[i])) {
				return
			}
		}
	}
}
