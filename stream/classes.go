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

// classes are the labels that a model knows or is about to learn. The learner decides;
// it may be behind.
type classes struct {
	open bool
	max  int

	mu     sync.Mutex
	known  map[string]string // name or former name of a class → its name
	n      int               // number of classes
	before map[string]string // known before the first change since commit; nil: no change
	gone   map[string]string // names of removed classes → that in the request; the learner may be yet to learn that. Of at most max classes

	// imported has the classes that a merge has brought to the learner and that have no label
	// of this node: the learner lets a label take the place of one, and drops those that
	// leave the fleet, perhaps before this is known here.
	imported map[string]bool

	goneBefore     map[string]string // gone at the time of before
	importedBefore map[string]bool
}

func newClasses(open bool, max int) *classes {
	return &classes{open: open, max: max, known: map[string]string{}, gone: map[string]string{}, imported: map[string]bool{}}
}

// refusal returns the reason to refuse the label, "" if it is accepted.
func (c *classes) refusal(label string) codec.Reason {
	c.mu.Lock()
	defer c.mu.Unlock()
	class, known := c.known[label]
	switch {
	case known && !c.imported[class]:
		return ""
	case !known && !c.open:
		return codec.UnknownClass
	case c.full():
		return codec.TooManyClasses
	}
	return ""
}

// full reports whether there is no room for another class. The caller holds mu.
func (c *classes) full() bool { return c.n-len(c.imported) >= c.max }

// labelled notes a label that was accepted, and that the learner makes a class at once if it
// is none.
func (c *classes) labelled(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own(name)
}

// confirmed notes that the learner has a class by labels of this node. One that was removed
// meanwhile does not come back.
func (c *classes) confirmed(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, gone := c.gone[name]; !gone {
		c.own(name)
	}
}

// own makes a name that of a class with labels of this node. The caller holds mu.
func (c *classes) own(name string) {
	class, known := c.known[name]
	switch {
	case c.imported[class]:
		c.change()
		delete(c.imported, class)
	case !known:
		c.put(name)
	}
}

// imports adds a class that a merge brings. One that was removed is not added: the learner
// is yet to learn that.
func (c *classes) imports(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if c.isNew(name) {
			c.put(name)
			c.imported[name] = true
		}
	}
}

// dropped notes that the learner has dropped an imported class. One with a label comes back
// to the learner with it.
func (c *classes) dropped(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.imported[name] {
		c.drop(name)
	}
}

// drop removes an imported class. The caller holds mu.
func (c *classes) drop(name string) {
	c.change()
	c.n--
	delete(c.imported, name)
	maps.DeleteFunc(c.known, func(_, class string) bool { return class == name })
}

// isNew reports whether a name is neither known nor removed. The caller holds mu.
func (c *classes) isNew(name string) bool {
	_, known := c.known[name]
	_, gone := c.gone[name]
	return !known && !gone
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

// addLearnt adds the classes of a model, and former names of classes. Those that were removed
// are not added: the learner is yet to learn that.
func (c *classes) addLearnt(names []string, former map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if c.isNew(name) {
			c.put(name)
		}
	}
	for name, class := range former {
		if now, known := c.known[class]; known && c.isNew(name) {
			c.change()
			c.known[name] = now
		}
	}
}

// keepImported brings the imported classes up to date with the learner, which says nothing of
// the records of an earlier run: it drops those of which the learner knows no name, and the
// others stay imported if they are among these.
func (c *classes) keepImported(imported, names []string, former map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, still := map[string]bool{}, map[string]bool{}
	for name, class := range c.known {
		now := cmp.Or(former[name], name)
		kept[class] = kept[class] || slices.Contains(names, now)
		still[class] = still[class] || slices.Contains(imported, now)
	}
	for name := range c.imported {
		if !kept[name] {
			c.drop(name)
		} else if !still[name] {
			c.change()
			delete(c.imported, name)
		}
	}
}

// removed notes that the learner has removed a class, by the request that has this name.
func (c *classes) removed(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := func(_, request string) bool { return request == name }
	maps.DeleteFunc(c.gone, of)
	maps.DeleteFunc(c.goneBefore, of)
}

// takeOver takes the classes of another node's model: with those that the learner has not
// learnt yet, and without those that it has not removed yet.
func (c *classes) takeOver(o *classes) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.gone, c.imported, c.n = maps.Clone(o.known), maps.Clone(o.gone), maps.Clone(o.imported), o.n
}

// count returns the number of classes.
func (c *classes) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// commit makes the changes permanent; rollback undoes the changes since.
func (c *classes) commit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = nil
}

func (c *classes) rollback() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.before == nil {
		return
	}
	c.known, c.before, c.n = c.before, nil, 0
	for name, class := range c.known {
		if name == class {
			c.n++
		}
	}
	c.gone, c.imported = c.goneBefore, c.importedBefore
}

// change prepares a change. The caller holds mu.
func (c *classes) change() {
	if c.before == nil {
		c.before, c.goneBefore, c.importedBefore = maps.Clone(c.known), maps.Clone(c.gone), maps.Clone(c.imported)
	}
}

// put makes name the name of a class. The caller holds mu.
func (c *classes) put(name string) {
	c.change()
	if c.known[name] != name {
		c.n++
	}
	c.known[name] = name
	delete(c.gone, name)
}

// reset replaces all names, as a model is replaced.
func (c *classes) reset(names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.change()
	c.known, c.gone, c.imported, c.n = map[string]string{}, map[string]string{}, map[string]bool{}, 0
	for _, name := range names {
		c.put(name)
	}
}

// foresee changes the classes as the committer changed them when it wrote these
// events, which the model is yet to learn.
func (m *modelState) foresee(events []online.Event) {
	for i := range events {
		switch ev := &events[i]; ev.Kind {
		case online.Observe, online.Correct:
			m.labelled(ev.Label)
		case online.ClassAdd:
			_ = m.classes.declare(ev.Label) // the request was checked
		case online.ClassRemove:
			_ = m.classes.remove(ev.Label)
		case online.ClassRename:
			_ = m.classes.rename(ev.Label, ev.Name)
		case online.Merge:
			m.classes.imports(ev.Label)
		case online.Reset:
			m.classes.reset(m.Classes.Names)
		case online.Replace:
			m.classes.reset(nil)
		}
	}
	m.classes.commit()
}

// labelled notes a label that was accepted. Where several samples confirm a class the learner
// decides, and says so.
func (m *modelState) labelled(label string) {
	if m.Classes.Needed(m.classes.count()) <= 1 {
		m.classes.labelled(label)
	}
}

// declare adds a class by request.
func (c *classes) declare(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.known[name] == name && !c.imported[name]:
		return fmt.Errorf("class %.80q is there already", name)
	case c.full():
		return fmt.Errorf("class %.80q would be one more than classes.max = %d", name, c.max)
	}
	c.put(name)
	delete(c.imported, name) // it stays, also without the fleet
	return nil
}

// remove removes a class by request, with its former names. The name may be one of them.
func (c *classes) remove(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	class, known := c.known[name]
	if !known {
		return fmt.Errorf("there is no class %.80q", name)
	}
	c.change()
	c.n--
	delete(c.imported, class)
	remember := len(c.gone) < c.max
	for other, of := range c.known {
		if of != class {
			continue
		}
		delete(c.known, other)
		if remember {
			c.gone[other] = name
		}
	}
	return nil
}

// rename renames a class by request. Its former names remain valid, and from may be one of
// them.
func (c *classes) rename(from, to string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	class, known := c.known[from]
	if !known {
		return fmt.Errorf("there is no class %.80q", from)
	}
	taken := c.known[to] == to && to != class
	if taken && !c.imported[to] {
		return fmt.Errorf("%.80q is the name of another class", to)
	}
	if len(c.known) >= online.MaxNames {
		return fmt.Errorf("%d names of classes are in use, former ones included, at most %d: remove a class, or reset the model", len(c.known), online.MaxNames)
	}
	c.change()
	if taken { // by a class of the fleet: it is this one
		c.drop(to)
	}
	for name, of := range c.known {
		if of == class {
			c.known[name] = to
		}
	}
	c.known[to] = to
	delete(c.gone, to)
	if c.imported[class] {
		delete(c.imported, class)
		c.imported[to] = true
	}
	return nil
}
