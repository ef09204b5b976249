package membership

import (
	"errors"
	"fmt"
	"time"

	"edge/online/fleet"
)

// BasisName is the last level of the topic of the common basis. It is no name for a node.
const BasisName = "basis"

const (
	// basisTimeout is the time after which no other first basis is expected.
	basisTimeout = 10 * time.Minute
	// basisAttempts bounds the publications of a basis that does not come back.
	basisAttempts = 3
)

// basis is the part in a common basis.
type basis struct {
	birth   fleet.Birth // of the model's, after the latest merge of this process
	members int         // whose parameters that merge averaged, with the own ones
	unfit   string      // why the model does not adopt the common basis; "": it does, or there is none
	since   time.Time   // when one was known first; zero: none
	seen    int         // connection that brought the one in the set
	urgent  bool        // there is another one since the latest merge
	vain    bool        // the latest merge found none and proposed none: the model has too few classes
	former  bool        // the own contribution is of the basis that the model had before
	rebase  fleet.Rebase
	asked   fleet.Rebase // of the merge that is on its way

	publish  *fleet.Common // to be published; nil: nothing
	sent     time.Time
	waits    bool      // for the published one to come back
	passed   time.Time // when the broker has passed it on; it is kept if it comes when it is asked for
	attempts int       // since one was kept
	reported bool      // that it was not
	upload
}

// shares reports whether the model shares a basis.
func (m *Member) shares() bool { return m.cfg.Basis == BasisShared && !m.cfg.Follows() }

// receiveBasis takes an encoded common basis.
func (m *Member) receiveBasis(now time.Time, data []byte, retained bool) {
	c, err := decode(fleet.DecodeCommon, data)
	switch {
	case err != nil:
		m.refuse(now, Malformed, BasisName, err.Error())
	case c.Author != m.name && !m.listed(c.Author):
		m.refuse(now, NotListed, BasisName, fmt.Sprintf("it is of %.40q, and the configuration names other members", c.Author))
	default:
		b := &m.basis
		if b.seen = m.link.number; b.since.IsZero() {
			b.since = now
		}
		if own := m.set.Common(); own != nil && own.Birth == c.Birth {
			m.basisCameBack(now, retained)
		}
		if m.set.Offer(c) {
			b.urgent, m.merge.changed = true, true
		} else if better := m.set.Common(); better.Birth != c.Birth && now.Sub(b.sent) >= keptWithin {
			b.publish = better // the broker keeps one that it replaces
		}
	}
}

// basisDue reports whether a merge is due because of the basis: none is known, or another
// one is wanted.
func (m *Member) basisDue(now time.Time, ready bool) bool {
	if !m.shares() || !ready || !m.link.up || now.Sub(m.link.at) < gatherWithin && (now.Sub(m.link.at) < quietFor || now.Sub(m.link.arrived) < quietFor) {
		return false
	}
	return m.set.Common() == nil || m.basis.rebase != fleet.NoRebase
}

// request completes a set that is to be merged.
func (m *Member) request(now time.Time, set *fleet.Set) *fleet.Set {
	b := &m.basis
	set.BasisRequest = fleet.BasisRequest{
		Vacant: m.set.Common() == nil && m.link.up, Rebase: b.rebase, Tag: m.instance,
		Settled: !b.since.IsZero() && now.Sub(b.since) >= basisTimeout,
	}
	b.asked, b.rebase, b.urgent = b.rebase, fleet.NoRebase, false
	return set
}

// mergedBasis notes how a merge changed the model's basis.
func (m *Member) mergedBasis(now time.Time, sum *fleet.Merge) {
	s, b := sum.Sharing, &m.basis
	b.asked = fleet.NoRebase
	if s == nil {
		b.birth, b.members, b.unfit = fleet.Birth{}, 0, ""
		return
	}
	b.vain = s.Number == 0 && sum.Unfit == fleet.None
	changed := b.birth != s.Birth
	b.birth, b.members = s.Birth, s.Members
	m.leftBasis(sum.Unfit)
	switch {
	case !changed:
	case s.Author == m.name && s.Tag == m.instance:
		m.event("fleet_basis", fmt.Sprintf("this node proposes basis %d", s.Number))
	case s.Start != nil:
		m.event("fleet_basis", fmt.Sprintf("basis %d of %s is adopted", s.Number, s.Author))
	}
	if changed && m.own.published {
		b.former = true // contributions name their basis
	}
	if c := sum.Announce; c != nil {
		m.set.Offer(c)
		b.publish = c
		if b.since.IsZero() {
			b.since = now
		}
	}
}

// leftBasis notes the reason for which the latest merge did not adopt the common basis. The event
// comes once for each basis and reason, for every merge tries it again.
func (m *Member) leftBasis(reason fleet.Reason) {
	why := ""
	if c := m.set.Common(); c != nil && reason != fleet.None {
		why = fmt.Sprintf("basis %d of %s is not adopted: %s", c.Number, c.Author, explainUnfit(reason))
	}
	if why != "" && why != m.basis.unfit {
		m.event("fleet_basis", why)
	}
	m.basis.unfit = why
}

// explainUnfit returns the reason why a common basis is not adopted.
//
//go:noinline
func explainUnfit(reason fleet.Reason) string {
	switch reason {
	case fleet.OtherInputs:
		return "its features differ from those of this model in number, name or order"
	case fleet.OtherInducing:
		return "it has another number of inducing points"
	case fleet.OtherClasses:
		return "its author sees other classes than this model, or in other proportions"
	}
	return "its numbers are out of range"
}

// announce returns the messages of a common basis that has to be published.
func (m *Member) announce(now time.Time) []Publication {
	b := &m.basis
	if !m.shares() || !m.link.up {
		return nil
	}
	if c := m.set.Common(); m.link.checked && c != nil && b.seen != m.link.number && b.publish == nil && !b.waits && !b.reported {
		b.publish = c // the broker has lost it
	}
	m.checkBasis(now)
	if b.publish == nil {
		return nil
	}
	c := b.publish
	b.publish = nil
	data, err := c.AppendBinary(nil)
	if err != nil {
		m.refuse(now, Malformed, BasisName, err.Error())
		return nil
	}
	b.sent, b.waits, b.upload = now, true, upload{}
	b.attempts++
	all, _ := m.send(BasisName, fleet.Version{Epoch: c.Number, Sequence: c.Tag}, data)
	return all
}

// basisCameBack notes that the broker has sent the published basis. It may have passed it on only: it is asked for.
func (m *Member) basisCameBack(now time.Time, retained bool) {
	switch b := &m.basis; {
	case retained || m.asked(BasisName):
		b.waits, b.attempts, b.reported = false, 0, false
	case b.waits && b.passed.Before(m.since(BasisName)):
		b.passed, m.asking.due = now, append(m.asking.due, BasisName)
	}
}

// checkBasis looks for a published basis that does not come back, or is not kept, and publishes it again:
// the parts of two that were published at once may be mixed.
func (m *Member) checkBasis(now time.Time) {
	b := &m.basis
	patience := m.patience(BasisName)
	if !b.waits || m.asked(BasisName) || now.Sub(latest(m.since(BasisName), b.left, b.passed)) < patience {
		return
	}
	if b.waits = false; b.attempts < basisAttempts {
		b.publish = m.set.Common()
		return
	}
	if !b.reported {
		b.reported = true
		what := fmt.Sprintf("did not come back from the broker within %v: may this node write and read %s?", patience.Round(time.Second), m.topics.Contribution(BasisName))
		if !b.passed.Before(m.since(BasisName)) {
			what = notRetained
		}
		m.event("fleet_not_kept", "the common basis "+what)
	}
}

// Rebase asks for a new common basis, with the next merge. The error names a member where no other one would adopt it.
func (m *Member) Rebase(how fleet.Rebase) error {
	switch {
	case how != fleet.First && how != fleet.Pooled:
		return fmt.Errorf("%.40q: want first or pooled", how)
	case !m.shares():
		return errors.New("the members have bases of their own: set fleet.basis to shared on all nodes, and ask one that does not only follow")
	case !m.link.up:
		return errors.New("there is no connection to the broker")
	}
	member, reason := "", fleet.None
	for _, c := range m.set.Members() {
		if member, reason = c.Member, m.proposal.Unfit(c); reason == fleet.None {
			break
		}
	}
	if reason != fleet.None && m.proposal.Params.M > 0 {
		return fmt.Errorf("no other member would adopt it: %s would find that %s; ask a node with the features, inducing and classes of the others", member, explainUnfit(reason))
	}
	m.basis.rebase = how
	return nil
}
