package mqtt

import "time"

const (
	maxEnds    = 3                // connections that one publication may end before it is discarded
	slowEnds   = 6                // the same, if one came later than lostWithin: the broker may be slow
	lostWithin = 10 * time.Second // time from a publication to the end that it causes
	limitHolds = time.Minute      // time after which a limit of the broker is tried again: the broker may have restarted thrice
	limitStays = 24 * time.Hour   // the longest, since that time doubles with each confirmation
)

// culprit finds the publications upon which the broker ends the connection: MQTT 3.1.1
// has no other answer to a packet that is too large, or to a topic that is forbidden. After
// an end that several may have caused, the next ones are proven, those of QoS 0 by a ping each.
// The goroutine of Outbox.Serve owns it.
type culprit struct {
	single  int    // number of publications that are sent one at a time
	proving int    // number of publications that are proven, of QoS 0 as well
	topic   string // of the publication that ended the last connection
	bytes   int    // of its topic and payload
	ends    int    // number of connections in a row that it ended, or one that is as large
	slow    bool   // one of them came later than lostWithin

	passed int           // bytes of the largest publication that the broker has acknowledged
	limit  int           // bytes from which on publications are discarded; 0: none are
	since  time.Time     // time at which limit was found
	holds  time.Duration // time for which it holds
	tried  int           // limit that is tried again; 0: none is
}

// window returns the number of publications that may be unacknowledged, at most n.
func (c *culprit) window(n int) int {
	if c.single > 0 {
		return 1
	}
	return n
}

// proves reports whether the next publication is proven.
func (c *culprit) proves() bool { return c.single+c.proving > 0 }

// refuses reports whether the broker would end the connection upon a publication.
func (c *culprit) refuses(m *Publication) bool { return c.limit > 0 && m.size() >= c.limit }

// admits reports whether a publication is sent. When the limit has held for its time, the next
// one as large tries it again: one more end confirms it.
func (c *culprit) admits(m *Publication) bool {
	switch {
	case !c.refuses(m):
		return true
	case time.Since(c.since) < c.holds:
		return false
	}
	c.topic, c.bytes, c.ends, c.slow = "", c.limit, maxEnds-1, false
	c.limit, c.tried, c.single = 0, c.limit, max(c.single, 1)
	return true
}

// like reports whether a publication is the one that ended the last connection, a later one
// on its topic, or as large.
func (c *culprit) like(m *Publication) bool { return m.size() >= c.bytes || m.Topic == c.topic }

// acknowledged notes an acknowledgement by the broker.
func (c *culprit) acknowledged(m *Publication) {
	c.passed = max(c.passed, m.size())
	if c.tried > 0 && m.size() >= c.tried {
		c.tried, c.holds = 0, 0
	}
	if c.ends > 0 && c.like(m) {
		c.ends = 0
	}
	c.single, c.proving = max(c.single-1, 0), max(c.proving-1, 0)
}

// ended notes the end of a connection over which the broker did not acknowledge the oldest
// of n publications, and reports whether that one has ended too many; soon: it was sent less
// than lostWithin ago. Of several, any may have been the cause, or none, as in most losses. If the
// next connection ends upon them as well, the one after it sends them one at a time. If the broker
// has acknowledged none that is as large, the size is the likely reason, and sets limit; not if the
// broker was only slow.
func (c *culprit) ended(oldest *Publication, n int, soon bool) bool {
	switch {
	case n > 1 && c.proving == 0:
		c.proving = n
		return false
	case n > 1:
		c.single = max(c.single, n)
		return false
	}
	c.single = max(c.single, 1)
	size := oldest.size()
	if c.ends == 0 || !c.like(oldest) {
		c.topic, c.bytes, c.ends, c.slow = oldest.Topic, size, 0, false
	}
	c.bytes, c.slow = min(c.bytes, size), c.slow || !soon
	if c.ends++; c.ends < maxEnds || c.slow && c.ends < slowEnds {
		return false
	}
	c.ends = 0
	if c.slow {
		return true
	}
	if size <= c.passed {
		c.passed = size - 1 // of the next one the size is the reason: the broker may be another one now
		return true
	}
	if c.limit = c.tried; c.limit == 0 || c.bytes < c.limit {
		// Messages on one topic differ by some bytes; each smaller one would end connections.
		c.limit = c.bytes - (c.bytes-c.passed)/8
	}
	c.tried, c.since, c.holds = 0, time.Now(), min(max(2*c.holds, limitHolds), limitStays)
	return true
}

// endedOtherwise notes the end of a connection over which the broker has acknowledged all
// publications but those of QoS 0. The next ones are proven, unproven in number: 0 if none of
// QoS 0 can have been the cause.
func (c *culprit) endedOtherwise(unproven int) { c.single, c.proving, c.ends = 0, unproven, 0 }
