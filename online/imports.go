package online

import (
	"maps"
	"slices"
)

// importClasses adds the classes that are not known yet, as far as the configuration
// allows, and returns them. They have no latent function before their first own label.
func (l *Learner) importClasses(names []string) (added []string) {
	for _, name := range names {
		_, known := l.classes.index[name]
		if known || l.classes.removed[name] || !l.cfg.Classes.Open || len(l.classes.names) >= l.cfg.Classes.Max || l.checkName(name) != nil {
			continue
		}
		l.classes.imported[name] = true
		l.classes.add(name)
		added = append(added, name)
	}
	l.publishClasses()
	return added
}

// imported reports whether class k came from the fleet, and has no own label.
func (l *Learner) imported(k int) bool { return l.classes.imported[l.classes.names[k]] }

// noteOwnLabel notes that class k has an own label.
func (l *Learner) noteOwnLabel(k int, out *Outcome) {
	if l.imported(k) {
		delete(l.classes.imported, l.classes.names[k])
		out.ClassAdded = l.classes.names[k]
	}
}

// importedNames returns the names of the imported classes, in order.
func (l *Learner) importedNames() []string {
	return slices.Sorted(maps.Keys(l.classes.imported))
}

// dropImported removes the imported classes that none of these names refers to, and returns
// their names.
func (l *Learner) dropImported(names []string) []string {
	if len(l.classes.imported) == 0 {
		return nil
	}
	kept := map[int]bool{}
	for _, name := range names {
		if k, known := l.classes.index[name]; known {
			kept[k] = true
		}
	}
	var drop []int
	for k := range l.classes.names {
		if l.imported(k) && !kept[k] {
			drop = append(drop, k)
		}
	}
	return l.dropClasses(drop)
}

// displace removes the latest of the imported classes if there is no room for another class:
// an own label counts more.
func (l *Learner) displace(out *Outcome) {
	if len(l.classes.names) < l.cfg.Classes.Max {
		return
	}
	for k := len(l.classes.names) - 1; k >= 0; k-- {
		if l.imported(k) {
			out.Dropped = append(out.Dropped, l.dropClasses([]int{k})...)
			l.followClasses()
			return
		}
	}
}

// dropClasses removes imported classes, in rising order, and returns their names. They have
// no sample, also in the minibatch that is filling, which stays open.
func (l *Learner) dropClasses(drop []int) (names []string) {
	if len(drop) == 0 {
		return nil
	}
	l.publishClasses()
	r := &l.classes
	all := make([]int, len(r.names)) // the present index of each class
	for k := range all {
		all[k] = k
	}
	for _, k := range slices.Backward(drop) {
		names = append(names, r.names[k])
		to := r.without(k)
		for i, now := range all {
			if now >= 0 {
				all[i] = to[now]
			}
		}
		r.remove(k, to, nil)
		l.dropFromParts(k, to)
	}
	r.change(all)
	l.view.Epoch = r.epoch
	for i, k := range l.batch.y {
		l.batch.y[i] = all[k]
	}
	l.shareNames()
	return names
}

// dropFromParts removes class k from all that has a place for each class, but for the latent
// functions. To maps each class before to its index afterwards.
func (l *Learner) dropFromParts(k int, to []int) {
	for i, class := range l.view.Latent {
		l.view.Latent[i] = max(to[class], 0) // that of the class itself is dropped by the caller
	}
	l.view.Names = nil
	l.view.Counts = slices.Delete(l.view.Counts, k, k+1)
	l.mix.DropClass(k, to)
	l.forest.DropClass(k, to)
	l.judge.DropClass(k)
	l.warmup.dropClass(k, to)
	l.calibrator.held.dropClass(k, to)
}
