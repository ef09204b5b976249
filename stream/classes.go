package stream

import (
	"fmt"
	"maps"
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

	goneBefore map[string]string // gone at the time of before
}

func newClasses(open bool, max int) *classes {
	return &classes{open: open, max: max, known: map[string]string{}, gone: map[string]string{}}
}

// refusal returns the reason to refuse the label, "" if it is accepted.
func (c *classes) refusal(label string) codec.Reason {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.known[label]
	switch {
	case known:
		return ""
	case !c.open:
		return codec.UnknownClass
	case c.n >= c.max:
		return codec.TooManyClasses
	}
	return ""
}

func (c *classes) add(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if _, known := c.known[name]; !known {
			c.put(name)
		}
	}
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
	isNew := func(name string) bool {
		_, known := c.known[name]
		_, gone := c.gone[name]
		return !known && !gone
	}
	for _, name := range names {
		if isNew(name) {
			c.put(name)
		}
	}
	for name, class := range former {
		if now, known := c.known[class]; known && isNew(name) {
			c.change()
			c.known[name] = now
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
	c.known, c.gone, c.n = maps.Clone(o.known), maps.Clone(o.gone), o.n
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
	c.gone = c.goneBefore
}

// change prepares a change. The caller holds mu.
func (c *classes) change() {
	if c.before == nil {
		c.before, c.goneBefore = maps.Clone(c.known), maps.Clone(c.gone)
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
	c.known, c.gone, c.n = map[string]string{}, map[string]string{}, 0
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
			if m.Classes.Needed(m.classes.count()) <= 1 {
				m.classes.add(ev.Label)
			}
		case online.ClassAdd:
			_ = m.classes.declare(ev.Label) // the request was checked
		case online.ClassRemove:
			_ = m.classes.remove(ev.Label)
		case online.ClassRename:
			_ = m.classes.rename(ev.Label, ev.Name)
		case online.Reset:
			m.classes.reset(m.Classes.Names)
		case online.Replace:
			m.classes.reset(nil)
		}
	}
	m.classes.commit()
}

// declare adds a class by request.
func (c *classes) declare(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.known[name] == name:
		return fmt.Errorf("class %.80q is there already", name)
	case c.n >= c.max:
		return fmt.Errorf("class %.80q would be one more than classes.max = %d", name, c.max)
	}
	c.put(name)
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
	if c.known[to] == to && to != class {
		return fmt.Errorf("%.80q is the name of another class", to)
	}
	if len(c.known) >= online.MaxNames {
		return fmt.Errorf("%d names of classes are in use, former ones included, at most %d: remove a class, or reset the model", len(c.known), online.MaxNames)
	}
	c.change()
	for name, of := range c.known {
		if of == class {
			c.known[name] = to
		}
	}
	c.known[to] = to
	delete(c.gone, to)
	return nil
}
