package online

import (
	"errors"
	"fmt"
	"slices"
)

// ClassList lists the classes of a learner.
type ClassList struct {
	Names    []string
	Former   map[string]string // former names that still refer to a class, and its present name
	Imported []string          // of Names, those that a merge has brought, and that have no label of this node
	Kept     string            // of Names, the only one that was learnt, which no request removes; "": none or several were
}

// ClassList returns the classes. Read only.
func (l *Learner) ClassList() *ClassList {
	names := l.classes.names
	list := &ClassList{Names: names[:len(names):len(names)], Former: l.view.Aliases, Imported: l.importedNames()}
	if only := l.view.Latent; len(only) == 1 {
		list.Kept = names[only[0]]
	}
	return list
}

// Undeclared returns the classes that a closed list of classes in the configuration lacks; none where
// classes are open.
func (l *Learner) Undeclared() (names []string) {
	if l.cfg.Classes.Open {
		return nil
	}
	r := &l.classes
	declared := make([]bool, len(r.names))
	for _, name := range l.cfg.Classes.Names {
		if k, known := r.index[name]; known { // also by a former name
			declared[k] = true
		}
	}
	for k, name := range r.names {
		if !declared[k] && !r.imported[name] {
			names = append(names, name)
		}
	}
	return names
}

// changeClasses handles ClassAdd, ClassRemove and ClassRename. The minibatch that
// is filling is closed first: it was labelled under the classes before the change.
func (l *Learner) changeClasses(ev *Event, out *Outcome) {
	l.flush(out)
	l.publishClasses()
	var err error
	switch ev.Kind {
	case ClassAdd:
		if err = l.addClass(ev.Label, out); err == nil {
			out.ClassAdded = ev.Label
		}
	case ClassRemove:
		if err = l.removeClass(ev.Label); err == nil {
			out.Change, out.Detail = NoticeClassRemoved, ev.Label
		}
	case ClassRename:
		if err = l.renameClass(ev.Label, ev.Name); err == nil {
			out.Change, out.Detail = NoticeClassRenamed, fmt.Sprintf("%s is now %s", ev.Label, ev.Name)
		}
	}
	if err != nil {
		out.Closed, out.Refused = false, err
	}
	l.followClasses()
}

// addClass adds a class before its first sample. It confirms an unconfirmed label.
func (l *Learner) addClass(name string, out *Outcome) error {
	r := &l.classes
	if k, known := r.index[name]; known && r.names[k] == name {
		if r.imported[name] { // it stays, also without the fleet
			delete(r.imported, name)
			return nil
		}
		return fmt.Errorf("online: class %.40q is there already: %w", name, ErrClass)
	}
	if err := l.checkName(name); err != nil {
		return err
	}
	l.displace(out)
	delete(r.removed, name)
	k := r.add(name)
	l.view.Aliases = r.aliases()
	if samples := r.release(name); len(samples) > 0 {
		var out Outcome
		for i := range samples {
			l.example(&samples[i], k, &out)
		}
		l.flush(&out)
		if out.Refused != nil {
			return out.Refused
		}
	}
	l.publishClasses()
	return nil
}

// renameClass gives a class another name. The old one still refers to the class,
// until it is added as a class of its own: senders need not change at the same
// moment.
func (l *Learner) renameClass(from, to string) error {
	r := &l.classes
	k, known := r.index[from]
	other, taken := r.index[to]
	taken = taken && other != k && r.names[other] == to
	switch {
	case !known:
		return fmt.Errorf("online: there is no class %.40q: %w", from, ErrClass)
	case to == "" || len(to) > MaxLabel:
		return fmt.Errorf("online: new name of %d bytes: want 1 to %d: %w", len(to), MaxLabel, ErrClass)
	case taken && !r.imported[to]:
		return fmt.Errorf("online: %.40q is the name of another class: %w", to, ErrClass)
	}
	if len(r.index) >= MaxNames {
		return fmt.Errorf("online: %d names of classes are in use, at most %d: %w", len(r.index), MaxNames, ErrClass)
	}
	if taken { // by a class of the fleet: it is this one
		l.dropClasses([]int{other})
		k = r.index[from]
	}
	if old := r.names[k]; r.imported[old] {
		delete(r.imported, old)
		r.imported[to] = true
	}
	r.names = slices.Clone(r.names) // snapshots may share it
	r.names[k] = to
	r.index[to] = k
	l.view.Names = nil
	l.shareNames()
	return nil
}

// removeClass removes a class: its latent function, its samples in window and
// warm-up buffer, its counts, its row and column in the chain and in the
// confusion matrix. The effect of its samples on the other latent functions stays
// in their absorbed sites, which are a product, and fades with them.
func (l *Learner) removeClass(name string) error {
	r := &l.classes
	k, known := r.index[name]
	if !known {
		return fmt.Errorf("online: there is no class %.40q: %w", name, ErrClass)
	}
	latent := r.latent[k]
	if latent >= 0 && len(l.view.Latent) == 1 {
		return fmt.Errorf("online: %.40q is the only class that was learnt; reset forgets it: %w", name, ErrClass)
	}
	before, _ := l.AppendBinary(nil)

	to := r.without(k)
	r.change(to)
	r.remove(k, to, l.cfg.Classes.Names)
	l.view.Epoch = r.epoch
	l.dropFromParts(k, to)
	l.shareNames()
	if latent >= 0 {
		l.bank.DropLatent(latent)
		r.setLatent(l.view.Latent)
		if err := l.bank.Refresh(); err != nil {
			return errors.Join(fmt.Errorf("online: without class %.40q: %w", name, err), l.become(before))
		}
	}
	return nil
}

// shareNames copies the names of all classes to the view.
func (l *Learner) shareNames() {
	names := l.classes.names
	l.view.Names = names[:len(names):len(names)]
	l.view.Aliases = l.classes.aliases()
}

// become replaces this state by an encoded one, which fits the configuration.
func (l *Learner) become(data []byte) error {
	fresh, err := Restore(l.cfg, data)
	if err == nil {
		l.replaceBy(fresh)
	}
	return err
}

// replace handles Reset and Replace. Predictions under the classes before can still
// be read, for the classes that remain.
func (l *Learner) replace(ev *Event, out *Outcome) {
	var fresh *Learner
	var err error
	if ev.Kind == Reset {
		fresh, err = NewLearner(l.cfg)
	} else {
		fresh, err = Restore(l.cfg, ev.State)
	}
	if err != nil {
		out.Refused = err
		return
	}
	names := l.classes.names
	to := make([]int, len(names))
	for i, name := range names {
		to[i] = -1
		if k, known := fresh.classes.index[name]; known {
			to[i] = k
		}
	}
	l.classes.change(to)
	fresh.classes.epoch, fresh.classes.past = l.classes.epoch, l.classes.past
	fresh.view.Epoch = l.classes.epoch
	// Scores are by class: they fit a model whose classes are the first of these.
	if ev.Name == OnlyModel && slices.Equal(fresh.classes.names, names[:min(len(fresh.classes.names), len(names))]) {
		l.sets.Learn() // the minibatch that is filling is dropped, its labels are known
		fresh.judge, fresh.sets, fresh.drift = l.judge, l.sets, l.drift
	}
	l.replaceBy(fresh)
	if out.Change = NoticeReset; ev.Kind == Replace {
		out.Change, out.Detail = NoticeRolledBack, fmt.Sprintf("to %d samples", l.view.N+uint64(l.Pending()))
	}
}
