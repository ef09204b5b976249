package stream

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"edge/online"
	"edge/stream/codec"
)

// classes are the labels that a model knows or is about to learn: those of the learner, which
// decides and may be behind, and on top of them the changes by records that it has not learnt.
type classes struct {
	online.Classes
	status func() *online.Status // of the learner

	mu        sync.Mutex
	learnt    *online.ClassList // those of the learner
	ahead     []classChange     // that it is yet to learn, in order
	classList                   // learnt, and then ahead
}

// classChange is a change of the classes by a record.
type classChange struct {
	seq         uint64 // of the record; before the commit uncommitted and its place in the group
	kind        online.Kind
	label, name string
}

// uncommitted is above all sequence numbers.
const uncommitted = 1 << 63

// classList is a list of classes.
type classList struct {
	known map[string]string // name or former name of a class → its name
	n     int               // number of classes

	// imported has the classes that a merge has brought to the learner and that have no label
	// of this node: the learner lets a label take the place of one, and drops those that
	// leave the fleet, perhaps before this is known here.
	imported map[string]bool
	// waiting has the labels in records ahead of the learner that are not classes, and that
	// may make one, together with others before and after them.
	waiting map[string]bool
}

func newClasses(of online.Classes, status func() *online.Status) *classes {
	c := &classes{Classes: of, status: status}
	c.follow()
	return c
}

// refusal returns the reason to refuse the label, "" if it is accepted.
func (c *classes) refusal(label string) codec.Reason {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.known[label]
	switch {
	case c.owns(label):
		return ""
	case !known && !c.Open:
		return codec.UnknownClass
	case c.full(label):
		return codec.TooManyClasses
	}
	return ""
}

// full reports whether there is no room for a class of this label. The caller holds mu.
func (c *classes) full(label string) bool {
	if len(c.waiting) > 0 && c.room(label) >= c.Max {
		c.follow() // some may have been learnt
	}
	return c.room(label) >= c.Max
}

// waits reports whether the learner may make a class of a label. The caller holds mu.
func (c *classes) waits(label string) bool {
	if c.waiting[label] {
		c.follow()
	}
	return c.waiting[label]
}

// keeps reports whether the learner surely refuses to remove a class. The caller holds mu.
func (c *classes) keeps(name string) bool {
	class, known := c.known[name]
	return known && class == c.learnt.Kept && c.n == 1 && len(c.ahead) == 0
}

// room returns the number of classes that may leave no room for one of this label.
func (l *classList) room(label string) int {
	n := l.n - len(l.imported) + len(l.waiting)
	if l.waiting[label] {
		n--
	}
	return n
}

// same reports whether two labels are of one class, also by a former name of it.
func (c *classes) same(a, b string) bool {
	if a == b {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	class, known := c.known[a]
	return known && class == c.known[b]
}

// change changes the classes by a new record. seq is that of the record, or uncommitted and its
// place in the group. An error is the reason why the classes do not allow the record.
func (c *classes) change(seq uint64, ev *online.Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ev.Kind == online.ClassAdd && !c.has(ev.Label) && c.full(ev.Label):
		return fmt.Errorf("class %.80q would be one more than classes.max = %d", ev.Label, c.Max)
	case (ev.Kind == online.ClassRemove || ev.Kind == online.ClassRename) && !c.owns(ev.Label) && c.status().Recovering:
		return fmt.Errorf("whether there is a class %.80q is not known yet: %w", ev.Label, online.ErrRecovering)
	case ev.Kind == online.ClassRemove && c.keeps(ev.Label):
		return fmt.Errorf("%.80q is the only class that was learnt: request reset to forget it", ev.Label)
	case ev.Kind == online.ClassRename && c.waits(ev.Name):
		return fmt.Errorf("labels %.80q are not learnt yet, and may make a class: try again", ev.Name)
	}
	ch := newClassChange(seq, ev)
	changed, err := c.apply(&ch, &c.Classes)
	if changed || err == nil && ch.kind == online.Observe && slices.ContainsFunc(c.ahead, ch.repeats) {
		c.ahead = append(c.ahead, ch)
	}
	return err
}

func newClassChange(seq uint64, ev *online.Event) classChange {
	kind := ev.Kind
	if kind == online.Correct {
		kind = online.Observe
	}
	return classChange{seq, kind, ev.Label, ev.Name}
}

// repeats reports whether both are of one label.
func (ch *classChange) repeats(other classChange) bool {
	return other.kind == ch.kind && other.label == ch.label
}

// foresee changes the classes by records that were checked before. All of them have the place
// seq, unless that is 0. One that changes nothing is kept as well: it may concern a class that
// the learner has not reported yet.
func (c *classes) foresee(records []online.Record, seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range records {
		ch := newClassChange(cmp.Or(seq, records[i].Seq), &records[i].Event)
		_, _ = c.apply(&ch, &c.Classes) // the learner refuses the same
		c.ahead = append(c.ahead, ch)
	}
}

// catchUp brings the classes up to date with the learner.
func (c *classes) catchUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.follow()
}

// follow is catchUp for a caller that holds mu.
func (c *classes) follow() {
	s := c.status()
	c.learnt = s.Classes
	c.ahead = slices.DeleteFunc(c.ahead, func(ch classChange) bool { return ch.seq <= s.Seq })
	c.update()
}

// update makes the list again. The caller holds mu.
func (c *classes) update() {
	c.classList = newClassList(c.learnt)
	for i := range c.ahead {
		_, _ = c.apply(&c.ahead[i], &c.Classes) // the learner refuses the same
	}
}

// takeOver takes the changes that another node's model is yet to learn.
func (c *classes) takeOver(o *classes) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = slices.Clone(o.ahead)
	c.follow()
}

// alike returns another class with the same codec.Spelling, the first by name; "": none.
func (c *classes) alike(name string) (like string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	spelling := codec.Spelling(name)
	for other, class := range c.known {
		if other == class && other != name && (like == "" || other < like) && codec.Spelling(other) == spelling {
			like = other
		}
	}
	return like
}

// commit makes the changes permanent, with the records of their group.
func (c *classes) commit(records []online.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ahead) == 0 {
		return
	}
	if last := len(c.ahead) - 1; c.ahead[last].seq >= uncommitted+uint64(len(records)) { // it panicked before its record
		c.ahead = c.ahead[:last]
		c.update()
	}
	later := map[string]bool{} // labels that come again before another change
	for i := len(c.ahead) - 1; i >= 0; i-- {
		ch := &c.ahead[i]
		if ch.seq >= uncommitted {
			ch.seq = records[ch.seq-uncommitted].Seq
		}
		switch {
		case ch.kind != online.Observe:
			clear(later)
		case later[ch.label]:
			c.ahead = slices.Delete(c.ahead, i, i+1)
		default:
			later[ch.label] = true
		}
	}
}

// rollback undoes the changes since the last commit.
func (c *classes) rollback() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = slices.DeleteFunc(c.ahead, func(ch classChange) bool { return ch.seq >= uncommitted })
	c.update()
}

// newClassList returns the classes of a learner.
func newClassList(of *online.ClassList) classList {
	l := classList{known: make(map[string]string, len(of.Names)+len(of.Former)), imported: map[string]bool{}, waiting: map[string]bool{}}
	maps.Copy(l.known, of.Former)
	for _, name := range of.Names {
		l.put(name)
	}
	for _, name := range of.Imported {
		l.imported[name] = true
	}
	return l
}

// apply changes the list as the learner changes its classes by a record; those of a Replace are
// changes of their own (online.ClassRecords).
func (l *classList) apply(ch *classChange, cfg *online.Classes) (changed bool, err error) {
	switch ch.kind {
	case online.Observe:
		return l.observe(ch.label, cfg), nil
	case online.ClassAdd:
		err = l.add(ch.label)
	case online.ClassRemove:
		err = l.remove(ch.label)
	case online.ClassRename:
		err = l.rename(ch.label, ch.name)
	case online.Reset:
		*l = newClassList(&online.ClassList{Names: cfg.Names})
	case online.Replace:
		*l = newClassList(&online.ClassList{})
	case online.Merge:
		l.put(ch.label)
		l.imported[ch.label] = true
	default:
		return false, nil
	}
	return err == nil, err
}

// owns reports whether a name is that of a class, or a former one, that has labels of this node
// or was added by a request.
func (l *classList) owns(name string) bool {
	class, known := l.known[name]
	return known && !l.imported[class]
}

// observe notes a label that was accepted. It reports false if it is of a class that has labels.
func (l *classList) observe(label string, cfg *online.Classes) (changed bool) {
	switch class, known := l.known[label]; {
	case known && !l.imported[class]:
		return false
	case known:
		delete(l.imported, class)
	case cfg.Needed(l.n) > 1:
		l.waiting[label] = true
	default:
		l.put(label)
	}
	return true
}

// has reports whether a name is that of a class which stays, also without the fleet.
func (l *classList) has(name string) bool { return l.known[name] == name && !l.imported[name] }

// put makes name the name of a class.
func (l *classList) put(name string) {
	if l.known[name] != name {
		l.n++
	}
	l.known[name] = name
	delete(l.waiting, name)
}

// drop removes a class, with its former names.
func (l *classList) drop(class string) {
	l.n--
	delete(l.imported, class)
	maps.DeleteFunc(l.known, func(_, of string) bool { return of == class })
}

// add adds a class by request.
func (l *classList) add(name string) error {
	if l.has(name) {
		return fmt.Errorf("class %.80q is there already", name)
	}
	l.put(name)
	delete(l.imported, name) // it stays, also without the fleet
	return nil
}

// remove removes a class by request. The name may be a former one.
func (l *classList) remove(name string) error {
	class, known := l.known[name]
	if !known {
		return fmt.Errorf("there is no class %.80q", name)
	}
	l.drop(class)
	return nil
}

// rename renames a class by request. Its former names remain valid, and from may be one of
// them.
func (l *classList) rename(from, to string) error {
	class, known := l.known[from]
	if !known {
		return fmt.Errorf("there is no class %.80q", from)
	}
	taken := l.known[to] == to && to != class
	if taken && !l.imported[to] {
		return fmt.Errorf("%.80q is the name of another class", to)
	}
	if len(l.known) >= online.MaxNames {
		return fmt.Errorf("%d names of classes are in use, former ones included, at most %d: remove a class, or reset the model", len(l.known), online.MaxNames)
	}
	if taken { // by a class of the fleet: it is this one
		l.drop(to)
	}
	for name, of := range l.known {
		if of == class {
			l.known[name] = to
		}
	}
	l.known[to] = to
	if l.imported[class] {
		delete(l.imported, class)
		l.imported[to] = true
	}
	return nil
}
