package online

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"edge/model"
	"edge/online/fleet"
	"edge/online/mixture"
)

// joined is a learner's part in a fleet.
type joined struct {
	members int            // whose sites are in the sums
	own     []int          // horizons that the fleet joins; none: there are no sums
	foreign []string       // classes with sums and without a latent function, in the order of their sums
	forests []fleet.Forest // of members; see publishForests

	guest  *guest // of the latest merge, during the warm-up; nil afterwards
	unseen *guest // of its sums Unseen, after the warm-up; nil: there are none
}

// clearTrust is the trust in the sums of a first merge, in standard errors, from which on
// their horizons begin ahead of the own ones. Where own labels do not show that the sums
// help, as on streams that drift, a learner would have to unlearn such a start.
const clearTrust = 2

// mergeEvent carries out an event of kind Merge. The minibatch that is filling stays open, so that
// own labels teach the same as without a fleet, to the last bit. It is closed where a common basis may
// take the place of the own one.
func (l *Learner) mergeEvent(ev *Event, out *Outcome) {
	m, err := fleet.DecodeMergeWith(ev.State, ev.forests)
	if err == nil {
		err = l.fits(m)
	}
	if err != nil {
		out.Refused = err
		return
	}
	m.Forests = l.keptForests(m.Forests)
	if m.Sharing != nil {
		l.flush(out) // it was predicted in the basis before
	}
	if err := l.share(m.Sharing); err != nil {
		out.Closed, out.Refused = false, errors.Join(out.Refused, err)
		return
	}
	if err := l.merge(m, out); err != nil {
		out.Closed, out.Refused = false, errors.Join(out.Refused, err)
		return
	}
	out.Change, out.Detail = NoticeMerged, fmt.Sprintf("%d of %d members", m.Taken(), len(m.Members))
}

// fits returns an error if a merge is not for this configuration.
func (l *Learner) fits(m *fleet.Merge) error {
	if l.cfg.Kernel == PerClass || m.Taken() > 0 && m.Params.D != len(l.cfg.Features) {
		return fmt.Errorf("online: merge of a basis in %d dimensions, model has %d: %w", m.Params.D, len(l.cfg.Features), ErrShape)
	}
	if u := m.Unseen; u != nil && u.Params.D != len(l.cfg.Features) {
		return fmt.Errorf("online: sums for unseen classes in %d dimensions, model has %d: %w", u.Params.D, len(l.cfg.Features), ErrShape)
	}
	return l.canShare(m.Sharing)
}

// merge takes over the sums of a merge, in place of those there were. An error leaves
// the learner without a fleet; one of the sums Unseen alone is in out, and leaves it without
// these.
func (l *Learner) merge(m *fleet.Merge, out *Outcome) error {
	if m.Taken() == 0 {
		l.leave()
		return nil
	}
	out.Dropped = append(out.Dropped, l.dropImported(m.Classes)...)
	if !l.warmup.done || l.cfg.Fleet.Unseen == MixUnseen {
		out.Imported = l.importClasses(m.Classes)
	}
	lead := float64(mixture.Ahead)
	if m.Tested && m.Trust < clearTrust {
		lead = 0
	}
	if err := l.join(m.WithoutForests(), lead); err != nil {
		l.leave()
		return err
	}
	l.takeForests(m.Forests)
	if l.warmup.done {
		l.mix.MergeFactors(m.Exponents)
		if err := l.answerUnseen(m.Unseen); err != nil {
			out.Refused = errors.Join(out.Refused, err)
		}
	}
	l.publishFleet()
	return nil
}

// leave ends the fleet. The imported classes leave at the end of the event.
func (l *Learner) leave() {
	if len(l.fleet.own) > 0 {
		l.mix.Join(nil, 0)
		l.bank.Join(nil, 0)
		l.batch.join(nil)
		l.renumber()
	}
	l.mix.EndGuest()
	l.takeForests(nil)
	l.fleet, l.view.Fleet, l.bank.OwnWeights = joined{}, nil, nil
}

// renumber begins another epoch of the classes, which stay: the parts of predictions
// before it are of other experts.
func (l *Learner) renumber() {
	same := make([]int, len(l.classes.names))
	for k := range same {
		same[k] = k
	}
	l.classes.change(same)
	l.view.Epoch = l.classes.epoch
}

// join takes over the sums of m: in the own basis, or during the warm-up in that of m,
// for a guest. New horizons begin lead ahead of the own ones.
func (l *Learner) join(m *fleet.Merge, lead float64) error {
	if !l.warmup.done {
		l.fleet = joined{members: m.Taken(), forests: l.fleet.forests}
		l.view.Fleet = &model.Fleet{Members: m.Taken()}
		l.mix.StartGuest()
		return l.invite(m)
	}
	var own, sums []int // horizons, and the sums for them
	for h, length := range m.Horizons {
		if at := slices.Index(l.cfg.Horizons, Horizon(length)); at >= 0 {
			own, sums = append(own, at), append(sums, h)
		}
	}
	if len(own) == 0 {
		return fmt.Errorf("online: merge of other horizons: %w", ErrShape)
	}
	latents := make([]int, len(m.Classes)) // of each class, the own ones first
	var foreign []string
	for i, name := range m.Classes {
		latents[i] = -1
		if k, known := l.classes.index[name]; known {
			latents[i] = l.classes.latent[k]
		}
		if latents[i] < 0 {
			latents[i] = len(l.view.Latent) + len(foreign)
			foreign = append(foreign, name)
		}
	}
	if !slices.Equal(own, l.fleet.own) {
		l.renumber()
	}
	l.startFleet(m.Taken(), own, foreign, lead)
	basis := l.basis()
	if err := m.On(&basis, l.cfg.Fleet.Units, func(h, k int, a, sum []float64) {
		if f := slices.Index(sums, h); f >= 0 {
			l.bank.AddJoined(f, latents[k], a, sum) // two names may be of one class
		}
	}); err != nil {
		return err
	}
	return l.bank.Refresh()
}

// startFleet makes room for the sums, in the bank and in the mixture.
func (l *Learner) startFleet(members int, own []int, foreign []string, lead float64) {
	l.bank.Join(own, len(foreign))
	if !slices.Equal(own, l.fleet.own) {
		l.mix.Join(own, lead)
		l.batch.join(own)
	}
	l.mix.EndGuest()
	l.fleet = joined{members: members, own: own, foreign: foreign, forests: l.fleet.forests}
	l.view.Fleet = &model.Fleet{Members: members, Horizons: len(own), Classes: foreign}
	l.bank.OwnWeights = l.mix.OwnWeights()
}

// followClasses brings the part of the fleet up to date with the classes, their labels and the
// warm-up buffer.
func (l *Learner) followClasses() {
	l.teachGuest()
	l.followUnseen()
	l.publishFleet()
}

// observeMembers weighs the guest, or learns the exponent of the answer for classes with few
// own labels, by a sample of class k, of which ws has the answer. One whose label came late is
// answered again: the published answer does not hold those.
func (l *Learner) observeMembers(ev *Event, k int, weight float64, ws *model.Workspace) {
	f := l.view.Fleet
	if f == nil || f.Guest == nil && !f.Mixes() {
		return
	}
	if ev.Probs != nil {
		ws = &l.ws
		l.probs, _, _ = l.view.PredictTo(l.probs, ev.X, ws)
	}
	if f.Guest != nil {
		l.mix.ObserveGuest(k, weight, ws)
	} else {
		l.mix.ObserveUnseen(k, weight, f.Rare, ws)
	}
	l.publishShares()
}

// endGuest lets the sums of the guest go on in the own basis, once the warm-up is over.
func (l *Learner) endGuest() {
	if g := l.fleet.guest; g != nil {
		m := g.merge
		if l.join(m, l.mix.GuestLead()) != nil {
			l.leave()
		} else {
			l.mix.MergeFactors(m.Exponents)
		}
		l.publishFleet()
	}
}

// publishFleet stores the fields of the view that depend on the classes and their labels.
func (l *Learner) publishFleet() {
	v := l.view.Fleet
	if v == nil {
		return
	}
	l.publishForests()
	v.Foreign = nil
	if len(l.fleet.own) > 0 {
		v.Classes = l.fleet.foreign
		l.bank.ShareForeign()
	}
	v.Index = slices.Grow(v.Index[:0], len(v.Classes))[:len(v.Classes)]
	for x, name := range v.Classes {
		if k, known := l.classes.index[name]; known && k < len(l.view.Names) {
			v.Index[x] = k
		} else {
			v.Index[x] = -1
		}
	}
	v.Rare = slices.Grow(v.Rare[:0], len(l.view.Names))[:len(l.view.Names)]
	for k, n := range l.view.Counts {
		v.Rare[k] = n < fleet.MinKnown
	}
	v.Guest, v.Unseen = l.fleet.guest.posterior(), nil
	if l.cfg.Fleet.Unseen == MixUnseen {
		v.Unseen = cmp.Or(v.Guest, l.fleet.unseen.posterior())
	}
	l.publishShares()
}

// publishShares stores the weights of the fleet's answers, and the answer without the fleet,
// in the view.
func (l *Learner) publishShares() {
	if v := l.view.Fleet; v != nil {
		v.Own, v.Share = l.mix.Own()
		v.GuestWeight, v.GuestForests = l.mix.GuestWeight(), l.mix.GuestForests()
		v.Exponent = l.mix.UnseenExponent()
	}
}

// adopt gives latent function k the sums that the fleet has for its class.
func (l *Learner) adopt(class, latent int) {
	for x, name := range l.fleet.foreign {
		if at, known := l.classes.index[name]; known && at == class {
			l.bank.Adopt(x, latent)
			l.fleet.foreign = slices.Delete(slices.Clone(l.fleet.foreign), x, x+1)
			l.publishFleet()
			return
		}
	}
}
