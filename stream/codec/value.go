package codec

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"edge/stream/topic"
)

// valueCodec reads one decimal number, or one value of a signal; the topic names the
// feature or signal.
type valueCodec struct{ *schema }

func (c valueCodec) decode(payload []byte) ([]Reading, *Refusal) {
	if c.signals != nil {
		if len(c.names) > 1 {
			return nil, Refuse(Unrouted, "a value without a topic that names its signal")
		}
		return c.signal(new(Scratch), 0, payload)
	}
	v, err := decimal(afterTime(string(bytes.TrimSpace(payload))))
	if err != nil && bytes.ContainsAny(payload, "{[") {
		return nil, Refuse(NotANumber, "it is JSON: with format: json the path of the value in fields reads it, for several topics with signals and an input for each")
	}
	if err != nil {
		return nil, Refuse(NotANumber, "%w; signals in place of features read words and units", err)
	}
	return []Reading{{X: []float64{v}}}, nil
}

// signal reads the value of signal i; the others are absent.
func (c valueCodec) signal(s *Scratch, i int, payload []byte) ([]Reading, *Refusal) {
	size := len(c.signals.names)
	s.x = slices.Grow(s.x[:0], size)[:size]
	s.absent = slices.Grow(s.absent[:0], size)[:size]
	rule := &c.signals.rules[i]
	for j := range s.x {
		s.x[j] = math.NaN()
		s.absent[j] = j < rule.at || j >= rule.at+rule.width()
	}
	text := string(bytes.TrimSpace(payload))
	if strings.HasPrefix(text, `"`) && gjson.Valid(text) && !rule.known(s.x, text) {
		text = gjson.Parse(text).Str
	}
	if err := rule.text(s.x, afterTime(text)); err != nil {
		if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
			err = Refuse(NotANumber, "signal %.40q is JSON: with format: json the path of the value in fields reads it, for several topics with an input for each", rule.name)
		}
		return nil, err
	}
	r := Reading{X: s.x}
	if size > rule.width() {
		r.Absent = s.absent
	}
	if !c.signals.hold && rule.isMissing(s.x) {
		return nil, Refuse(MissingFeature, "signal %.40q has no value; hold keeps last values", rule.name)
	}
	if !c.signals.hold && !c.lenient && size > rule.width() {
		return nil, Refuse(MissingFeature, "a message has one signal of %d: hold keeps the values of the others", size)
	}
	s.readings = append(s.readings[:0], r)
	return s.readings, nil
}

// afterTime returns a value without the Unix time that collectd writes before it, as in
// 1795363500.123:91.2.
func afterTime(text string) string {
	if when, value, ok := strings.Cut(text, ":"); ok && len(when) >= len("1000000000") && isDecimal(when) {
		return value
	}
	return text
}

// DecodeMessage is DecodeTo for streams with signals, of which the topic may name one.
func (d *Decoder) DecodeMessage(s *Scratch, topic string, payload []byte) ([]Reading, error) {
	if d.topics == nil {
		return d.DecodeTo(s, payload)
	}
	i, err := d.topics.Index(topic)
	if err != nil {
		return nil, err
	}
	if payload, err = d.open(payload); err != nil {
		return nil, err
	}
	readings, err := d.codec.(valueCodec).signal(s, i, payload)
	if err != nil {
		return nil, err
	}
	return readings, nil
}

// ValueTopics finds the feature or signal to which a value belongs: by the filter of its
// topics, or by the level of the topic that names it.
type ValueTopics struct {
	index   map[string]int // of those that a topic level names
	filters []string       // of the topics of each; "" if the level names it
	level   int            // index of the topic level with the name; −1: none
	word    string         // feature or signal
}

// NewValueTopics returns the topics of a stream's features or signals.
func NewValueTopics(names []string, s Stream) *ValueTopics {
	t := &ValueTopics{index: make(map[string]int, len(names)), filters: make([]string, len(names)), word: "feature"}
	if len(s.Stage.Signals) > 0 {
		t.word = "signal"
	}
	levels := strings.Split(s.TopicTemplate, "/")
	if t.level = slices.Index(levels, FeatureLevel); t.level < 0 {
		t.level = slices.Index(levels, SignalLevel)
	}
	for i, name := range names {
		if t.filters[i] = s.Fields[name]; t.filters[i] == "" {
			t.index[name] = i
		}
	}
	if len(names) == 1 && t.level < 0 && t.filters[0] == "" {
		t.filters[0] = "#" // every message is a sample
	}
	return t
}

// Index returns the index of the feature or signal on a topic.
func (t *ValueTopics) Index(name string) (int, *Refusal) {
	for i, f := range t.filters {
		if f != "" && topic.Matches(f, name) {
			return i, nil
		}
	}
	n := 0
	for level := range strings.SplitSeq(name, "/") {
		if n++; n <= t.level {
			continue
		}
		if t.level < 0 {
			break
		}
		i, ok := t.index[level]
		if !ok {
			return 0, Refuse(UnknownFeature, "%.40q in the topic is not a %s: list it in %ss, or take topics without it", level, t.word, t.word)
		}
		return i, nil
	}
	return 0, Refuse(UnknownFeature, "no %s has this topic", t.word)
}
