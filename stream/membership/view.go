package membership

import (
	"maps"
	"slices"
	"time"

	"edge/online/fleet"
	"edge/stream/codec"
	"edge/stream/field"
)

// State is a node's state in a fleet.
type State string

// States, in the order of their numbers in the metrics.
const (
	Off       State = "off"       // the model is in no fleet
	Alone     State = "alone"     // there is no other member
	Gathering State = "gathering" // there are others, and none is in the answers
	Newcomer  State = "newcomer"  // the fleet answers, the own warm-up runs
	Joined    State = "member"
	Isolated  State = "isolated" // the broker is away; the last merge goes on
	Follower  State = "follower"
)

// States returns all states, by their numbers.
func States() []State {
	return []State{Off, Alone, Gathering, Newcomer, Joined, Isolated, Follower}
}

// view describes the own contributions, but for the age.
func (o *own) view() Own {
	v := o.Version
	if !o.known {
		v.Epoch = o.epoch
	}
	return Own{
		Epoch: v.Epoch, Sequence: v.Sequence, N: o.labels, Bytes: o.bytes, Parts: o.parts,
		Kept: o.Version != fleet.Version{} && !o.fresh && !o.again && !o.cleared && !o.reported, Cleared: o.cleared, Lost: o.reported, Stopped: o.stopped,
	}
}

// View describes a model's part in a fleet. Ages are in seconds.
type View struct {
	Concept string `json:"concept"`
	Role    Role   `json:"role"`
	State   State  `json:"state"`
	Node    string `json:"node"`
	Own
	WarmedUp bool     `json:"warmed_up"`   // the model, which has nothing to publish before
	Merges   uint64   `json:"merges"`      // since the start
	MergeAge *float64 `json:"merge_age_s"` // null: none yet
	Weight   float64  `json:"weight"`      // of the fleet in the model's answers, 0 to 1
	Common
	Refused  map[fleet.Reason]uint64 `json:"refused"` // since the start
	Missed   uint64                  `json:"missed"`  // contributions that the broker sent only when it was asked for them again
	Received uint64                  `json:"received_bytes"`
	Sent     uint64                  `json:"sent_bytes"`
	Members  []MemberView            `json:"members"` // the others, by name
	// Foreign are the classes that members have labels of and this node has not, Alone those
	// that this node has and no member. Both are empty without an own contribution or a member.
	Foreign []string `json:"foreign_classes,omitempty"`
	Alone   []string `json:"own_classes,omitempty"`
	// Spellings are the classes of the model and the members that a person may take for one, by
	// codec.Spelling: all spellings of each.
	Spellings [][]string `json:"spellings,omitempty"`
}

// Own describes the latest of the own contributions.
type Own struct {
	Epoch    uint64 `json:"epoch"`             // of it, or of the next one where there is none; 0: not known yet
	Sequence uint64 `json:"sequence"`          // 0: there is none
	N        uint64 `json:"n"`                 // labels in it
	Bytes    int    `json:"bytes"`             // of it
	Parts    int    `json:"parts"`             // of it; 0: one message
	Kept     bool   `json:"kept"`              // the broker keeps it, as it has shown, and it was not removed
	Cleared  bool   `json:"cleared,omitempty"` // it was removed from the broker; the next one follows
	Lost     bool   `json:"lost,omitempty"`    // it, or the one before, did not come back in time: event fleet_not_kept
	// Stopped is the reason why nothing is published any more; "": it is.
	Stopped string   `json:"stopped,omitempty"`
	Age     *float64 `json:"age_s"` // of it; null: none
}

// Common describes the basis and the scale that the members have in common.
type Common struct {
	Basis *BasisView `json:"basis,omitempty"` // absent: the model shares none, or has not merged since the start
	// Unfit is the sentence that says why the model does not adopt the common basis; "": it does,
	// or there is none.
	Unfit string `json:"basis_refused,omitempty"`
	// Scales is the mean trust of the members by the two values of fleet.scale; absent: not
	// compared yet, or of no influence.
	Scales map[string]float64 `json:"scales,omitempty"`
}

// common returns the basis and the scale that the members have in common.
func (m *Member) common() (c Common) {
	if b := &m.basis; b.birth.Number > 0 {
		c.Basis = &BasisView{b.birth.Number, b.birth.Author, b.members}
	}
	c.Unfit, c.Scales = m.basis.unfit, m.trusts()
	return c
}

// Kinds of a member's basis, for a model that shares one.
const (
	basisCommon = "common" // the common one, as it is known here
	basisOther  = "other"  // another common one, as that of before a rebase
)

// basisOf describes the basis of a member's contribution, and why it does not have the common one;
// nothing where this model shares none.
func (m *Member) basisOf(c *fleet.Contribution) (kind string, unfit fleet.Reason) {
	common := m.set.Common()
	switch {
	case common == nil || !m.shares():
		return "", fleet.None
	case c.BasisEpoch == common.ID():
		return basisCommon, fleet.None
	case c.BasisEpoch == 0:
		kind = BasisOwn
	default:
		kind = basisOther
	}
	return kind, common.Unfit(c)
}

// BasisView describes the common basis of a model.
type BasisView struct {
	Number   uint64 `json:"number"` // 1 for the first, one more for each that replaced another
	Author   string `json:"author"`
	Averaged int    `json:"averaged"` // members whose parameters the latest merge averaged, with the own ones
}

// MemberView describes another member.
type MemberView struct {
	Name     string   `json:"name"`
	Epoch    uint64   `json:"epoch"`
	Sequence uint64   `json:"sequence"`
	N        uint64   `json:"n"` // labels
	Classes  []string `json:"classes"`
	Age      float64  `json:"age_s"` // of its newest version
	Bytes    int      `json:"bytes"`
	// Trust is the z of the latest test by own labels; null: not tested.
	Trust   *float64     `json:"trust"`
	Taken   bool         `json:"taken"`             // its sites are in the latest merge
	Refused fleet.Reason `json:"refused,omitempty"` // by the latest merge
	Unread  fleet.Reason `json:"unread,omitempty"`  // why its newest message was refused on arrival; the version before it counts
	Waiting bool         `json:"waiting"`           // its newest version is for the next merge
	Stale   bool         `json:"stale"`
	Share   float64      `json:"share"` // of the labels of all that are in the latest merge, without the own ones
	// Basis is common, other, for one of before, or own; absent: this model shares none.
	Basis string       `json:"basis,omitempty"`
	Unfit fleet.Reason `json:"basis_refused,omitempty"` // why the member does not adopt the common one; absent: nothing speaks against it
}

// Model holds the model's figures for a View.
type Model struct {
	Classes  []string
	WarmedUp bool
	Answers  bool    // the fleet takes part in its answers
	Weight   float64 // with which
}

// View returns the present state.
func (m *Member) View(now time.Time, of Model) View {
	o := &m.own
	v := View{
		Concept: m.cfg.Concept, Role: m.cfg.Role, State: m.state(now, of), Node: m.name, Own: o.view(), WarmedUp: of.WarmedUp,
		Merges: m.counts.Merges, Weight: of.Weight, Common: m.common(), Refused: maps.Clone(m.counts.Refused), Missed: m.counts.Missed, Received: m.counts.Received, Sent: m.counts.Sent,
		Members: []MemberView{},
	}
	if !o.at.IsZero() {
		v.Age = seconds(now.Sub(o.at))
	}
	if !m.merge.at.IsZero() {
		v.MergeAge = seconds(now.Sub(m.merge.at))
	}
	var labels float64 // an integer would overflow, if a member claims 2⁶³ or more
	for _, c := range m.set.Members() {
		p := m.peers[c.Member]
		one := MemberView{
			Name: c.Member, Epoch: c.Epoch, Sequence: c.Sequence, N: c.N, Classes: c.Classes, Age: *seconds(now.Sub(p.received)),
			Bytes: p.bytes, Unread: p.unread, Stale: p.stale, Waiting: !p.stale && (!p.merged || c.Version != p.result.Version),
		}
		one.Basis, one.Unfit = m.basisOf(c)
		if p.merged {
			if one.Taken, one.Refused = p.result.Refused == fleet.None, p.result.Refused; p.result.Tested {
				trust := p.result.Trust
				one.Trust = &trust
			}
		}
		if one.Taken {
			one.Share = float64(p.result.N)
			labels += one.Share
		}
		v.Members = append(v.Members, one)
	}
	for i := range v.Members {
		if labels > 0 {
			v.Members[i].Share /= labels
		}
	}
	v.Spellings = spellings(of.Classes, v.Members)
	if v.Sequence > 0 && !m.cfg.Follows() && len(v.Members) > 0 {
		var theirs []string
		for i := range v.Members {
			theirs = append(theirs, v.Members[i].Classes...)
		}
		v.Foreign, v.Alone = without(theirs, m.proposal.Classes), without(m.proposal.Classes, theirs)
	}
	return v
}

// without returns the names that are not among others, in order.
func without(names, others []string) []string {
	left := map[string]bool{}
	for _, name := range names {
		left[name] = true
	}
	for _, name := range others {
		delete(left, name)
	}
	return field.Names(left)
}

// spellings returns the classes of a model and of members that share a codec.Spelling.
func spellings(own []string, members []MemberView) (all [][]string) {
	names := slices.Clone(own)
	for i := range members {
		names = append(names, members[i].Classes...)
	}
	of := map[string][]string{}
	for _, name := range field.Distinct(names) {
		word := codec.Spelling(name)
		of[word] = append(of[word], name)
	}
	for _, word := range field.Names(of) {
		if len(of[word]) > 1 {
			all = append(all, of[word])
		}
	}
	return all
}

// state returns the state of the member, whose model has the figures of.
func (m *Member) state(now time.Time, of Model) State {
	switch {
	case m.cfg.Follows():
		return Follower
	case !m.link.up && m.link.number > 0 && now.Sub(m.link.at) >= isolated && of.Answers:
		return Isolated
	case of.Answers && !of.WarmedUp:
		return Newcomer
	case of.Answers:
		return Joined
	case len(m.peers) > 0:
		return Gathering
	}
	return Alone
}

// seconds returns a duration in seconds, to the tenth.
func seconds(d time.Duration) *float64 {
	s := float64(d.Round(100*time.Millisecond)) / float64(time.Second)
	return &s
}
