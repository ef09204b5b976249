package membership

import (
	"fmt"
	"slices"

	"edge/online/fleet"
	"edge/stream/field"
)

// Collector collects the retained messages of a fleet for a tool that is no member. One
// goroutine uses it.
type Collector struct {
	topics   Topics
	payloads map[string][]byte // by topic
	bytes    int
	dropped  int
}

// NewCollector returns an empty collector.
func NewCollector(t Topics) *Collector { return &Collector{topics: t, payloads: map[string][]byte{}} }

// Receive takes a message. It keeps no more than MaxHeld bytes, and ignores other topics.
func (c *Collector) Receive(topic string, payload []byte) {
	bytes := c.bytes + len(payload) - len(c.payloads[topic])
	if !c.topics.Has(topic) {
		return
	} else if bytes > MaxHeld {
		c.dropped++
		return
	}
	c.bytes = bytes
	if c.payloads[topic] = slices.Clone(payload); len(payload) == 0 {
		delete(c.payloads, topic)
	}
}

// Dropped is the number of messages for which there was no room.
func (c *Collector) Dropped() int { return c.dropped }

// Members returns the names of the members of which there is a message, in order, with
// BasisName for a common basis.
func (c *Collector) Members() (names []string) {
	for topic := range c.payloads {
		if name, _, ok := c.topics.Read(topic); ok {
			names = append(names, name)
		}
	}
	return field.Distinct(names)
}

// Kept returns the topics on which there is a message of a member, in order.
func (c *Collector) Kept(member string) (topics []string) {
	for topic := range c.payloads {
		if name, _, ok := c.topics.Read(topic); ok && name == member {
			topics = append(topics, topic)
		}
	}
	slices.Sort(topics)
	return topics
}

// Strays returns the topics on which there is a message, and that no member has, in order.
func (c *Collector) Strays() (topics []string) {
	for topic := range c.payloads {
		if _, _, ok := c.topics.Read(topic); !ok {
			topics = append(topics, topic)
		}
	}
	slices.Sort(topics)
	return topics
}

// Contribution returns the contribution of a member, and its encoding. The error is
// ErrParts or that of fleet.Decode. For BasisName it returns a header: of the common basis
// the author, the number as the epoch, and the labels by which it was made.
func (c *Collector) Contribution(member string) (*fleet.Contribution, []byte, error) {
	data := c.payloads[c.topics.Contribution(member)]
	if len(data) == 0 {
		return nil, nil, fmt.Errorf("fleet: %s has parts, and no list of them: %w", member, ErrParts)
	}
	if isList(data) {
		l, err := decodeList(data)
		if err != nil {
			return nil, nil, err
		}
		a := &assembly{}
		a.addList(l)
		for i := range l.parts {
			if part := c.payloads[c.topics.Part(member, i)]; len(part) > 0 {
				if err := a.addPart(i, part, fleet.MaxBytes-a.bytes, false); err != nil {
					return nil, nil, err
				}
			}
		}
		if data = a.whole(); data == nil {
			return nil, nil, fmt.Errorf("fleet: %s: parts are missing: %w", member, ErrParts)
		}
	}
	if member == BasisName {
		basis, err := fleet.DecodeCommon(data)
		if err != nil {
			return nil, data, err
		}
		h := fleet.Header{Member: basis.Author, Version: fleet.Version{Epoch: basis.Number}, Classes: basis.Classes}
		for _, n := range basis.Counts {
			h.N += n
		}
		return &fleet.Contribution{Header: h}, data, nil
	}
	decoded, err := fleet.Decode(data)
	if err == nil && decoded.Member != member {
		err = fmt.Errorf("fleet: the contribution on the topic of %s is of %.40q: %w", member, decoded.Member, fleet.ErrContribution)
	}
	return decoded, data, err
}
