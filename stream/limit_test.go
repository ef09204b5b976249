package stream

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"edge/online"
)

// limitedJournal has room for a number of pending samples and for a number of records in a
// commit. A commit that only drops samples always succeeds.
type limitedJournal struct {
	*fakeJournal
	samples, records int
	drops            int // commits that only dropped samples
}

func (j *limitedJournal) Commit(c *online.Commit) error {
	drops := len(c.Forget) > 0 && len(c.Wait)+len(c.Records) == 0 && c.Taken == nil
	if drops {
		j.drops++
	} else if len(j.waiting("bearing"))+len(c.Wait) > j.samples || len(c.Records) > j.records {
		return fmt.Errorf("full: %w", online.ErrLimit)
	}
	return j.fakeJournal.Commit(c)
}

// limited runs a node with a journal that has room for so much.
func limited(t *testing.T, samples, records int) (*rig, *limitedJournal) {
	j := &limitedJournal{fakeJournal: newFakeJournal(), samples: samples, records: records}
	cfg, m := testConfig()
	r := &rig{t: t, journal: j.fakeJournal, models: map[string]*fakeModel{"bearing": m.Model.(*fakeModel)}}
	r.reconnect(nil)
	r.node = newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: j, Log: slog.New(slog.DiscardHandler)})
	r.start()
	return r, j
}

func waits(i int) string { return fmt.Sprintf(`{"id":"s%d","features":[%d,0]}`, i, i) }

// A journal that pending samples have filled works again without them; later ones replace
// the oldest at once, and all that are kept in memory are in the journal.
func TestFullOfPending(t *testing.T) {
	in("the oldest make room", t, func(t *testing.T) {
		r, j := limited(t, 80, 10)
		const sent = 300
		for i := range sent {
			r.send(p7, waits(i))
			time.Sleep(10 * time.Second)
		}
		if n := len(r.acks()); n != sent {
			t.Fatalf("%d messages are acknowledged, want %d", n, sent)
		}
		s := r.node.Stats()
		kept := j.waiting("bearing")
		if s.Degraded || j.drops == 0 || j.drops > 2 || len(kept) < 60 || int(s.PendingEvicted) != sent-len(kept) || s.Models["bearing"].Pending != len(kept) {
			t.Errorf("degraded %t, %d times full, %d samples in the journal, %d evicted, %d pending", s.Degraded, j.drops, len(kept), s.PendingEvicted, s.Models["bearing"].Pending)
		}
		r.send("factory/p7/label", fmt.Sprintf(`{"id":"s%d","label":"ok"}`, sent-len(kept)), `{"id":"s0","label":"ok"}`)
		time.Sleep(10 * time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{fmt.Sprintf("ok %d", sent-len(kept))})
	})
	in("not before checkpoints could", t, func(t *testing.T) {
		r, j := limited(t, 10, 10)
		for i := range 11 {
			r.send(p7, waits(i))
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second) // two after the first failure
		if s := r.node.Stats(); !s.Degraded || j.drops > 0 || s.PendingEvicted > 0 {
			t.Errorf("degraded %t, %d evicted", s.Degraded, s.PendingEvicted)
		}
		time.Sleep(10 * time.Second)
		if s := r.node.Stats(); s.Degraded || s.PendingEvicted != 2 {
			t.Errorf("degraded %t, %d evicted", s.Degraded, s.PendingEvicted)
		}
	})
	in("those of the commit itself as well", t, func(t *testing.T) {
		r, j := limited(t, 5, 10)
		for i := range 12 { // of one commit
			r.send(p7, waits(i))
		}
		time.Sleep(10 * time.Minute)
		if n, s := len(j.waiting("bearing")), r.node.Stats(); n == 0 || n > 5 || s.Models["bearing"].Pending != n || len(r.acks()) != 12 {
			t.Errorf("%d in the journal, %d pending, %d acknowledged", n, s.Models["bearing"].Pending, len(r.acks()))
		}
	})
	in("a full disk costs no samples", t, func(t *testing.T) {
		r := one(t)
		r.send(p7, waits(1))
		time.Sleep(time.Second)
		r.journal.set(errDiskFull, nil)
		r.send(p7, waits(2))
		time.Sleep(time.Hour)
		r.journal.set(nil, nil)
		time.Sleep(time.Minute)
		if s := r.node.Stats(); s.PendingEvicted > 0 || s.Models["bearing"].Pending != 2 {
			t.Errorf("%d evicted, %d pending", s.PendingEvicted, s.Models["bearing"].Pending)
		}
	})
}
