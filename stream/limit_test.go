package stream

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"edge/online"
	"edge/stream/mqtt"
)

// limitedJournal has room for a number of pending samples and for a number of records in a
// commit. A commit that only drops samples always succeeds.
type limitedJournal struct {
	*fakeJournal
	samples, records int
}

func (j *limitedJournal) Commit(c *online.Commit) error {
	if !onlyDrops(c) && (len(j.waiting("bearing"))+len(c.Wait) > j.samples || len(c.Records) > j.records) {
		return fmt.Errorf("full: %w", online.ErrLimit)
	}
	return j.fakeJournal.Commit(c)
}

// onlyDrops reports whether a commit only drops samples.
func onlyDrops(c *online.Commit) bool {
	return len(c.Forget) > 0 && len(c.Wait)+len(c.Records) == 0 && c.Taken == nil
}

// drops returns the number of commits that only dropped samples.
func (j *limitedJournal) drops() (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.commits {
		if onlyDrops(c) {
			n++
		}
	}
	return n
}

// limited runs a node with a journal that has room for so much.
func limited(t *testing.T, samples, records int) (*rig, *limitedJournal) {
	cfg, m := testConfig()
	return limitedRig(t, cfg, m, &limitedJournal{fakeJournal: newFakeJournal(), samples: samples, records: records})
}

func limitedRig(t *testing.T, cfg Config, m ModelConfig, j *limitedJournal) (*rig, *limitedJournal) {
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
		if s.Degraded || j.drops() == 0 || j.drops() > 2 || len(kept) < 60 || int(s.PendingEvicted) != sent-len(kept) || s.Models["bearing"].Pending != len(kept) {
			t.Errorf("degraded %t, %d times full, %d samples in the journal, %d evicted, %d pending", s.Degraded, j.drops(), len(kept), s.PendingEvicted, s.Models["bearing"].Pending)
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
		if s := r.node.Stats(); !s.Degraded || j.drops() > 0 || s.PendingEvicted > 0 {
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
	in("no samples, and later ones wait as before", t, func(t *testing.T) {
		r := one(t)
		r.journal.set(online.ErrLimit, nil)
		r.send(p7, `{"features":[1,0],"label":"ok"}`)
		time.Sleep(time.Hour)
		r.journal.set(nil, nil)
		time.Sleep(time.Minute)
		r.send(p7, waits(1))
		time.Sleep(time.Minute)
		if s := r.node.Stats(); s.PendingEvicted > 0 || s.Models["bearing"].Pending != 1 {
			t.Errorf("%d evicted, %d pending", s.PendingEvicted, s.Models["bearing"].Pending)
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

// A label of more samples than a commit may have is learnt in parts. If the node ends
// between them, the label comes again and finds the rest.
func TestLabelInParts(t *testing.T) {
	const samples = 2*maxGroupRecords + 500
	label := fmt.Sprintf(`{"from":1000,"to":%d,"label":"worn"}`, 1000+samples)
	begin := func(t *testing.T, room int) (*rig, *limitedJournal, Config, ModelConfig) {
		cfg, m := signalsConfig(rowSamples)
		r, j := limitedRig(t, cfg, m, &limitedJournal{fakeJournal: newFakeJournal(), samples: room, records: maxGroupRecords})
		for i := range samples {
			r.send(accP7, rowAt(i, i, ""))
			if i%10 == 9 { // one commit for ten rows
				time.Sleep(time.Second)
			}
		}
		if n := j.unlabelled("bearing"); n != samples {
			t.Fatalf("%d samples are pending, want %d", n, samples)
		}
		r.published()
		return r, j, cfg, m
	}
	in("and answered once", t, func(t *testing.T) {
		r, j, _, _ := begin(t, 2*samples)
		before, _ := j.committed()
		r.send("edge/n1/bearing/label", label)
		time.Sleep(time.Minute)
		equal(t, "answer", r.answers(), []string{fmt.Sprint(samples, 0, 0)})
		if after, records := j.committed(); records != samples || after-before != 3 {
			t.Errorf("%d records in %d commits, want %d in 3", records, after-before, samples)
		}
		learnt := r.models["bearing"].learnt()
		if len(learnt) != samples || learnt[0] != "worn 0" || learnt[samples-1] != fmt.Sprintf("worn %d", samples-1) {
			t.Errorf("learnt %d, from %s to %s", len(learnt), learnt[0], learnt[len(learnt)-1])
		}
	})
	in("and by their own keys, also those that make room for the first part", t, func(t *testing.T) {
		r, j, _, _ := begin(t, samples+400)
		r.send("edge/n1/bearing/label", label)
		time.Sleep(time.Minute)
		equal(t, "answer", r.answers(), []string{fmt.Sprint(samples, 0, 0)})
		j.mu.Lock()
		defer j.mu.Unlock()
		if evicted := r.node.Stats().PendingEvicted; evicted == 0 || len(j.keys) != samples {
			t.Errorf("%d made room; %d keys, want %d", evicted, len(j.keys), samples)
		}
	})
	in("of which some are durable when the node ends", t, func(t *testing.T) {
		r, j, cfg, m := begin(t, 2*samples)
		block := make(chan struct{})
		r.models["bearing"].block = block // the second part waits for the first to be learnt
		acks := len(r.acks())
		r.send("edge/n1/bearing/label", label)
		time.Sleep(time.Minute)
		j.set(errDiskFull, nil)
		close(block)
		time.Sleep(time.Minute)
		r.stop()
		if _, records := j.committed(); records != maxGroupRecords || len(r.acks()) != acks {
			t.Fatalf("%d records, %d messages acknowledged", records, len(r.acks())-acks)
		}
		j.set(nil, nil)
		m.Model, m.Waiting = newFakeModel(2), j.waiting("bearing")
		again, _ := limitedRig(t, cfg, m, j)
		again.reconnect(brokerKeeps(0))
		again.sendMessage(&mqtt.Message{ID: r.sent, Dup: true, Topic: "edge/n1/bearing/label", Payload: []byte(label), QoS: 1})
		time.Sleep(time.Minute)
		seen := map[string]bool{}
		for _, l := range append(r.models["bearing"].learnt(), again.models["bearing"].learnt()...) {
			seen[l] = true
		}
		if _, records := j.committed(); records != samples || len(seen) != samples || j.unlabelled("bearing") != 0 {
			t.Errorf("%d records, %d samples learnt, %d wait; want %d, each once", records, len(seen), j.unlabelled("bearing"), samples)
		}
	})
}

// The parts of a label are smaller for samples of many features, so that they fit in a small
// store.
func TestLabelInSmallParts(t *testing.T) {
	in("of samples with many features", t, func(t *testing.T) {
		const samples, features = 100, 500
		cfg, m := testConfig()
		s := cfg.Streams["vibration"]
		s.Dimension, m.Model = features, newFakeModel(features)
		cfg.Streams["vibration"] = s
		r := newRig(t, newFakeJournal(), cfg, m)
		ids := []string{}
		for i := range samples {
			r.send(p7, fmt.Sprintf(`{"id":"s%d","features":[%d%s]}`, i, i, strings.Repeat(",1", features-1)))
			ids = append(ids, fmt.Sprintf(`"s%d"`, i))
			time.Sleep(time.Second)
		}
		r.send("edge/n1/bearing/label", `{"ids":[`+strings.Join(ids, ",")+`],"label":"worn"}`)
		time.Sleep(time.Minute)
		if n := len(r.models["bearing"].learnt()); n != samples {
			t.Errorf("%d samples are learnt, want %d", n, samples)
		}
		r.journal.mu.Lock()
		defer r.journal.mu.Unlock()
		for _, c := range r.journal.commits {
			size := 0
			for i := range c.Records {
				size += c.Records[i].Size()
			}
			if size > maxPart+10*features {
				t.Errorf("%d records of %d bytes in one commit", len(c.Records), size)
			}
		}
	})
}
