package stream

import (
	"strings"

	"edge/stream/codec"
	"edge/stream/topic"
)

// source is where messages come from: a stream, or topics of labels.
type source struct {
	name          string
	key           string // of its filters in the configuration
	filters       []string
	decoder       *codec.Decoder
	template      *topic.Template
	joiner        *joiner // of a stream whose messages hold one value each; the worker's
	allowRetained bool
	impute        bool                       // what is missing is filled in
	feeds         []feed                     // of a stream
	models        []*modelState              // of the feeds; or whom the labels are for
	handle        func(*item, *source) error // of messages that are not samples or labels
	matches       map[string]topicMatch      // of the latest topics; the worker's
	ownTopic      string                     // <base>/<node>/<model>/label, for the source that listens there
	identity      string                     // name that the keys of its samples have in the journal
	*sourceCounts
}

// feed is how a stream reaches a model.
type feed struct {
	to   *modelState
	pick []int // indices of the model's features among the stream's; nil for all
}

// place is what a topic says about where a sample is from.
type topicMatch struct {
	levels []string // captured
	device string   // the same, with / between them
}

// place returns that of a topic, which most likely has come before.
func (s *source) match(topic string) topicMatch {
	p, ok := s.matches[topic]
	if !ok {
		p.levels = s.template.Capture(topic)
		p.device = strings.Join(p.levels, "/")
		putBounded(&s.matches, topic, p)
	}
	return p
}

// levels returns what a label's topic says about the levels that a stream
// captures; false if it does not say all of them.
func (s *source) levels(topic string, captured []string, stream *source) ([]string, bool) {
	if len(stream.template.Names) == 0 {
		return nil, true
	}
	if s.ownTopic != "" {
		rest, ok := strings.CutPrefix(topic, s.ownTopic+"/")
		levels := strings.Split(rest, "/")
		return levels, ok && len(levels) == len(stream.template.Names)
	}
	return stream.template.Arrange(s.template, captured)
}
