package stream

import (
	"container/list"
	"strings"
	"time"

	"edge/stream/codec"
)

// joiner makes samples of values that come on separate topics. For each device it keeps
// the newest value of each feature; as soon as every feature has a value that arrived
// within the window, these values are a sample, and are used up. Only the order and the
// times of arrival decide. A waiting value is lost with the process: it is acknowledged
// when it is accepted. A message that the broker repeats after a lost connection is recognised,
// or its value would wait for those of the next sample.
//
// Memory is bounded by the number of devices; the device with the longest silence makes
// room. One goroutine owns it.
type joiner struct {
	topics *codec.ValueTopics
	names  []string
	window time.Duration
	max    int
	counts *counters
	recent recentMessages

	devices map[string]*list.Element
	order   list.List // of *partialSample, longest silence first
}

// partialSample holds the values of a device's next sample.
type partialSample struct {
	device string
	x      []float64
	at     []time.Time // zero for a missing value
}

func newJoiner(s codec.Stream, counts *counters) *joiner {
	names := s.FeatureNames()
	return &joiner{
		topics: codec.NewValueTopics(names, s), names: names,
		window: s.Join.Window, max: s.Join.Devices, counts: counts, devices: map[string]*list.Element{},
	}
}

// add accepts a value and returns the sample that it completes, nil if the sample is
// still incomplete.
func (g *joiner) add(topic, device string, value float64, now time.Time) ([]float64, error) {
	i, err := g.topics.Index(topic)
	if err != nil {
		return nil, err
	}
	if len(g.names) == 1 {
		return []float64{value}, nil
	}
	if len(device) > maxCachedName {
		return nil, codec.Refuse(codec.BadTopic, "the topic names a device with %d bytes, at most %d are kept", len(device), maxCachedName)
	}
	e := g.devices[device]
	if e == nil {
		for len(g.devices) >= g.max {
			g.drop(g.order.Front())
		}
		d := len(g.names)
		e = g.order.PushBack(&partialSample{device: strings.Clone(device), x: make([]float64, d), at: make([]time.Time, d)})
		g.devices[device] = e
	}
	g.order.MoveToBack(e)
	u := e.Value.(*partialSample)
	if !u.at[i].IsZero() {
		g.counts.valuesUnused.Add(1)
	}
	u.x[i], u.at[i] = value, now
	for _, at := range u.at {
		if at.IsZero() || now.Sub(at) > g.window {
			return nil, nil
		}
	}
	g.order.Remove(e)
	delete(g.devices, device)
	return u.x, nil
}

// refusal returns the error of a value that is none: on a topic of no feature that is the reason.
func (g *joiner) refusal(topic string, err error) error {
	if g != nil {
		if _, other := g.topics.Index(topic); other != nil {
			return other
		}
	}
	return err
}

// drop removes the values of a device.
func (g *joiner) drop(e *list.Element) {
	u := g.order.Remove(e).(*partialSample)
	delete(g.devices, u.device)
	for _, at := range u.at {
		if !at.IsZero() {
			g.counts.valuesUnused.Add(1)
		}
	}
}
