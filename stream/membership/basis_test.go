package membership

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"edge/online/fleet"
	"edge/stream/field"
)

func sharing(c *Config) { c.Basis = BasisShared }

// basis returns number and author of the common basis that the broker keeps.
func (w *world) basis() string {
	c, err := fleet.DecodeCommon([]byte(w.kept["edge/fleet/c/basis"]))
	if err != nil {
		return ""
	}
	return fmt.Sprint(c.Number, " ", c.Author)
}

func (n *node) has() string { return fmt.Sprint(n.birth.Number, " ", n.birth.Author) }

// saidOfBasis returns the details of the events about the basis.
func (n *node) saidOfBasis() (all []string) {
	for _, e := range n.events {
		if detail, ok := strings.CutPrefix(e, "fleet_basis "); ok {
			all = append(all, detail)
		}
	}
	return all
}

// The first node whose warm-up is over proposes its basis, the others adopt it, also one
// that comes later or was there before; and a node with a basis of its own takes no part.
func TestBasisIsProposed(t *testing.T) {
	w := newWorld(t)
	b, c := w.start("b", 1, sharing), w.start("c", 1, sharing)
	own := w.start("own", 1, plain)
	w.pass(time.Minute)
	equal(t, "basis before a warm-up is over", w.basis(), "")
	b.labels, own.labels = 50, 50
	w.pass(2 * time.Second)
	equal(t, "basis", w.basis(), "1 b")
	w.pass(70 * time.Second)
	equal(t, "c has", c.has(), "1 b")
	a := w.start("a", 1, sharing)
	a.labels = 500
	w.pass(70 * time.Second)
	equal(t, "a has", a.has(), "1 b")
	equal(t, "own has", own.has(), "0 ")
	equal(t, "b says", b.saidOfBasis(), []string{"this node proposes basis 1"})
	equal(t, "a says", a.saidOfBasis(), []string{"basis 1 of b is adopted"})
	equal(t, "own says", own.happened(), []string(nil))
	equal(t, "view", *a.View(w.now, Model{}).Basis, BasisView{1, "b", 1})
	if v := own.View(w.now, Model{}); v.Basis != nil || v.Refused["format"] > 0 {
		t.Errorf("the view of a node with a basis of its own: %+v", v)
	}
	equal(t, "announcements", []int{a.announced, b.announced, c.announced, own.announced}, []int{0, 1, 0, 0})
	n := b.published
	w.pass(time.Minute)
	if b.labels = 50; b.published != n {
		t.Error("a contribution is published again and again")
	}
}

// A node that has adopted a basis publishes again, whether the contribution before came back
// ahead of the merge or after it, and the broker keeps that one meanwhile.
func TestContributionOfAdoptedBasis(t *testing.T) {
	for _, late := range []bool{false, true} {
		w := newWorld(t)
		b := w.start("b", 1, sharing)
		b.vain, b.labels = true, 50
		w.pass(6 * time.Second)
		equal(t, "published", b.published, 1)
		b.own.kept = fleet.MaxBytes // nothing is asked for
		all, err := b.Publish(w.now, contribution(t, "b", 50, 2))
		if err != nil {
			t.Fatal(err)
		}
		echo := func() { b.Receive(w.now, all[0].Topic, all[0].Payload, false) }
		if !late {
			echo()
		}
		b.birth = fleet.Birth{Number: 1, Author: "a"}
		b.Merged(w.now, &fleet.Merge{Sharing: &fleet.Sharing{Birth: b.birth}})
		if late {
			echo()
		}
		if !b.View(w.now, Model{}).Kept {
			t.Errorf("late %v: the view says that the broker does not keep the contribution", late)
		}
		w.pass(keptWithin - time.Second)
		equal(t, "published meanwhile", b.published, 1)
		w.pass(time.Second)
		equal(t, "published afterwards", b.published, 2)
		w.pass(time.Minute)
		equal(t, "published in the end", b.published, 2)
	}
}

// Of two that propose at once the smaller name wins, whoever the broker has heard last.
func TestSmallerNameWins(t *testing.T) {
	for _, first := range []string{"a", "b"} {
		w := newWorld(t)
		a, b := w.start("a", 1, sharing), w.start("b", 1, sharing)
		w.pass(20 * time.Second)
		early, late := a, b
		if first == "b" {
			early, late = b, a
		}
		late.disconnect()
		early.labels = 60
		w.pass(10 * time.Second)
		equal(t, first+" has", early.has(), "1 "+first)
		// The other one has proposed as well, before it heard of that.
		late.birth = fleet.Birth{Number: 1, Author: late.Name(), Tag: 3}
		late.labels = 60
		common := w.kept["edge/fleet/c/basis"]
		delete(w.kept, "edge/fleet/c/basis")
		early.disconnect()
		late.connect()
		w.pass(20 * time.Second)
		equal(t, "late announces", late.announced, 1)
		w.kept["edge/fleet/c/basis"] = common
		early.connect()
		late.disconnect()
		late.connect()
		w.pass(10 * time.Minute)
		for _, n := range []*node{a, b} {
			equal(t, n.Name()+" has, "+first+" first", n.has(), "1 a")
		}
		equal(t, "the broker keeps, "+first+" first", w.basis(), "1 a")
	}
}

// A broker that has lost its messages gets the basis again, one that was cleared as well.
func TestBasisIsPublishedAgain(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a", 1, sharing), w.start("b", 1, sharing)
	a.labels, b.labels = 50, 50
	w.pass(3 * time.Minute)
	tag := a.birth.Tag
	clear(w.kept)
	for _, n := range w.nodes {
		n.disconnect()
		n.connect()
	}
	w.pass(3 * time.Minute)
	equal(t, "basis after the broker has lost it", w.basis(), "1 a")
	w.publish(Publication{Topic: "edge/fleet/c/basis"})
	w.pass(3 * time.Minute)
	equal(t, "basis after it was cleared", w.basis(), "1 a")
	if c, _ := fleet.DecodeCommon([]byte(w.kept["edge/fleet/c/basis"])); c.Tag != tag {
		t.Error("it is another one")
	}
	if n := a.announced + b.announced; n > 6 {
		t.Errorf("%d announcements", n)
	}
}

// A model that has nothing to propose is not asked each second: its merges are journalled.
func TestVainMergesAreRare(t *testing.T) {
	w := newWorld(t)
	a := w.start("a", 1, sharing)
	a.vain, a.labels = true, 50
	w.pass(16 * time.Minute)
	if n := len(a.merges); n < 3 || n > 4 {
		t.Errorf("%d merges in a quarter of an hour", n)
	}
}

// A request makes a new basis, which the others adopt; the first one is settled after a
// time.
func TestRebase(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a", 1, sharing), w.start("b", 1, sharing)
	a.labels, b.labels = 50, 50
	w.pass(3 * time.Minute)
	if err := b.Rebase("newest"); err == nil {
		t.Error("an unknown way is accepted")
	}
	if err := b.Rebase(fleet.Pooled); err != nil {
		t.Fatal(err)
	}
	w.pass(3 * time.Minute)
	for _, n := range w.nodes {
		equal(t, n.Name()+" has", n.has(), "2 b")
	}
	equal(t, "a says", a.saidOfBasis()[1:], []string{"basis 2 of b is adopted"})
	request := func() fleet.BasisRequest { return a.request(w.now, fleet.NewSet(0)).BasisRequest }
	if r := request(); r.Settled || r.Rebase != "" || r.Vacant {
		t.Errorf("request %+v", r)
	}
	w.pass(5 * time.Minute)
	if !request().Settled {
		t.Error("the basis is not settled after ten minutes")
	}
	if err := a.Rebase(fleet.First); err != nil {
		t.Fatal(err)
	}
	a.request(w.now, fleet.NewSet(0))
	a.MergeFailed(w.now, nil)
	equal(t, "request after a merge that failed", request().Rebase, fleet.First)
	b.disconnect()
	if b.Rebase(fleet.First) == nil || w.start("own", 1, plain).Rebase(fleet.First) == nil {
		t.Error("a node without a connection, or with a basis of its own, accepts a request")
	}
}

// A node refuses to propose a basis that no other member would adopt, also after its restart.
func TestVainRebase(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a", 1, sharing), w.start("b", 1, sharing)
	a.labels, b.labels, b.size = 50, 50, 3
	w.pass(3 * time.Minute)
	b.disconnect()
	b = w.start("b", 2, sharing)
	b.size = 3
	for _, labels := range []uint64{0, 50} {
		b.labels = labels
		w.pass(3 * time.Minute)
		for _, how := range []fleet.Rebase{fleet.First, fleet.Pooled} {
			if err := b.Rebase(how); err == nil || !strings.Contains(err.Error(), "a would find that it has another number of inducing points; ask") {
				t.Errorf("%s with %d labels: %v", how, labels, err)
			}
		}
	}
	c := w.start("c", 1, sharing)
	c.labels, c.size = 50, 3
	w.pass(time.Minute)
	if err := b.Rebase(fleet.First); err != nil {
		t.Errorf("with another one like it: %v", err)
	}
	w.pass(3 * time.Minute)
	equal(t, "c has", c.has(), "2 b")
	equal(t, "a has", a.has(), "1 a")
}

// A basis that the broker does not keep is noticed; a large one goes in parts; one that is
// damaged, or of a node that is not listed, is refused.
func TestBasisOnTheWay(t *testing.T) {
	w := newWorld(t)
	w.limit = 50
	a := w.start("a", 1, sharing)
	a.labels = 50
	w.pass(2 * time.Minute)
	equal(t, "announcements", a.announced, basisAttempts)
	if !slices.ContainsFunc(a.events, func(e string) bool {
		return strings.HasPrefix(e, "fleet_not_kept the common basis") && strings.Contains(e, "edge/fleet/c/basis")
	}) {
		t.Errorf("events %q", a.events)
	}

	w = newWorld(t)
	small := func(c *Config) { c.Basis, c.MaxMessage = BasisShared, 2*field.KiB }
	a, b := w.start("a", 1, small), w.start("b", 1, small)
	a.labels, a.size, b.size = 50, 900, 900
	w.pass(2 * time.Minute)
	equal(t, "b has", b.has(), "1 a")
	if _, there := w.kept["edge/fleet/c/basis/0"]; !there || b.View(w.now, Model{}).Refused["format"] > 0 {
		t.Error("the basis does not go in parts")
	}

	w = newWorld(t)
	a = w.start("a", 1, func(c *Config) { c.Basis, c.Members = BasisShared, []string{"b"} })
	c := w.start("c", 1, sharing)
	c.labels = 50
	w.pass(2 * time.Minute)
	w.publish(Publication{Topic: "edge/fleet/c/basis", Payload: []byte("EFB1")})
	equal(t, "a has", a.has(), "0 ")
	equal(t, "refused", []uint64{a.View(w.now, Model{}).Refused[NotListed], a.View(w.now, Model{}).Refused[Malformed]}, []uint64{3, 1}) // the basis and two contributions

	// A merge that does not adopt it says why, once.
	said := len(c.saidOfBasis())
	for _, reason := range []fleet.Reason{fleet.OtherClasses, fleet.OtherClasses, fleet.OtherInducing, fleet.OtherInputs, fleet.NotFactored} {
		c.Merged(w.now, &fleet.Merge{Sharing: &fleet.Sharing{}, Unfit: reason})
	}
	equal(t, "events", len(c.saidOfBasis())-said, 4)
}

// A node shows which members have the common basis, and why it, or they, do not adopt it. The
// event comes once, though each merge tries again.
func TestBasisIsNotAdopted(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a", 1, sharing), w.start("b", 1, sharing)
	a.labels = 60
	w.pass(10 * time.Second)
	c, own := w.start("c", 1, sharing), w.start("own", 1, plain)
	b.labels, c.labels, own.labels, c.size = 60, 60, 60, 3
	for range 10 {
		w.pass(6 * time.Minute)
		for _, n := range w.nodes {
			n.labels += 100
		}
	}
	equal(t, "c says", c.saidOfBasis(), []string{"basis 1 of a is not adopted: it has another number of inducing points"})
	v := c.View(w.now, Model{})
	if v.Basis != nil || v.Unfit != c.saidOfBasis()[0] {
		t.Errorf("c shows the basis %+v, refused %q", v.Basis, v.Unfit)
	}
	shown := func(n *node) (all []string) {
		for _, m := range n.View(w.now, Model{}).Members {
			all = append(all, strings.TrimSpace(fmt.Sprint(m.Name, " ", m.Basis, " ", m.Unfit)))
		}
		return all
	}
	equal(t, "c shows", shown(c), []string{"a common", "b common", "own own"})
	equal(t, "b shows", shown(b), []string{"a common", "c own inducing", "own own"})
	equal(t, "own shows", shown(own), []string{"a", "b", "c"})
	if v := b.View(w.now, Model{}); v.Unfit != "" {
		t.Errorf("b refuses the basis: %q", v.Unfit)
	}
	c.size = 2
	w.pass(6 * time.Minute)
	if v := c.View(w.now, Model{}); v.Unfit != "" || v.Basis == nil {
		t.Errorf("afterwards c shows the basis %+v, refused %q", v.Basis, v.Unfit)
	}
}
