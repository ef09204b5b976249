package stream

import (
	"strings"

	"edge/stream/codec"
	"edge/stream/topic"
)

// source is an origin of messages: a stream, or topics of labels.
type source struct {
	name          string
	key           string // of its filters in the configuration
	filters       []string
	decoder       *codec.Decoder
	template      *topic.Template
	features      []string // names of the features of a stream's samples
	stage         *stage   // of a stream with signals, and of its inputs
	input         int      // index of an input
	qos           codec.QoS
	states        []*stage // that labels of this source are the state of
	allowRetained bool
	impute        bool                       // missing features are imputed
	feeds         []feed                     // models of a stream
	models        []*modelState              // models of the feeds, or of the labels
	handle        func(*item, *source) error // of messages without samples or labels
	matches       map[string]topicMatch      // of recent topics; owned by the worker
	ownTopic      string                     // <base>/<node>/<model>/label, for the source of that topic
	identity      string                     // stream name in the keys of its samples in the journal
	joiners
	*sourceCounts
}

// isEntry reports whether the source is a configured one of labels that name their samples, or the newest one.
func (s *source) isEntry() bool { return s.name == labelsName && s.ownTopic == "" && s.states == nil }

// feed connects a stream to a model.
type feed struct {
	to   *modelState
	pick []int // indices of the model's features in the stream; nil for all
}

// inputs returns the model's features of those of a sample of the stream.
func (f *feed) inputs(x []float64) []float64 {
	if f.pick == nil {
		return x
	}
	picked := make([]float64, len(f.pick))
	for j, feature := range f.pick {
		picked[j] = x[feature]
	}
	return picked
}

// topicMatch is the result of matching a topic with a template.
type topicMatch struct {
	levels []string // captured levels
	device string   // captured levels, joined by /
}

// match returns the match of a topic, and of a device that the payload names, "" for none; most
// matches are cached.
func (s *source) match(topic, device string) topicMatch {
	key := topic
	if device != "" {
		key += "\x00" + device // which no topic has
	}
	p, ok := s.matches[key]
	if !ok {
		p.levels = s.template.Capture(topic)
		if device != "" {
			p.levels = append(p.levels, strings.Split(device, "/")...)
		}
		if s.stage != nil { // those that all inputs have
			p.levels, _ = s.stage.of.template.Arrange(s.template, p.levels)
		}
		p.device = deviceName(p.levels)
		putBounded(&s.matches, key, p)
	}
	return p
}

// deviceName returns the name of the device that captured levels distinguish.
func deviceName(levels []string) string { return strings.Join(levels, "/") }

// naming is the relation of a label's topic to the devices of a stream.
type naming int

const (
	anyDevice   naming = iota // it names none
	oneDevice                 // it has all levels of the stream's devices
	someDevices               // it has some of them
	noDevice                  // it names a device that the stream cannot have
)

// levels returns the levels of a stream's devices that a label's topic has, "" for the
// others. They are nil for anyDevice and noDevice, and for a stream that has one device.
func (s *source) levels(topic string, captured []string, stream *source) ([]string, naming) {
	want := len(stream.template.Names)
	if s.ownTopic != "" {
		rest, named := strings.CutPrefix(topic, s.ownTopic+"/")
		levels := strings.Split(rest, "/")
		switch {
		case named && len(levels) == want:
			return levels, oneDevice
		case named:
			return nil, noDevice
		case want == 0:
			return nil, oneDevice
		}
		return nil, anyDevice
	}
	switch levels, found := stream.template.Arrange(s.template, captured); {
	case want == 0:
		return nil, oneDevice
	case found == want:
		return levels, oneDevice
	case found > 0:
		return levels, someDevices
	}
	return nil, anyDevice
}
