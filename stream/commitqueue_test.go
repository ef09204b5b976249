package stream

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"edge/stream/mqtt"
)

// receive takes the oldest item as the committer does.
func receive(q *commitQueue) *item {
	it := <-q.items
	q.taken(it)
	return it
}

func TestCommitQueue(t *testing.T) {
	q := newCommitQueue(4 << 20)
	for _, c := range []struct {
		bytes int
		taken bool
	}{{5 * maxQueuedBytes, true}, {1, false}} { // one alone is taken whatever its size
		if got := q.offer(&item{bytes: c.bytes}); got != c.taken {
			t.Errorf("an item of %d bytes: taken %v, want %v", c.bytes, got, c.taken)
		}
	}
	receive(q)
	select {
	case <-q.room:
	default:
		t.Error("the room is not announced")
	}
	for range 4 {
		if !q.offer(&item{bytes: maxQueuedBytes / 4}) {
			t.Error("there is room for it")
		}
	}
	if q.open(&item{bytes: 1}) != nil {
		t.Error("the bound is reached")
	}
	for q = newCommitQueue(4 << 20); q.offer(&item{bytes: 1}); {
	}
	if got := len(q.items); got != maxQueued {
		t.Errorf("%d items are waiting, want %d", got, maxQueued)
	}
	q = newCommitQueue(64 << 10)
	if q.offer(&item{bytes: 40 << 10}); q.offer(&item{bytes: 40 << 10}) {
		t.Error("more waits than in a ring of 64 KiB")
	}
}

// Messages of many rows wait by the memory of what they were decoded to: a burst of them takes no
// more of it than the ring may, and is learnt when the journal works again.
func TestRowsTakeMemory(t *testing.T) {
	in("a burst of messages of many rows", t, func(t *testing.T) {
		const rows, burst = 200, 100
		cfg, m := testConfig()
		r := newRig(t, newFakeJournal(), cfg, m)
		block := make(chan struct{})
		r.journal.set(nil, block)
		entries := make([]string, rows)
		for i := range burst {
			for j := range entries {
				entries[j] = fmt.Sprintf(`{"features":[%d,0],"label":"a"}`, i*rows+j)
			}
			r.sendMessage(&mqtt.Message{Topic: p7, Payload: []byte(`{"batch":[` + strings.Join(entries, ",") + `]}`), QoS: 0})
			time.Sleep(time.Second)
		}
		if got := r.node.queue.bytes.Load(); got > maxQueuedBytes || got < maxQueuedBytes/2 {
			t.Errorf("%d bytes wait for the committer, want %d at most and nearly as many", got, maxQueuedBytes)
		}
		if got := r.node.Stats(); got.Commit*rows*exampleSize > maxQueuedBytes+int(cfg.MQTT.Ring.MaxBytes/4)+2*rows*exampleSize {
			t.Errorf("%d messages of %d rows wait, which are more than their bound", got.Commit, rows)
		}
		close(block)
		time.Sleep(time.Minute)
		if s := r.node.Stats(); s.Commit != 0 || s.ExamplesDropped == 0 || s.Learned+rows*s.ExamplesDropped != rows*burst {
			t.Errorf("%d learnt, %d messages dropped and %d left of %d messages of %d rows", s.Learned, s.ExamplesDropped, s.Commit, burst, rows)
		}
	})
}
