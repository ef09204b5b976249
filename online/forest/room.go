package forest

const (
	leafRoom   = 2  // leaves of a tree by which its room grows
	sampleRoom = 64 // samples by which the room of the ring grows, at least
)

// A forest begins with little memory, which grows with the leaves of its largest tree
// and with the stored samples, up to the configured sizes.

// moreLeaves makes room for that many leaves of a tree, and not for many more.
func (l *Learner) moreLeaves(leaves int) {
	f := l.forest
	if leaves <= f.Leaves {
		return
	}
	room := min((leaves+leafRoom-1)/leafRoom*leafRoom, l.cfg.Leaves)
	widen := func(s []float32) []float32 {
		wide, old, size := make([]float32, l.cfg.Trees*room*f.Classes), f.Leaves*f.Classes, room*f.Classes
		for t := range l.cfg.Trees {
			copy(wide[t*size:], s[t*old:(t+1)*old])
		}
		return wide
	}
	growths := newGrowth(l.cfg.Trees * room)
	for t := range l.cfg.Trees {
		_, _, progress := l.tree(t)
		copy(growths[t*room:], progress)
	}
	l.squares, l.growth = widen(l.squares), growths
	l.tuned.widen(room, widen)
	l.setForest(f.WithRoom(room))
}

// newGrowth returns the progress of n leaves without samples.
func newGrowth(n int) []growth {
	g := make([]growth, n)
	for i := range g {
		g[i] = growth{wait: minSplit, class: noClass}
	}
	return g
}

// moreSamples makes room for that many stored samples, a quarter more than the present
// room at least.
func (l *Learner) moreSamples(samples int) {
	r := &l.ring
	old := r.room()
	if samples <= old {
		return
	}
	room := min(max(samples, old+max(old/4, sampleRoom)), r.stored)
	r.resize(room)
	places := make([]uint8, l.cfg.Trees*room)
	for t := range l.cfg.Trees {
		copy(places[t*room:], l.places[t*old:(t+1)*old])
	}
	l.places = places
	l.split.slots, l.split.right = make([]uint16, 0, room), make([]uint16, 0, room)
}

// placesOf returns the leaves of the stored samples in tree t.
func (l *Learner) placesOf(t int) []uint8 {
	room := l.ring.room()
	return l.places[t*room : t*room+l.ring.n]
}
