package mqtt

import (
	"math/rand/v2"
	"slices"
	"testing"

	"edge/stream/field"
)

// drain empties a queue and returns its items.
func drain[T any](q *Queue[T]) (all []T) {
	for v, ok := q.Pop(); ok; v, ok = q.Pop() {
		all = append(all, v)
	}
	return all
}

// anyItem lets a queue drop every item.
func anyItem(string) bool { return true }

func TestQueue(t *testing.T) {
	size := func(s string) int { return len(s) }
	for _, c := range []struct {
		name     string
		maxItems int
		maxBytes field.ByteSize
		queued   []string
		pushed   string
		taken    bool
		dropped  int
		left     []string
	}{
		{"drops the oldest for a message too many", 2, 100, []string{"a", "b"}, "c", true, 1, []string{"b", "c"}},
		{"drops as many as the bytes need", 10, 10, []string{"aaa", "bbb", "ccc"}, "dddddd", true, 2, []string{"ccc", "dddddd"}},
		{"drops nothing for what cannot fit", 10, 10, []string{"a"}, "a text of more than ten bytes", false, 0, []string{"a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := NewQueue(c.maxItems, c.maxBytes, size)
			for _, v := range c.queued {
				q.Push(v, anyItem)
			}
			if taken, dropped := q.Push(c.pushed, anyItem); taken != c.taken || dropped != c.dropped {
				t.Errorf("push = %v, %d, want %v, %d", taken, dropped, c.taken, c.dropped)
			}
			if got := drain(q); !slices.Equal(got, c.left) {
				t.Errorf("left %q, want %q", got, c.left)
			}
		})
	}
	t.Run("takes one alone, whatever its size", func(t *testing.T) {
		q := NewQueue(10, 10, size)
		for _, mayDrop := range []func(string) bool{anyItem, nil} {
			if taken, dropped := q.Push("a text of more than ten bytes", mayDrop); !taken || dropped != 0 {
				t.Errorf("push = %v, %d, want true, 0", taken, dropped)
			}
			if taken, _ := q.Push("a", nil); taken {
				t.Error("another one was taken")
			}
			drain(q)
		}
		q.Push("a", nil)
		q.Reserve(1)
		drain(q)
		if taken, _ := q.Push("a text of more than ten bytes", nil); taken {
			t.Error("it was taken beside one that is held")
		}
	})
	t.Run("passes over what may not be dropped", func(t *testing.T) {
		q := NewQueue(2, 100, size)
		keep := func(s string) bool { return s != "keep" }
		q.Push("keep", keep)
		q.Push("b", keep)
		q.Push("c", keep)
		if got := drain(q); !slices.Equal(got, []string{"keep", "c"}) {
			t.Errorf("left %q", got)
		}
	})
	t.Run("replaces and puts back", func(t *testing.T) {
		q := NewQueue(10, 100, size)
		q.Push("a", anyItem)
		q.Push("bb", anyItem)
		if !q.replace("BBB", func(s string) bool { return s == "bb" }) || q.replace("x", func(s string) bool { return s == "z" }) {
			t.Error("replace")
		}
		a, _ := q.Pop()
		q.pushFront([]string{"0", a})
		if q.bytes != 5 {
			t.Errorf("%d bytes, want 5", q.bytes)
		}
		if got := drain(q); !slices.Equal(got, []string{"0", "a", "BBB"}) {
			t.Errorf("left %q", got)
		}
	})
}

// A reserved item takes up room, for items that must not be dropped, until Release.
func TestQueueReserve(t *testing.T) {
	q := NewQueue(3, 10, func(s string) int { return len(s) })
	must := func(s string) bool { taken, _ := q.Push(s, nil); return taken }
	if !must("aaaa") || !must("b") {
		t.Fatal("no room")
	}
	for range 2 {
		v, _ := q.Pop()
		q.Reserve(q.size(v))
	}
	if must("123456") {
		t.Error("11 bytes are taken, of 10")
	}
	if !must("c") || must("d") {
		t.Error("want room for one more")
	}
	if taken, dropped := q.Push("e", anyItem); !taken || dropped != 0 {
		t.Error("what may be dropped has no room although only one waits")
	}
	q.Release(4)
	if must("d") {
		t.Error("four are taken, of three")
	}
	q.Release(1)
	if !must("d") || q.Len() != 3 {
		t.Errorf("%d wait", q.Len())
	}
}

// Under any sequence of calls, a queue keeps its bounds, its order and its sums.
func TestQueueBounds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const maxItems, maxBytes = 7, 50
	q := NewQueue(maxItems, maxBytes, func(v [2]int) int { return v[1] })
	pushed, out, dropped, refused, replaced := 0, 0, 0, 0, 0
	last := -1
	for n := range 20000 {
		switch rnd.IntN(5) {
		case 0, 1, 2:
			taken, d := q.Push([2]int{n, rnd.IntN(20)}, func(v [2]int) bool { return v[0]%3 != 0 })
			dropped += d
			if pushed++; !taken {
				refused++
			}
		case 3:
			if v, ok := q.Pop(); ok {
				if v[0] < last {
					t.Fatalf("popped %d after %d", v[0], last)
				}
				last = v[0]
				out++
			}
		case 4:
			if q.replace([2]int{last + 1, 1}, func(v [2]int) bool { return v[0] == last+1 }) {
				replaced++
			}
		}
		if q.Len() > maxItems || q.bytes > maxBytes {
			t.Fatalf("step %d: %d items, %d bytes", n, q.Len(), q.bytes)
		}
		if q.Len() != pushed-refused-dropped-out {
			t.Fatalf("step %d: %d items, want %d-%d-%d-%d", n, q.Len(), pushed, refused, dropped, out)
		}
	}
	if out == 0 || dropped == 0 || refused == 0 {
		t.Errorf("popped %d, dropped %d, refused %d: the test did not reach everything", out, dropped, refused)
	}
	drain(q)
	if q.bytes != 0 {
		t.Errorf("%d bytes in an empty queue", q.bytes)
	}
}
