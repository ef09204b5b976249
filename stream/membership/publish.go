package membership

import (
	"fmt"
	"time"

	"edge/online/fleet"
)

// own is the publication of the own contribution.
type own struct {
	stored  uint64 // epoch that the state file knows
	epoch   uint64 // of this process; 0: not chosen yet
	durable bool   // epoch is in the state file
	found   bool   // the broker kept a message at the first connection
	former  former // that message, or an older one that came later

	fleet.Version           // of the latest publication
	at            time.Time // of it
	labels        uint64    // in it
	waiting       time.Time // since when the model has labels that are not in it; zero: it has none
	bytes         int       // of it
	parts         int
	published     bool   // by this process
	known         bool   // by this process, or by the one before
	again         bool   // it has to be published again
	limit         int    // of a message, halved whenever one was not kept; 0: that of the configuration
	cleared       bool   // the broker had it, and somebody has removed it
	strikes       int    // connections that ended right after it
	stopped       string // why nothing is published any more; "": it is
	echo
}

// echo is what has become of the latest publication at the broker.
type echo struct {
	fresh    bool      // it is not known yet whether the broker keeps it
	passed   time.Time // when the broker has passed it on; zero: it has not
	twice    bool      // it was published again, since the broker had passed it on and did not keep it
	kept     int       // bytes of the largest message that the broker keeps, as it has shown in this connection
	reported bool      // fleet_not_kept, since the last one that was kept
}

// notRetained says what became of a message that the broker passes on and does not keep.
const notRetained = "came back, and the broker does not keep it: does it limit the size or the number of retained messages (EMQX: max_payload_size, max_retained_messages)?"

// connected forgets what the broker has shown in an earlier connection. A publication that it has passed on
// is no longer asked for: what it keeps of it comes with the retained messages.
func (e *echo) connected() {
	e.fresh = e.fresh && e.passed.IsZero()
	e.passed, e.kept = time.Time{}, 0
}

// former is the message of another process that the broker brought last: of an earlier one,
// or of one that runs under the same name, which has displaced this one.
type former struct {
	fleet.Version
	instance, labels uint64
	bytes, parts     int
	compare          bool      // its labels with those of the model
	heard            time.Time // of the one that has displaced this one
	tried            backoff   // whether that one has ended
}

// Todo is the due work.
type Todo struct {
	Epoch    uint64        // to be made durable, see EpochDurable; 0: none
	Parts    bool          // the subscription to parts is needed
	Publish  bool          // the own contribution, see Publish
	Merge    *fleet.Set    // to be merged, see Merged; nil: none
	Announce []Publication // of a common basis
	Ask      []string      // filters to subscribe to, so that the broker sends messages again
	Enough   []string      // filters of which the subscription ends
}

// Learnt is the progress of the member's model.
type Learnt struct {
	Labels uint64
	Nats   float64 // sum of -log p(label) by the predictions before the labels were learnt
	Ready  bool    // there is something to contribute
	Behind bool    // the journal is being learnt
}

// Step returns the due work.
func (m *Member) Step(now time.Time, learnt Learnt) (todo Todo) {
	todo.Parts = m.parted
	m.info.observe(learnt.Nats)
	m.own.wait(now, learnt.Labels)
	if m.link.up {
		m.checkKept(now)
	}
	if m.link.up && !m.cfg.Follows() {
		m.chooseEpoch(now, gatherWithin)
		m.compareFormer(learnt)
		m.checkEcho(now)
		m.tryName(now)
		if !m.own.durable {
			todo.Epoch = m.own.epoch
		}
	}
	todo.Ask, todo.Enough = m.ask(now)
	todo.Publish = learnt.Ready && m.due(now, learnt.Labels)
	todo.Merge = m.mergeDue(now, learnt)
	todo.Announce = append(m.announce(now), m.takeBack(learnt)...)
	return todo
}

// takeBack returns the publications that remove from the broker what this node has published: as a
// member, before it was a follower, or of a model that has forgotten it. By a reset that one is in its
// warm-up again, and has nothing to publish for some time.
func (m *Member) takeBack(learnt Learnt) []Publication {
	o := &m.own
	switch {
	case m.cfg.Follows():
		if !o.found || !m.link.kept {
			return nil
		}
		o.found = false
		m.event("fleet_left", m.name+": this node only follows now, and its contribution is removed")
		return m.removal(m.name, o.former.parts)
	case !m.link.up || !o.known || o.cleared || o.stopped != "" || learnt.Ready || learnt.Behind || learnt.Labels >= o.labels:
		return nil
	}
	o.fresh, o.cleared, o.again = false, true, true
	m.event("fleet_left", m.name+": its model was reset, and its contribution is removed")
	return m.removal(m.name, o.parts)
}

// removal returns the publications that remove a member's message and its parts.
func (m *Member) removal(name string, parts int) []Publication {
	var all []Publication
	for _, topic := range m.topics.of(name, parts) {
		all = append(all, Publication{Topic: topic})
	}
	return all
}

// Leave is called before the last Final. It chooses the epoch of a node that ends before
// that was due, once the broker has been quiet, and returns it to be made durable; 0: none.
func (m *Member) Leave(now time.Time) uint64 {
	if m.cfg.Follows() || !m.link.up || m.own.durable {
		return 0
	}
	within := gatherWithin
	if now.Sub(m.link.arrived) >= quietFor { // which is not before the begin of the connection
		within = 0
	}
	m.chooseEpoch(now, within)
	return m.own.epoch
}

// chooseEpoch sets the epoch once the own retained message is known, or has not come within
// that time of all connections: each of them may be short.
func (m *Member) chooseEpoch(now time.Time, within time.Duration) {
	o := &m.own
	if o.epoch > 0 || !o.found && m.link.lasted(now) < within {
		return
	}
	o.epoch, o.parts = above(max(o.stored, o.former.Epoch)), o.former.parts
	switch {
	case !o.found || o.former.Epoch < o.stored: // killed before it published
	case o.former.Epoch == o.stored: // the broker has what this node published last
		o.Version, o.at, o.labels, o.bytes, o.known = o.former.Version, now, o.former.labels, o.former.bytes, true
		o.former.compare = true
	default:
		file := fmt.Sprintf("epoch %d", o.stored)
		if o.stored == 0 {
			file = "is new, or older than the first version"
		}
		m.regressed(file)
	}
}

// above is the epoch of a process that comes after one with that epoch. The last one that the
// others accept has none above it: its publications count as those of a restored state.
func above(epoch uint64) uint64 { return min(epoch+1, maxEpoch-1) }

// compareFormer looks whether the state file has fewer labels than this node has published
// in the same run: it is an older one, or the model was reset.
func (m *Member) compareFormer(learnt Learnt) {
	f := &m.own.former
	if !f.compare || learnt.Behind {
		return
	}
	if f.compare = false; f.labels > learnt.Labels {
		m.regressed(fmt.Sprintf("has %d", learnt.Labels))
	}
}

// regressed publishes the event that the broker knows more of this node than its state file.
func (m *Member) regressed(file string) {
	f := &m.own.former
	m.event("fleet_regressed", fmt.Sprintf("the broker knows version %d.%d of this node with %d labels, its state file %s: what the state file knows replaces it", f.Epoch, f.Sequence, f.labels, file))
}

// EpochDurable notes that the state file has the epoch.
func (m *Member) EpochDurable(epoch uint64) {
	m.own.stored = max(m.own.stored, epoch)
	m.own.durable = m.own.epoch > 0 && m.own.stored >= m.own.epoch
}

// receiveOwn takes the own contribution as the broker sent it. An older one of another process
// is of the past, which a broker that has gone back to it brings, or a bridge: the next
// publication replaces it. That of a process that runs is followed by another one.
func (m *Member) receiveOwn(now time.Time, c *fleet.Contribution, bytes int, retained bool) {
	o := &m.own
	switch {
	case m.cfg.Follows() && !retained: // of another process, which has the name
		return
	case c.Instance == m.instance && c.Version == o.Version:
		o.again, o.cleared, o.strikes = false, false, 0
		if m.cameBack(now, retained); !o.at.Before(m.link.at) { // says nothing about what the broker has kept before
			return
		}
	case c.Instance == m.instance && !o.fresh: // an older one, to which the broker has gone back
		o.again = true
		return
	case c.Instance == m.instance:
	case o.epoch == 0: // of an earlier process, or of another one that runs
		o.found, o.former = true, former{Version: c.Version, instance: c.Instance, labels: c.N, bytes: bytes}
		m.classes = c.Classes
		if a := m.assemblies[m.name]; a != nil && a.listed && a.list.Version == c.Version {
			o.former.parts = a.list.parts
		}
	case !o.published && c.Instance == o.former.instance && c.Version == o.former.Version:
	case c.Instance == o.former.instance && (c.Epoch > o.epoch || !retained && c.Newer(o.former.Version)):
		if o.former.Version = c.Version; !retained {
			o.former.heard = now
		}
		m.stop(fmt.Sprintf("another process publishes as %s: each needs a name of its own; this one began later, and goes on when the other one ends", m.name), "fleet_duplicate")
		return
	case c.Epoch < o.epoch || c.Epoch == o.epoch && c.Instance < m.instance:
		o.former, o.again = former{Version: c.Version, instance: c.Instance}, true
		if c.Epoch == o.Epoch { // others have it, and take no retained one that is not above it
			o.Sequence = max(o.Sequence, c.Sequence)
		}
		return
	default:
		m.note(now, "fleet_duplicate", "", fmt.Sprintf("another process publishes as %s: each needs a name of its own; the other one began later", m.name))
		o.epoch, o.again = above(c.Epoch), true
		o.durable = o.stored >= o.epoch
		return
	}
	m.link.kept = m.link.kept || retained
}

// OtherEnded notes that another process with this node's name has ended, or that somebody has removed
// its contribution. If that one has displaced this one, this one publishes again; if it runs on after
// all, it contradicts.
func (m *Member) OtherEnded() {
	if m.displaced() {
		m.takeName("the other process that had its name has ended, or its contribution was removed: this one publishes again")
	}
}

// displaced reports whether another process publishes in place of this one.
func (m *Member) displaced() bool {
	return m.own.stopped != "" && m.own.strikes < maxStrikes // else the broker has stopped it
}

// tryName publishes again once the process that has displaced this one has been silent for long:
// where a bridge does not carry the topic of their state nobody says that it has ended.
func (m *Member) tryName(now time.Time) {
	f := &m.own.former
	if since := latest(f.heard, m.link.at); m.displaced() && f.tried.due(now, since, tryAfter) {
		m.takeName(fmt.Sprintf("the other process that has its name has published nothing for %v: this one publishes again, until that one contradicts", now.Sub(since).Round(time.Minute)))
	}
}

// takeName goes on to publish, with versions above those of the other process.
func (m *Member) takeName(why string) {
	o := &m.own
	o.stopped, o.epoch, o.again = "", above(max(o.epoch, o.former.Epoch)), o.known
	o.durable = o.stored >= o.epoch
	m.event("fleet_duplicate", why)
}

// stop ends the publications until the next start, or until OtherEnded.
func (m *Member) stop(why, kind string) {
	if m.own.stopped == "" {
		m.own.stopped = why
		m.event(kind, why)
	}
}

// due reports whether the own contribution is to be published.
func (m *Member) due(now time.Time, labels uint64) bool {
	o := &m.own
	if m.cfg.Follows() || o.stopped != "" || !m.link.up || !o.durable {
		return false
	}
	switch since := now.Sub(o.at); {
	case !o.known:
		return true
	case o.again, m.basis.former:
		return since >= keptWithin
	case since < m.cfg.Interval:
		return false
	default:
		enough := m.cfg.Information > 0 && m.info.since() >= m.cfg.Information && labels > o.labels
		late := m.cfg.MaxWait > 0 && !o.waiting.IsZero() && now.Sub(o.waiting) >= m.cfg.MaxWait && fleet.Worthwhile(labels, o.labels)
		return enough || late || labels < o.labels || labels-o.labels >= m.cfg.Every
	}
}

// wait notes since when the model has labels that the latest publication lacks.
func (o *own) wait(now time.Time, labels uint64) {
	switch {
	case labels <= o.labels:
		o.waiting = time.Time{}
	case o.waiting.IsZero():
		o.waiting = now
	}
}

// Final reports whether the own contribution is to be published before the end.
func (m *Member) Final(labels uint64) bool {
	o := &m.own
	return !m.cfg.Follows() && o.stopped == "" && m.link.up && o.durable && labels != o.labels
}

// Publish returns the messages of a contribution with the next version. The error is that
// of AppendBinary.
func (m *Member) Publish(now time.Time, c *fleet.Contribution) ([]Publication, error) {
	o := &m.own
	next := fleet.Version{Epoch: o.epoch, Sequence: o.Sequence + 1}
	if o.Epoch != o.epoch {
		next.Sequence = 1
	}
	c.Instance, c.Version = m.instance, next
	data, err := c.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	all, parts := m.send(m.name, next, data)
	for i := parts; i < o.parts; i++ { // of a larger one before
		all = append(all, Publication{Topic: m.topics.Part(m.name, i)})
	}
	o.Version, o.at, o.labels, o.waiting, o.bytes, o.parts = next, now, c.N, time.Time{}, len(data), parts
	o.published, o.known, o.fresh, o.passed, o.again, o.cleared = true, true, true, time.Time{}, false, false
	m.basis.former, m.classes = false, c.Classes
	m.info.published()
	return all, nil
}

// send returns the messages of a contribution, or of a common basis, and the number of its parts;
// 0: it is in one message. It counts their bytes.
func (m *Member) send(name string, v fleet.Version, data []byte) (all []Publication, parts int) {
	all = m.topics.Messages(name, v, data, m.limit())
	for _, p := range all {
		m.counts.Sent += uint64(len(p.Payload))
	}
	parts = len(all) - 1
	m.parted = m.parted || parts > 0
	return all, parts
}

// NotReady notes that there is nothing to publish yet, so that it is not asked for again
// at once.
func (m *Member) NotReady(now time.Time) {
	if m.own.published {
		m.own.at = now
	}
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
			o.passed, m.asking.own, m.asking.due = now, now, append(m.asking.due, m.name)
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
		if now.Sub(m.link.at) >= keptWithin && !m.link.kept && o.at.Before(m.link.at) {
			o.again = true // the broker has lost its retained messages
		}
		return
	}
	since := latest(o.at, m.link.at, m.link.brought)
	switch {
	case now.Sub(latest(since, m.asking.own)) < keptWithin:
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
		what := fmt.Sprintf("did not come back from the broker within %v: %s", keptWithin, why)
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
	since := latest(o.at, m.link.at)
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

// OwnTopics are the topics on which the broker may keep messages of this member.
func (m *Member) OwnTopics() []string {
	if m.cfg.Follows() || !m.own.known {
		return nil
	}
	return m.topics.of(m.name, m.own.parts)
}
