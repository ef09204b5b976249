package online

import (
	"slices"

	"edge/model"
	"edge/online/fleet"
	"edge/online/mixture"
	"edge/online/wire"
)

// takeForests takes over the forests of members, in place of those there were. They
// answer as an expert beside the own forest, and not without one, and beside the guest.
func (l *Learner) takeForests(all []fleet.Forest) {
	if l.forest == nil {
		all = nil
	}
	if before := len(l.fleet.forests) > 0; before != (len(all) > 0) {
		l.mix.JoinForests(!before)
	}
	l.fleet.forests = all
	l.publishForests()
	if l.warmup.done {
		l.forest.Tune(l.view.Pool.Stack.Members)
	} else {
		l.forest.Tune(nil)
	}
}

// keepForests leaves out of a merge the forests that the learner has of the merge before: a
// record of the journal is large by its forests, and most members have learnt nothing since.
func (l *Learner) keepForests(m *fleet.Merge) {
	for i := range m.Forests {
		f := &m.Forests[i]
		if old := l.heardForest(f.Member, f.N); old != nil && old.Forest.Equal(f.Forest) && slices.Equal(old.Classes, f.Classes) && slices.Equal(old.Counts, f.Counts) {
			*f = fleet.Forest{Member: f.Member, N: f.N}
		}
	}
}

// keptForests returns the forests of a merge with those that it leaves to the learner. One that
// the learner has no more, because another state was imported since, is missing until the next
// merge.
func (l *Learner) keptForests(all []fleet.Forest) (whole []fleet.Forest) {
	for _, f := range all {
		if f.Forest != nil {
			whole = append(whole, f)
		} else if old := l.heardForest(f.Member, f.N); old != nil {
			whole = append(whole, *old)
		}
	}
	return whole
}

// heardForest returns the forest of a member with n labels; nil if the learner has none.
func (l *Learner) heardForest(member string, n uint64) *fleet.Forest {
	for i := range l.fleet.forests {
		if f := &l.fleet.forests[i]; f.Member == member && f.N == n {
			return f
		}
	}
	return nil
}

// publishForests stores the forests of members in the view and in that of the guest, with
// the weights and the classes of this moment.
func (l *Learner) publishForests() {
	s := &l.view.Pool.Stack
	s.Members = l.memberForests()
	if g := l.fleet.guest; g != nil {
		g.view.Names, g.view.Pool.Stack.Members = l.view.Names, s.Members
	}
}

// memberForests returns the forests of members with the weights and the classes of this
// moment; nil if there are none.
func (l *Learner) memberForests() *model.MemberForests {
	if len(l.fleet.forests) == 0 {
		return nil
	}
	all := &model.MemberForests{Own: forestWeight(l.view.N), Share: l.mix.ForestShare()}
	for i := range l.fleet.forests {
		f := &l.fleet.forests[i]
		index, known := make([]int, len(f.Classes)), 0
		for k, name := range f.Classes {
			index[k] = -1
			if at, there := l.classes.index[name]; there && at < len(l.view.Names) && f.Counts[k] >= fleet.MinKnown {
				index[k] = at
				known++
			}
		}
		if known > 1 {
			all.All = append(all.All, model.MemberForest{Forest: f.Forest, Weight: forestWeight(f.N), Index: index})
		}
	}
	return all
}

// dropContradictedForests drops forests of members, which too few are to be compared with each other, once the
// first labels contradict the guest: those that they contradict as well, which would mislead beside
// the own forest, too. The next merge brings them again.
func (l *Learner) dropContradictedForests() {
	few := l.fleet.members < fleet.MinPeers && l.view.N < fleet.MinWindow
	if l.fleet.guest == nil || !few || len(l.fleet.forests) == 0 || l.mix.GuestLead() > -mixture.Ahead {
		return
	}
	t := l.fleetLabels()
	t.Least = fleet.MinKnown
	for k := range t.Known {
		t.Known[k] = true
	}
	if good := t.Accepted(l.fleet.forests); len(good) < len(l.fleet.forests) {
		l.takeForests(good)
	}
}

// observeForests weighs the forests of members by a sample of class k, of which ws has the
// answer, and keeps their answers for the step of the own forest.
func (l *Learner) observeForests(k int, weight float64, ws *model.Workspace) {
	l.mix.ObserveForests(k, weight, ws)
	l.forest.KeepAnswers(ws)
}

// forestMemory is the number of labels that a forest remembers: more do not make it better.
const forestMemory = 5000

func forestWeight(n uint64) float64 { return float64(min(n, forestMemory)) }

// encodeForests appends the forests of members; nothing if there are none.
func (l *Learner) encodeForests(e *wire.Encoder) {
	if len(l.fleet.forests) > 0 {
		fleet.EncodeForests(e, l.fleet.forests)
		l.mix.EncodeForests(e)
	}
}

// decodeForests reads the values that encodeForests wrote.
func (l *Learner) decodeForests(d *wire.Decoder) {
	all := fleet.DecodeForests(d, len(l.cfg.Features))
	if d.Err() == nil && (len(all) == 0 || l.view.Fleet == nil) {
		d.Fail("%d forests of members without a fleet", len(all))
	}
	l.fleet.forests = all
	l.mix.DecodeForests(d)
}

// restoreForests publishes the forests once the whole state is read. They are dropped
// if the configuration has no forest any more.
func (l *Learner) restoreForests() {
	if l.forest == nil {
		l.fleet.forests = nil
		l.mix.JoinForests(false)
	}
	l.publishForests()
}
