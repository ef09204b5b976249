package membership

import (
	"fmt"
	"slices"
	"time"

	"edge/online/fleet"
	"edge/stream/field"
)

const (
	askAfter    = 2 * time.Minute  // least silence of a member after which its message is asked for
	askAllAfter = 10 * time.Minute // of a connection, after which the messages of all are asked for
	askFactor   = 4                // between one wait and the next
	askAtMost   = 24 * time.Hour   // longest wait
	askTogether = 4                // members at most that are asked for by name at once, else all: brokers limit the filters of a request
	askAllBelow = 1000             // retained messages at once, above which those of all are not asked for again
)

// all stands for all members, in place of a name.
const all = "#"

// asking asks the broker to send messages again that it keeps: those of silent members,
// one that did not come when it should, and now and then those of all, since one may be of a
// member that is not known yet. Messages are of QoS 0, and a cluster or a bridge loses one
// where its servers lose each other; a member without new labels publishes no more, so that
// nothing would replace the lost message. A member is silent after three times the pause between
// its latest two messages.
type asking struct {
	due  []string             // members whose messages are to be asked for
	open map[string]time.Time // since when, by member
	all  backoff              // for the messages of all, in this connection
	own  time.Time            // when the own message was asked for

	crowded bool // there was no room for a message, since all were asked for
	vacated bool // a member has left since
	room    bool // all are asked for because there is room
}

// backoff makes each wait longer than the one before.
type backoff struct {
	times int
	at    time.Time // of the latest one
}

// due reports whether the wait is over, of which the first is as long as given.
func (b *backoff) due(now, since time.Time, wait time.Duration) bool {
	for range b.times {
		wait = min(askFactor*wait, askAtMost)
	}
	if now.Sub(latest(since, b.at)) < min(wait, askAtMost) {
		return false
	}
	b.times, b.at = b.times+1, now
	return true
}

// ask returns the filters of the messages to be asked for, and of those that were.
func (m *Member) ask(now time.Time) (ask, enough []string) {
	a := &m.asking
	for _, name := range field.Names(a.open) {
		if now.Sub(a.open[name]) >= m.patience(name) {
			delete(a.open, name)
			a.room = a.room && name != all
			enough = append(enough, m.filters(name)...)
		}
	}
	due := a.due
	a.due = nil
	if !m.link.up {
		return nil, enough
	}
	for name, p := range m.peers {
		if p.asked.due(now, latest(p.received, m.link.at), max(askAfter, 3*p.pause)) {
			due = append(due, name)
		}
	}
	few := m.link.retained <= askAllBelow
	if few && (a.all.due(now, m.link.at, askAllAfter) || len(due) > askTogether) {
		due = []string{all}
	}
	if _, open := a.open[all]; few && a.vacated && !open { // earlier answers came when there was no room
		due, a.crowded, a.vacated, a.room = []string{all}, false, false, true
	}
	slices.Sort(due)
	for _, name := range due {
		if _, open := a.open[name]; !open {
			if a.open[name] = now; name == all {
				m.link.retained = 0
			}
			ask = append(ask, m.filters(name)...)
		}
	}
	return ask, enough
}

// filters returns the filters for the messages of a member, or of all.
func (m *Member) filters(name string) []string {
	filters := []string{m.topics.Contribution(name)}
	if m.parted && name != all {
		filters = append(filters, filters[0]+"/+")
	}
	return filters
}

// asked reports whether a message was asked for on this connection, and may still come.
func (m *Member) asked(name string) bool {
	at, open := m.asking.open[name]
	return open && !at.Before(m.link.at)
}

// awaited reports whether a message was asked for, by the name of its member or among those of all.
func (m *Member) awaited(name string) bool { return m.asked(name) || m.asked(all) }

// noteNewer notes a newer message of a member, and counts one that came because it was asked for.
func (m *Member) noteNewer(now time.Time, p *peer, c *fleet.Contribution, retained bool) {
	if retained && !m.asking.room && m.awaited(c.Member) {
		m.counts.Missed++
		m.note(now, "fleet_missed", c.Member, fmt.Sprintf("%s: the broker had not sent version %d.%d, and has it", c.Member, c.Epoch, c.Sequence))
	}
	if !retained && !p.received.IsZero() {
		p.pause = now.Sub(p.received)
	}
	p.asked = backoff{}
}

// latest returns the latest of some times. It is not inlined: it has many callers.
//
//go:noinline
func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }
