package membership

import (
	"fmt"
	"time"

	"edge/online/fleet"
)

// echo is the state of the latest publication at the broker.
type echo struct {
	fresh    bool      // it is not known yet whether the broker keeps it
	passed   time.Time // when the broker has passed it on; zero: it has not
	twice    bool      // it was published again, since the broker had passed it on and did not keep it
	kept     int       // bytes of the largest message that the broker keeps, as it has shown in this connection
	reported bool      // fleet_not_kept, since the last one that was kept
	upload
}

// upload is the way of a publication to the broker. Over a slow connection it takes long, and as long the way back.
type upload struct {
	left  time.Time     // when it was on its way last; zero: it has not been seen there
	took  time.Duration // until it had arrived
	first int           // connection in which it was on its way first
}

// sending notes that a publication is on its way in a connection, begun at since. Where it ends connections, or takes
// too long, smaller messages are the remedy: then it says nothing.
func (u *upload) sending(now, since time.Time, connection int) {
	if u.first == 0 {
		u.first = connection
	}
	if now.Sub(since) <= maxUpload && connection-u.first < maxStrikes {
		u.left = now
	}
}

// patience is the time that a publication of this connection has to come back, from left on.
func (u *upload) patience(since time.Time) time.Duration {
	return keptWithin + max(0, u.left.Sub(since))
}

// Sending notes whether the own contribution and the common basis are on their way to the broker.
func (m *Member) Sending(now time.Time, own, basis bool) {
	if own && m.link.up {
		m.own.sending(now, m.since(m.name), m.link.number)
	} else {
		m.own.took = max(m.own.took, m.own.left.Sub(m.since(m.name)))
	}
	if basis && m.link.up {
		m.basis.sending(now, m.since(BasisName), m.link.number)
	}
}

// since is the time of the latest publication of the own contribution, or of the common basis, or of the connection
// after it, which has published it again.
func (m *Member) since(name string) time.Time {
	if name == BasisName {
		return latest(m.basis.sent, m.link.at)
	}
	return latest(m.own.at, m.link.at)
}

// patience is the time within which a message comes back that was published, or asked for.
func (m *Member) patience(name string) time.Duration {
	switch name {
	case m.name:
		patience := m.own.patience(m.since(name))
		if m.own.left.Before(m.link.at) { // it comes with the retained messages
			patience += min(m.link.gap, mostGap)
		}
		return patience
	case BasisName:
		return m.basis.patience(m.since(name))
	}
	return keptWithin
}

// notRetained describes a message that the broker passes on and does not keep.
const notRetained = "came back, and the broker does not keep it: does it limit the size or the number of retained messages (EMQX: max_payload_size, max_retained_messages)?"

// connected forgets what the broker has shown in an earlier connection. A publication that it has passed on
// is no longer asked for: if it keeps it, it comes with the retained messages.
func (e *echo) connected() {
	e.fresh = e.fresh && e.passed.IsZero()
	e.passed, e.kept = time.Time{}, 0
}

// cameBack notes that the latest publication has come from the broker. A broker may pass on a message
// and not keep it, because it is too large to be kept, or one too many: one that is larger than what the
// broker has shown to keep is asked for.
func (m *Member) cameBack(now time.Time, retained bool) {
	o := &m.own
	size, answer := min(o.bytes, m.limit()), !o.passed.IsZero() && m.asked(m.name) && !m.asking.open[m.name].Before(o.passed)
	switch {
	case retained || answer: // not all brokers mark a retained message
		o.kept = max(o.kept, size)
	case size > o.kept && o.fresh:
		if o.passed.IsZero() {
			if o.passed = now; !m.asked(m.name) { // else checkEcho asks: that answer may be of the contribution before
				m.asking.own, m.asking.due = now, append(m.asking.due, m.name)
			}
		}
		return
	}
	o.fresh, o.twice, o.reported = false, false, false
}

// checkEcho looks for a publication that does not come back, or is not kept. It waits behind the retained
// messages, which a slow connection brings for minutes; if they are more than a broker sends at
// once, the publication may be one of those that it has left out.
func (m *Member) checkEcho(now time.Time) {
	o := &m.own
	if o.Version == (fleet.Version{}) || o.again || o.stopped != "" {
		return
	}
	if !o.fresh {
		if now.Sub(latest(m.link.at, m.link.brought)) >= keptWithin+m.link.gap && !m.link.kept && o.at.Before(m.link.at) {
			o.again = true // the broker has lost its retained messages
		}
		return
	}
	since, patience := latest(m.since(m.name), o.left, m.link.brought), m.patience(m.name)
	switch {
	case now.Sub(latest(since, m.asking.own)) < patience:
		return
	case m.asking.own.Before(since): // it may have been lost on the way back
		m.asking.own, m.asking.due = now, append(m.asking.due, m.name)
		return
	}
	o.fresh = false
	if !o.passed.IsZero() && !o.twice { // a broker that starts may not keep anything yet
		o.twice, o.again = true, true
		return
	}
	many := m.link.retained > askAllBelow
	if !o.reported {
		o.reported = true
		why := "does it limit the size of messages, or the topics that this node may write and read?"
		if many {
			why = fmt.Sprintf("it has sent %d others: raise the number that it sends at once (mosquitto: max_queued_messages), or give each site a concept of its own", m.link.retained)
		}
		what := fmt.Sprintf("did not come back from the broker within %v: %s", patience.Round(time.Second), why)
		if !o.passed.IsZero() {
			what = notRetained
		}
		m.event("fleet_not_kept", fmt.Sprintf("the contribution of %d bytes %s", o.bytes, what))
	}
	if !many {
		m.halve()
	}
}

// halve lets the contribution be published again in messages of half the size. It reports false if
// they would be too small.
func (m *Member) halve() bool {
	o := &m.own
	// Two parts of any contribution, also of another version that is packed into some bytes more.
	least, largest := min(leastMessage, o.bytes/2+packedMore), min(o.bytes, m.limit())
	limit := max(largest/2+packedMore, least) + partExtra
	if largest <= leastMessage+partExtra && o.parts > 0 || limit >= largest {
		return false
	}
	o.limit, o.again = limit, true
	return true
}

// limit is the largest message of a publication.
func (m *Member) limit() int {
	if m.own.limit > 0 {
		return min(int(m.cfg.MaxMessage), m.own.limit)
	}
	return int(m.cfg.MaxMessage)
}

// strike counts a connection that ended right after a publication, and reports whether
// its messages are withdrawn: smaller ones follow, or nothing more.
func (m *Member) strike(now time.Time) bool {
	o := &m.own
	since := m.since(m.name)
	if !o.published || !o.fresh || !o.passed.IsZero() || o.stopped != "" || now.Sub(since) >= lostWithin {
		return false
	}
	if o.strikes++; o.strikes < maxStrikes {
		return false
	}
	const why = "the connection ended %d times right after a contribution of %d bytes was published: %s; does the broker limit the size of packets?"
	if times := o.strikes; m.halve() {
		o.fresh, o.strikes = false, 0
		m.event("fleet_not_kept", fmt.Sprintf(why, times, o.bytes, fmt.Sprintf("it follows in messages of %d bytes at most", m.limit())))
		return true
	}
	m.stop(fmt.Sprintf(why, o.strikes, o.bytes, "nothing more is published until the next start"), "fleet_not_kept")
	return true
}
