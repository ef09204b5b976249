package membership

import (
	"testing"

	"edge/online/fleet"
)

// A collector has the common basis beside the members, in parts as well.
func TestCollectorOfBasis(t *testing.T) {
	of := contribution(t, "a", 9, 2)
	data, err := (&fleet.Common{Birth: fleet.Birth{Number: 3, Author: "a", Tag: 1}, Features: 7, Classes: of.Classes, Counts: of.Counts, Basis: of.Basis}).AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{len(data), 40} {
		topics := NewTopics("edge", "c")
		c := NewCollector(topics)
		head, parts := split(fleet.Version{Epoch: 3, Sequence: 1}, data, limit)
		c.Receive(topics.Contribution(BasisName), head)
		for i, p := range parts {
			c.Receive(topics.Part(BasisName, i), p)
		}
		c.Receive(topics.Contribution("b"), []byte("x"))
		equal(t, "names", c.Members(), []string{"b", BasisName})
		h, kept, err := c.Contribution(BasisName)
		if err != nil {
			t.Fatalf("in %d parts: %v", len(parts), err)
		}
		equal(t, "author, number, labels and bytes", []any{h.Member, h.Epoch, h.N, len(kept)}, []any{"a", 3, 9, len(data)})
	}
}

// A collector counts the messages beyond the bound, and takes others instead of larger
// ones.
func TestCollectorIsBounded(t *testing.T) {
	topics := NewTopics("edge", "c")
	c, half := NewCollector(topics), make([]byte, MaxHeld/2)
	for _, name := range []string{"a", "b", "d", "e"} {
		c.Receive(topics.Contribution(name), half)
	}
	c.Receive("edge/fleet/other/a", half)
	equal(t, "dropped", c.Dropped(), 2)
	equal(t, "members", c.Members(), []string{"a", "b"})
	c.Receive(topics.Contribution("a"), nil)
	c.Receive(topics.Contribution("e"), half)
	equal(t, "dropped", c.Dropped(), 2)
	equal(t, "members after one has left", c.Members(), []string{"b", "e"})
}

// A collector has the topics that are those of no member, which is none of theirs.
func TestCollectorOfStrays(t *testing.T) {
	topics := NewTopics("edge", "c")
	c := NewCollector(topics)
	for _, topic := range []string{"edge/fleet/c/b", "edge/fleet/c/b/x", "edge/fleet/c/B", "edge/fleet/c/", "edge/fleet/other/B"} {
		c.Receive(topic, []byte("x"))
	}
	equal(t, "topics of no member", c.Strays(), []string{"edge/fleet/c/", "edge/fleet/c/B", "edge/fleet/c/b/x"})
	equal(t, "members", c.Members(), []string{"b"})
	equal(t, "messages of b", c.Kept("b"), []string{"edge/fleet/c/b"})
}
