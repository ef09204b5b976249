package stream

import (
	"container/list"
	"strings"
	"sync/atomic"
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
	unused *atomic.Uint64 // counts the values that did not become part of a sample
	recent recentMessages

	devices map[string]*list.Element
	order   list.List // of *partialSample, longest silence first
}

// joiners are those of one stream; nil for a stream whose messages have whole samples. The worker owns
// them.
type joiners struct {
	joiner *joiner
	early  *joiner // of the values that are answered before their turn: they come again for joiner
}

func newJoiners(s codec.Stream, counts *counters) joiners {
	return joiners{newJoiner(s, &counts.valuesUnused), newJoiner(s, new(atomic.Uint64))}
}

// partialSample holds the values of a device's next sample.
type partialSample struct {
	device string
	x      []float64
	at     []time.Time // zero for a missing value
}

func newJoiner(s codec.Stream, unused *atomic.Uint64) *joiner {
	names := s.FeatureNames()
	return &joiner{
		topics: codec.NewValueTopics(names, s), names: names,
		window: s.Join.Window, max: s.Join.Devices, unused: unused, devices: map[string]*list.Element{},
	}
}

// add accepts a value and returns the sample that it completes, nil if the sample is
// still incomplete.
func (j *joiner) add(topic, device string, value float64, now time.Time) ([]float64, error) {
	i, err := j.topics.Index(topic)
	if err != nil {
		return nil, err
	}
	if len(j.names) == 1 {
		return []float64{value}, nil
	}
	if len(device) > maxCachedName {
		return nil, codec.Refuse(codec.BadTopic, "the topic names a device with %d bytes, at most %d are kept", len(device), maxCachedName)
	}
	e := j.devices[device]
	if e == nil {
		for len(j.devices) >= j.max {
			j.drop(j.order.Front())
		}
		d := len(j.names)
		e = j.order.PushBack(&partialSample{device: strings.Clone(device), x: make([]float64, d), at: make([]time.Time, d)})
		j.devices[device] = e
	}
	j.order.MoveToBack(e)
	u := e.Value.(*partialSample)
	if !u.at[i].IsZero() {
		j.unused.Add(1)
	}
	u.x[i], u.at[i] = value, now
	for _, at := range u.at {
		if at.IsZero() || now.Sub(at) > j.window {
			return nil, nil
		}
	}
	j.order.Remove(e)
	delete(j.devices, device)
	return u.x, nil
}

// refusal returns the error of a value that is none: on a topic of no feature that is the reason.
func (j *joiner) refusal(topic string, err error) error {
	if j != nil {
		if _, other := j.topics.Index(topic); other != nil {
			return other
		}
	}
	return err
}

// drop removes the values of a device.
func (j *joiner) drop(e *list.Element) {
	u := j.order.Remove(e).(*partialSample)
	delete(j.devices, u.device)
	for _, at := range u.at {
		if !at.IsZero() {
			j.unused.Add(1)
		}
	}
}
