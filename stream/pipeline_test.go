package stream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"edge/online"
	"edge/stream/codec"
	"edge/stream/mqtt"
)

const p7 = "factory/p7/vibration"

// in runs a test in a bubble, where time passes only when nothing else happens.
func in(name string, t *testing.T, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

func one(t *testing.T) *rig {
	cfg, m := testConfig()
	return newRig(t, newFakeJournal(), cfg, m)
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s = %q, want %q", what, got, want)
	}
}

func labelled(n int) string { return fmt.Sprintf(`{"features":[%d,0],"label":"ok"}`, n) }

func TestOrder(t *testing.T) {
	in("acknowledged and learnt as received", t, func(t *testing.T) {
		r := one(t)
		var sent, learnt []string
		for i := range 100 {
			switch i % 3 {
			case 0:
				sent, learnt = append(sent, labelled(i)), append(learnt, fmt.Sprintf("ok %d", i))
			case 1:
				sent = append(sent, fmt.Sprintf("[%d,0]", i))
			case 2:
				sent = append(sent, fmt.Sprintf("broken %d", i))
			}
		}
		r.send(p7, sent...)
		time.Sleep(time.Second)
		equal(t, "acknowledged", r.acks(), sent)
		equal(t, "learnt", r.models["bearing"].learnt(), learnt)
		seq := 0
		for _, m := range r.published() {
			if !strings.HasPrefix(m.Topic, "edge/n1/bearing/prediction") {
				continue
			}
			var p struct{ Seq int }
			if err := json.Unmarshal(m.Payload, &p); err != nil || p.Seq != seq+1 || m.Topic != "edge/n1/bearing/prediction/p7" {
				t.Fatalf("after seq %d: %s %s, %v", seq, m.Topic, m.Payload, err)
			}
			seq++
		}
		if seq != 67 {
			t.Errorf("%d predictions, want 67", seq)
		}
	})
}

func TestCommitBeforeAck(t *testing.T) {
	in("a labelled message is acknowledged after its commit", t, func(t *testing.T) {
		r := one(t)
		block := make(chan struct{})
		r.journal.set(nil, block)
		r.send(p7, "[0,0]", labelled(1), "[2,0]")
		time.Sleep(time.Hour)
		equal(t, "acknowledged before the commit", r.acks(), []string{"[0,0]"})
		if len(r.models["bearing"].learnt()) != 0 {
			t.Error("learnt before the commit")
		}
		if got := r.node.Stats().Predictions; got != 3 {
			t.Errorf("%d predictions while the journal is stuck, want 3", got)
		}
		close(block)
		synctest.Wait()
		equal(t, "acknowledged", r.acks(), []string{"[0,0]", labelled(1), "[2,0]"})
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1"})
	})
	in("a group waits no longer than journal_flush", t, func(t *testing.T) {
		r := one(t)
		for i := range 5 {
			r.send(p7, labelled(i))
			time.Sleep(5 * time.Millisecond)
		}
		synctest.Wait()
		if n, _ := r.journal.committed(); n != 0 {
			t.Fatalf("%d commits after 25 ms, want none", n)
		}
		time.Sleep(25 * time.Millisecond)
		synctest.Wait()
		if n, records := r.journal.committed(); n != 1 || records != 5 {
			t.Errorf("%d commits of %d records after 50 ms, want 1 of 5", n, records)
		}
	})
	in("a group that waits as long as a minibatch closes it in its own commit", t, func(t *testing.T) {
		for flush, want := range map[time.Duration]int{100 * time.Millisecond: 2, 250 * time.Millisecond: 1} {
			cfg, m := testConfig()
			cfg.JournalFlush, m.Batch.MaxWait = flush, 250*time.Millisecond
			r := newRig(t, newFakeJournal(), cfg, m)
			r.send(p7, labelled(1))
			time.Sleep(time.Second)
			equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1", "|"})
			if n, _ := r.journal.committed(); n != want {
				t.Errorf("%d commits with journal_flush %v, want %d", n, flush, want)
			}
		}
	})
	in("a full window waits for nothing", t, func(t *testing.T) {
		r := one(t)
		for i := range 32 {
			r.send(p7, labelled(i))
		}
		synctest.Wait() // no time passes
		if n, records := r.journal.committed(); n != 2 || records != 32 {
			t.Errorf("%d commits of %d records, want 2 of 32", n, records)
		}
	})
	in("without a label nothing waits", t, func(t *testing.T) {
		r := one(t)
		r.send(p7, "[1,2]", "broken", "[3,4]")
		synctest.Wait()
		equal(t, "acknowledged", r.acks(), []string{"[1,2]", "broken", "[3,4]"})
		if n, _ := r.journal.committed(); n != 0 {
			t.Errorf("%d commits, want none", n)
		}
	})
}

// Where durability is relaxed, acknowledgements do not wait for the disk, and
// the disk is asked once in a window.
func TestRelaxed(t *testing.T) {
	relaxed := func(t *testing.T) *rig {
		cfg, m := testConfig()
		cfg.LossWindow = 10 * time.Second
		return newRig(t, newFakeJournal(), cfg, m)
	}
	in("one commit in a window", t, func(t *testing.T) {
		r := relaxed(t)
		var sent []string
		for i := range 100 {
			sent = append(sent, labelled(i))
		}
		r.send(p7, sent...)
		time.Sleep(9 * time.Second)
		equal(t, "acknowledged", r.acks(), sent)
		if n, _ := r.journal.committed(); n != 0 || len(r.models["bearing"].learnt()) != 0 {
			t.Fatalf("%d commits within the window, want none", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n, records := r.journal.committed(); n != 1 || records != 100 || len(r.models["bearing"].learnt()) != 100 {
			t.Errorf("%d commits of %d records, want 1 of 100, learnt", n, records)
		}
	})
	in("what waits is bounded", t, func(t *testing.T) {
		r := relaxed(t)
		for i := range MaxGroup + 1 {
			r.send(p7, labelled(i))
			synctest.Wait()
		}
		if n, records := r.journal.committed(); n != 1 || records != MaxGroup {
			t.Errorf("%d commits of %d records, want 1 of %d", n, records, MaxGroup)
		}
	})
	in("a journal that fails holds the stream", t, func(t *testing.T) {
		r := relaxed(t)
		block := make(chan struct{})
		defer close(block)
		r.journal.set(nil, block)
		r.send(p7, labelled(0))
		time.Sleep(11 * time.Second)
		r.send(p7, labelled(1))
		time.Sleep(time.Minute)
		equal(t, "acknowledged", r.acks(), []string{labelled(0)})
	})
}

func TestRedelivery(t *testing.T) {
	const withID = `{"id":"a","features":[1,0],"label":"ok"}`
	in("an id is learnt once", t, func(t *testing.T) {
		r := one(t)
		r.send(p7, withID, withID) // in one group
		time.Sleep(time.Second)
		r.send(p7, withID) // after its commit
		r.send("factory/p8/vibration", withID)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1", "ok 1"})
		if s := r.node.Stats(); s.Predictions != 4 || s.Redelivered != 2 || s.Learned != 2 || len(r.acks()) != 4 {
			t.Errorf("predicted %d, redelivered %d, learnt %d, acknowledged %d, want 4, 2, 2, 4", s.Predictions, s.Redelivered, s.Learned, len(r.acks()))
		}
	})
	in("two entries of a batch with one id are one sample", t, func(t *testing.T) {
		r := one(t)
		r.send(p7, `{"batch":[`+withID+`,`+withID+`,{"id":"b","features":[2,0],"label":"ok"}]}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1", "ok 2"})
	})
	in("two equal readings are two samples, a repetition is none", t, func(t *testing.T) {
		r := one(t)
		send := func(id uint16, dup bool) {
			r.sendMessage(&mqtt.Message{ID: id, Topic: p7, Payload: []byte(`{"batch":[[0,0],{"features":[1,0],"label":"ok"},{"features":[1,0],"label":"ok"}]}`), QoS: 1, Dup: dup})
			time.Sleep(time.Second)
		}
		send(1, false)
		send(2, false)
		send(2, true)
		if got := len(r.models["bearing"].learnt()); got != 4 {
			t.Errorf("learnt %d, want 4", got)
		}
		if s := r.node.Stats(); s.Redelivered != 2 {
			t.Errorf("redelivered %d, want 2", s.Redelivered)
		}
	})
	in("DUP on what never came is learnt", t, func(t *testing.T) {
		r := one(t)
		r.sendMessage(&mqtt.Message{Topic: p7, Payload: []byte(labelled(1)), QoS: 1, Dup: true})
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1"})
		r.sendMessage(&mqtt.Message{Topic: p7, Payload: []byte(labelled(1)), QoS: 1, Dup: true}) // under the next identifier
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1", "ok 1"})
	})
}

func TestCommitFailure(t *testing.T) {
	in("predictions go on, acknowledgement waits, recovery is alone", t, func(t *testing.T) {
		r := one(t)
		r.journal.set(errDiskFull, nil)
		r.send(p7, labelled(1))
		time.Sleep(time.Minute)
		r.send(p7, labelled(2), "[3,0]")
		time.Sleep(time.Minute)
		s := r.node.Stats()
		if !s.Degraded || s.Predictions != 3 || s.Learned != 0 || len(r.acks()) != 0 || s.CommitFailures < 10 {
			t.Errorf("degraded %v, predicted %d, learnt %d, acknowledged %d, tries %d", s.Degraded, s.Predictions, s.Learned, len(r.acks()), s.CommitFailures)
		}
		r.journal.set(nil, nil)
		time.Sleep(longPause + time.Second)
		equal(t, "acknowledged", r.acks(), []string{labelled(1), labelled(2), "[3,0]"})
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1", "ok 2"})
		if s := r.node.Stats(); s.Degraded {
			t.Error("still degraded")
		}
		equal(t, "events", r.events(), []string{"store_degraded: no space left on device", "store_recovered: "})
	})
	in("a failure is reported before a label needs the journal", t, func(t *testing.T) {
		r := one(t)
		r.node.CheckJournal()
		time.Sleep(time.Minute)
		r.journal.set(errDiskFull, nil)
		for range 3 {
			r.node.CheckJournal()
		}
		time.Sleep(time.Minute)
		if s := r.node.Stats(); !s.Degraded || s.CommitError != errDiskFull.Error() {
			t.Errorf("degraded %v because of %q, want %q", s.Degraded, s.CommitError, errDiskFull)
		}
		r.send(p7, labelled(1))
		time.Sleep(time.Minute)
		if n := len(r.acks()); n > 0 {
			t.Errorf("%d are acknowledged", n)
		}
		r.journal.set(nil, nil)
		time.Sleep(longPause + time.Second)
		equal(t, "acknowledged", r.acks(), []string{labelled(1)})
		equal(t, "events", r.events(), []string{"store_degraded: no space left on device", "store_recovered: "})
	})
	in("a stop meanwhile acknowledges nothing", t, func(t *testing.T) {
		r := one(t)
		r.journal.set(errDiskFull, nil)
		r.send(p7, labelled(1))
		time.Sleep(time.Second)
		r.stop()
		if len(r.acks()) != 0 || len(r.models["bearing"].learnt()) != 0 {
			t.Errorf("acknowledged %q, learnt %q, want nothing", r.acks(), r.models["bearing"].learnt())
		}
	})
}

// events returns "kind: detail" of the events in the outbox, and empties it.
func (r *rig) events() (all []string) {
	for _, m := range r.published() {
		var e struct{ Event, Detail string }
		if m.Topic == "edge/n1/event" && json.Unmarshal(m.Payload, &e) == nil {
			all = append(all, e.Event+": "+e.Detail)
		}
	}
	return all
}

// rejects returns "reason" of the rejects in the outbox, and empties it.
func (r *rig) rejects() (all []string) {
	for _, m := range r.published() {
		var e struct{ Reason string }
		if m.Topic == "edge/n1/bearing/reject" && json.Unmarshal(m.Payload, &e) == nil {
			all = append(all, e.Reason)
		}
	}
	return all
}

func TestBoundary(t *testing.T) {
	batch := func(t *testing.T, size int, wait time.Duration) *rig {
		cfg, m := testConfig()
		m.Batch = online.Batch{MaxSize: size, MaxWait: wait}
		return newRig(t, newFakeJournal(), cfg, m)
	}
	in("none without max_wait", t, func(t *testing.T) {
		r := batch(t, 16, 0)
		r.send(p7, labelled(1))
		time.Sleep(time.Hour)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1"})
	})
	in("one at the start, for what an earlier run left", t, func(t *testing.T) {
		r := batch(t, 16, time.Second)
		time.Sleep(time.Hour)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"|"})
	})
	in("max_wait after the first sample of a minibatch", t, func(t *testing.T) {
		r := batch(t, 16, time.Second)
		time.Sleep(time.Minute)
		r.send(p7, labelled(1))
		time.Sleep(700 * time.Millisecond)
		r.send(p7, labelled(2))
		time.Sleep(400 * time.Millisecond) // first commit at 50 ms
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"|", "ok 1", "ok 2", "|"})
		time.Sleep(time.Hour)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"|", "ok 1", "ok 2", "|"})
		r.send(p7, labelled(3))
		time.Sleep(time.Hour)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"|", "ok 1", "ok 2", "|", "ok 3", "|"})
	})
	in("a full minibatch needs none, what follows it does", t, func(t *testing.T) {
		r := batch(t, 2, time.Second)
		time.Sleep(time.Minute)
		for i := range 9 { // 4 full ones, and one sample
			r.send(p7, labelled(i))
			time.Sleep(300 * time.Millisecond)
		}
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"|", "ok 0", "ok 1", "ok 2", "ok 3", "ok 4", "ok 5", "ok 6", "ok 7", "ok 8"})
		time.Sleep(time.Second)
		if got := r.models["bearing"].learnt(); got[len(got)-1] != "|" {
			t.Errorf("learnt %q, want a boundary at the end", got)
		}
	})
	in("no boundary while the journal fails, one after", t, func(t *testing.T) {
		r := batch(t, 16, time.Second)
		time.Sleep(time.Minute)
		r.journal.set(errDiskFull, nil)
		r.send(p7, labelled(1))
		time.Sleep(time.Minute)
		r.journal.set(nil, nil)
		time.Sleep(time.Minute)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"|", "ok 1", "|"})
	})
}

func TestLateLabels(t *testing.T) {
	sample := func(id string, x int) string { return fmt.Sprintf(`{"id":%q,"features":[%d,0]}`, id, x) }
	label := func(id, label string) string { return fmt.Sprintf(`{"id":%q,"label":%q}`, id, label) }
	const own = "edge/n1/bearing/label"

	for _, topic := range []string{own, own + "/p7", "factory/p7/label", p7} {
		in("by id on "+topic, t, func(t *testing.T) {
			r := one(t)
			r.send(p7, labelled(9)) // so that a class is known
			time.Sleep(time.Second)
			r.send(p7, sample("a", 1), sample("b", 2))
			time.Sleep(time.Second)
			if got := r.node.Stats().Models["bearing"].Pending; got != 2 {
				t.Errorf("%d wait, want 2", got)
			}
			r.send(topic, label("b", "worn"))
			time.Sleep(time.Second)
			equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 9", "worn 2"})
			ev := r.models["bearing"].record(1)
			if len(ev.Probs) != 1 || ev.Probs[0] != 1 {
				t.Errorf("judged by %v, want the prediction when the features arrived, [1]", ev.Probs)
			}
			if got := r.journal.unlabelled("bearing"); got != 1 {
				t.Errorf("%d wait in the journal, want 1", got)
			}
			if got := len(r.acks()); got != 4 {
				t.Errorf("acknowledged %d, want 4", got)
			}
		})
	}
	in("sample and label in one group", t, func(t *testing.T) {
		r := one(t)
		r.send(p7, sample("a", 1))
		r.send(own, label("a", "ok"))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1"})
		if n, _ := r.journal.committed(); n != 1 || r.journal.unlabelled("bearing") != 0 {
			t.Errorf("%d commits, %d wait, want 1 and none", n, r.journal.unlabelled("bearing"))
		}
	})
	in("a label is taught once", t, func(t *testing.T) {
		r := one(t)
		r.send(p7, sample("a", 1))
		r.send("factory/p7/label", label("a", "ok"), label("a", "ok"))
		time.Sleep(time.Second)
		r.send(p7, sample("a", 1)) // both are sent again after a crash
		r.send("factory/p7/label", label("a", "ok"))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1"})
		if s := r.node.Stats(); s.Redelivered != 3 || s.Models["bearing"].Pending != 0 || len(s.Rejected) != 0 {
			t.Errorf("redelivered %d, %d wait, rejected %v, want 3, 0, none", s.Redelivered, s.Models["bearing"].Pending, s.Rejected)
		}
	})
	in("unknown and ambiguous ids are refused", t, func(t *testing.T) {
		r := one(t)
		r.send(p7, sample("a", 1))
		r.send("factory/p8/vibration", sample("a", 2))
		r.send(own, label("z", "ok"), label("a", "ok"))
		r.send("factory/p9/label", label("a", "ok"))
		r.send(own+"/p8", label("a", "worn"))
		r.send(own, label("a", "ok"))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"worn 2", "ok 1"})
		equal(t, "rejects", r.rejects(), []string{"unknown_id", "ambiguous_id", "unknown_id"})
		if got := len(r.acks()); got != 7 {
			t.Errorf("acknowledged %d, want 7", got)
		}
	})
	in("the last sample", t, func(t *testing.T) {
		r := one(t)
		r.send(own, label("last", "ok"))
		r.send(p7, "[1,0]", sample("a", 2), "[3,0]")
		r.send(own, label("last", "ok"), label("last", "worn"))
		r.send(p7, sample("b", 4))
		r.send(own+"/p8", label("last", "ok"))
		r.send(own+"/p7", label("last", "worn"))
		time.Sleep(time.Second)
		r.send(own, label("b", "ok"))
		r.send(p7, "[6,0]", labelled(5)) // the last has its label
		r.send(own, label("last", "worn"))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 3", "worn, not ok 3", "worn 4", "ok, not worn 4", "ok 5", "worn, not ok 5"})
		equal(t, "rejects", r.rejects(), []string{"unknown_id", "unknown_id"})
		if s := r.node.Stats(); s.Models["bearing"].Pending != 1 {
			t.Errorf("%d wait, want 1", s.Models["bearing"].Pending)
		}
	})
	in("a sample waits for its time", t, func(t *testing.T) {
		cfg, m := testConfig()
		m.Pending = pendingFor(time.Hour, 2)
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(p7, sample("a", 1), sample("b", 2), sample("c", 3))
		time.Sleep(time.Hour - time.Second)
		r.send(own, label("a", "ok"), label("b", "ok"))
		time.Sleep(time.Minute)
		r.send(own, label("c", "ok"))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 2"})
		if s := r.node.Stats(); s.PendingEvicted != 1 || s.PendingExpired != 1 || s.Rejected[codec.UnknownID] != 2 || r.journal.unlabelled("bearing") != 0 {
			t.Errorf("evicted %d, expired %d, refused %d, %d in the journal", s.PendingEvicted, s.PendingExpired, s.Rejected[codec.UnknownID], len(r.journal.waiting("bearing")))
		}
	})
	in("off", t, func(t *testing.T) {
		cfg, m := testConfig()
		m.Pending.Max = 0
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(p7, sample("a", 1), sample("b", 2))
		r.send(own, label("a", "ok"), label("last", "ok"))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 2"})
	})
	in("after a restart", t, func(t *testing.T) {
		cfg, m := testConfig()
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(p7, sample("a", 1), sample("b", 2), sample("c", 3))
		r.send("factory/p8/vibration", sample("c", 4))
		time.Sleep(time.Second)
		r.stop()
		m.Waiting = r.journal.waiting("bearing")
		again := newRig(t, r.journal, cfg, m)
		again.send(own, label("a", "ok"), label("c", "ok")) // by id alone
		again.send("factory/p7/label", label("b", "worn"), label("c", "worn"))
		time.Sleep(time.Second)
		equal(t, "learnt", again.models["bearing"].learnt(), []string{"ok 1", "worn 2", "worn 3"})
		equal(t, "rejects", again.rejects(), []string{"ambiguous_id"})
	})
	in("a sample that is labelled after all no longer waits", t, func(t *testing.T) {
		r := one(t)
		r.send(p7, sample("a", 1), `{"id":"a","features":[1,0],"label":"ok"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1"})
		if got := r.journal.unlabelled("bearing"); got != 0 {
			t.Errorf("%d wait, want none", got)
		}
	})
	in("a second label corrects the first", t, func(t *testing.T) {
		journal := newFakeJournal()
		cfg, m := testConfig()
		r := newRig(t, journal, cfg, m)
		r.send(p7, labelled(9))
		time.Sleep(time.Second)
		r.send(p7, sample("a", 1), `{"id":"b","features":[2,0],"label":"ok"}`)
		time.Sleep(time.Minute)
		r.send(own, label("a", "ok"))
		time.Sleep(time.Second)
		r.send(own, label("a", "worn"))                        // by the id alone
		r.send("factory/p7/label", label("b", "worn"))         // of a sample that brought its label
		r.send(p7, `{"id":"b","features":[2,0],"label":"ok"}`) // which says again what was wrong
		time.Sleep(time.Second)
		want := []string{"ok 9", "ok 2", "ok 1", "worn, not ok 1", "worn, not ok 2", "ok, not worn 2"}
		equal(t, "learnt", r.models["bearing"].learnt(), want)
		if ev := r.models["bearing"].record(3); len(ev.Probs) == 0 || ev.Name != "ok" {
			t.Errorf("the correction %+v lacks the prediction that was judged", ev)
		}
		// Both labels are delivered again, because their acknowledgements were lost.
		for i, p := range []string{label("a", "ok"), label("a", "worn")} {
			r.sendMessage(&mqtt.Message{ID: uint16(4 + i), Topic: own, Payload: []byte(p), QoS: 1, Dup: true})
		}
		time.Sleep(time.Second)
		s := r.node.Stats()
		if got := r.models["bearing"].learnt(); len(got) != len(want) || s.Models["bearing"].Corrected != 3 {
			t.Errorf("%d corrections, learnt %q", s.Models["bearing"].Corrected, got)
		}
		if d := s.Models["bearing"].LabelDelay; d < time.Minute || d > time.Minute+time.Second {
			t.Errorf("the label was %v late, want a minute", d)
		}
		// What waits for a correction survives a restart, if its label came late.
		r.stop()
		m.Waiting = journal.waiting("bearing")
		again := newRig(t, journal, cfg, m)
		again.send(own, label("a", "broken"), label("b", "broken"))
		time.Sleep(time.Second)
		equal(t, "learnt after a restart", again.models["bearing"].learnt()[len(want):], []string{"broken, not worn 1"})
		equal(t, "rejects", again.rejects(), []string{"unknown_id"})
	})
	in("a second label that comes too late is refused", t, func(t *testing.T) {
		cfg, m := testConfig()
		m.Pending.Corrections = 1
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(p7, sample("a", 1), sample("b", 2))
		r.send("factory/p7/label", label("a", "ok"), label("b", "ok"), label("a", "worn"), label("b", "worn"))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1", "ok 2", "worn, not ok 2"})
		equal(t, "rejects", r.rejects(), []string{"too_late"})
	})
	in("late labels say how far ahead the next one is", t, func(t *testing.T) {
		r := one(t)
		for i := range 6 {
			r.send(p7, sample(fmt.Sprint(i), i))
		}
		time.Sleep(time.Second)
		for i := range 3 {
			r.send("factory/p7/label", label(fmt.Sprint(i), "ok"))
		}
		time.Sleep(time.Second)
		r.send(p7, sample("next", 7))
		time.Sleep(time.Second)
		r.send("factory/p7/label", label("next", "ok"))
		time.Sleep(time.Second)
		if ev := r.models["bearing"].record(3); ev.Ahead != 3 {
			t.Errorf("%+v: want it 3 labels ahead, as the last one was", ev)
		}
	})
}

func TestClasses(t *testing.T) {
	in("closed", t, func(t *testing.T) {
		cfg, m := testConfig()
		m.Classes = online.Classes{Names: []string{"ok", "worn"}, Max: 64}
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(p7, `{"features":[1,0],"label":"wron"}`, `{"features":[2,0],"label":"worn"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"worn 2"})
		if s := r.node.Stats(); s.Rejected[codec.UnknownClass] != 1 || s.Predictions != 2 || len(r.acks()) != 2 {
			t.Errorf("refused %v, predicted %d, acknowledged %d", s.Rejected, s.Predictions, len(r.acks()))
		}
		learned := []bool{}
		for _, m := range r.published() {
			var p struct{ Learned *bool }
			if json.Unmarshal(m.Payload, &p) == nil && p.Learned != nil {
				learned = append(learned, *p.Learned)
			}
		}
		if !slices.Equal(learned, []bool{false, true}) {
			t.Errorf("learned = %v, want false, true", learned)
		}
	})
	in("no more than max, in one group too", t, func(t *testing.T) {
		cfg, m := testConfig()
		m.Classes.Max = 3
		r := newRig(t, newFakeJournal(), cfg, m)
		for i := range 5 {
			r.send(p7, fmt.Sprintf(`{"features":[%d,0],"label":"c%d"}`, i, i))
		}
		r.send(p7, `{"features":[9,0],"label":"c1"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"c0 0", "c1 1", "c2 2", "c1 9"})
		if got := r.node.Stats().Rejected[codec.TooManyClasses]; got != 2 {
			t.Errorf("refused %d, want 2", got)
		}
	})
	in("a label of the node's own is refused, the sample answered", t, func(t *testing.T) {
		r := one(t)
		r.send(p7, `{"features":[1,0],"label":"ok","source":"n1"}`)
		time.Sleep(time.Second)
		if s := r.node.Stats(); s.Rejected[codec.BadLabel] != 1 || s.Predictions != 1 || s.Learned != 0 {
			t.Errorf("refused %v, predicted %d, learnt %d", s.Rejected, s.Predictions, s.Learned)
		}
	})
}

// A message over which the program panics is refused: it would come again after
// every restart.
func TestPanicOverAMessage(t *testing.T) {
	const words = "an error of the program"
	hearing := func(d *Deps) {
		d.OnPrediction = func(p *Prediction) {
			if p.ID == "poison" {
				panic(words)
			}
		}
	}
	committing := func(d *Deps) {
		calls := 0
		d.Journal = askedJournal{d.Journal, func() {
			if calls++; calls == 2 {
				panic(words)
			}
		}}
	}
	in("when it is answered: is counted, acknowledged and does not stop the stream", t, func(t *testing.T) { panicOverAMessage(t, words, hearing) })
	in("when it is committed: the same", t, func(t *testing.T) { panicOverAMessage(t, words, committing) })
}

// askedJournal calls asked before it says what it has seen.
type askedJournal struct {
	Journal
	asked func()
}

func (j askedJournal) Seen(model string, key uint64) bool {
	j.asked()
	return j.Journal.Seen(model, key)
}

// panicOverAMessage sends three messages, over the second of which poison panics.
func panicOverAMessage(t *testing.T, words string, poison func(*Deps)) {
	cfg, m := testConfig()
	var log bytes.Buffer
	r := &rig{t: t, journal: newFakeJournal(), models: map[string]*fakeModel{m.Name: m.Model.(*fakeModel)}}
	deps := Deps{Models: []ModelConfig{m}, Journal: r.journal, Log: slog.New(slog.NewTextHandler(&log, nil))}
	poison(&deps)
	r.node = newTestNode(t, cfg, deps)
	r.start()
	r.send(p7, `{"id":"a","features":[1,2],"label":"ok"}`, `{"id":"poison","features":[1,2],"label":"ok"}`, `{"id":"b","features":[3,4],"label":"ok"}`)
	time.Sleep(time.Second)
	r.stop()
	if s := r.node.Stats(); s.Rejected[codec.Fault] != 1 || s.Predictions != 3 || len(r.acks()) != 3 {
		t.Errorf("refused %v, %d predictions, acknowledged %q", s.Rejected, s.Predictions, r.acks())
	}
	equal(t, "learnt", r.models[m.Name].learnt(), []string{"ok 1", "ok 3"})
	if !strings.Contains(log.String(), words) || !strings.Contains(log.String(), "stack=") {
		t.Errorf("the log does not tell where:\n%s", &log)
	}
}

func TestPoison(t *testing.T) {
	in("is acknowledged, counted, sampled and does not stop the stream", t, func(t *testing.T) {
		cfg, m := testConfig()
		cfg.MQTT.Ring.MaxBytes = 32 << 20 // holds the largest of them
		r := newRig(t, newFakeJournal(), cfg, m)
		want := map[codec.Reason]uint64{}
		var sent []string
		for _, c := range []struct {
			payload string
			reason  codec.Reason
		}{
			{"", codec.Empty}, {"{", codec.Malformed}, {"[1]", codec.WrongDimension}, {"[1,NaN]", codec.NotANumber}, {"[1,1e999]", codec.NotANumber}, {`{"f0":1}`, codec.MissingFeature},
			{`{"f0":1,"f1":2,"f2":3}`, codec.UnknownFeature}, {`{"f0":1,"f0":1,"f1":2}`, codec.Repeated}, {`{"features":[1,2],"label":3.5}`, codec.BadLabel},
			{`{"features":[1,2],"label":{}}`, codec.BadLabel}, {`{"features":[1,2],"id":[]}`, codec.BadID}, {strings.Repeat(" ", 10<<20), codec.TooLarge},
			{`{"id":"z","label":"ok"}`, codec.UnknownID},
		} {
			r.send(p7, c.payload)
			want[c.reason]++
			sent = append(sent, c.payload)
			r.send(p7, "[1,2]")
			sent = append(sent, "[1,2]")
		}
		r.send("elsewhere", "[1,2]")
		want[codec.Unrouted]++
		r.sendMessage(&mqtt.Message{Topic: p7, Payload: []byte("[1,2]"), QoS: 1, Retained: true})
		want[codec.Retained]++
		sent = append(sent, "[1,2]", "[1,2]")
		time.Sleep(time.Second)
		s := r.node.Stats()
		for _, reason := range codec.Reasons() {
			if s.Rejected[reason] != want[reason] {
				t.Errorf("%s: %d, want %d", reason, s.Rejected[reason], want[reason])
			}
		}
		if s.Predictions != 13 {
			t.Errorf("%d predictions, want 13", s.Predictions)
		}
		equal(t, "acknowledged", r.acks(), sent)
		if got := r.rejects(); len(got) != 14 || s.RejectsDropped != 0 {
			t.Errorf("%d rejects published and %d dropped, want every one of a kind: %v", len(got), s.RejectsDropped, got)
		}
		for range rejectBurst + 3 {
			r.send(p7, "x")
		}
		time.Sleep(time.Second)
		if got, dropped := len(r.rejects()), r.node.Stats().RejectsDropped; got < rejectBurst-1 || got > rejectBurst+1 || uint64(got)+dropped != rejectBurst+3 {
			t.Errorf("of %d of a kind %d published, %d dropped", rejectBurst+3, got, dropped)
		}
		time.Sleep(10 * time.Second)
		r.send(p7, "x")
		time.Sleep(time.Second)
		equal(t, "rejects after a while", r.rejects(), []string{"malformed"})
	})
}

func TestQoS0(t *testing.T) {
	in("is answered while the journal is stuck, and its lessons are counted as lost", t, func(t *testing.T) {
		r := one(t)
		block := make(chan struct{})
		r.journal.set(nil, block)
		const n = 1000
		for i := range n {
			r.sendMessage(&mqtt.Message{Topic: p7, Payload: []byte(labelled(i)), QoS: 0})
			if i%100 == 0 {
				time.Sleep(time.Second)
			}
		}
		time.Sleep(time.Minute)
		if got := r.node.Stats().Predictions; got != n {
			t.Errorf("%d predictions, want %d", got, n)
		}
		close(block)
		time.Sleep(time.Minute)
		s := r.node.Stats()
		if s.Learned+s.ExamplesDropped != n || s.ExamplesDropped == 0 || s.Learned < commitQueue {
			t.Errorf("learnt %d, dropped %d, want both and together %d", s.Learned, s.ExamplesDropped, n)
		}
	})
}

func TestBackPressure(t *testing.T) {
	in("when the learner is behind, so is acknowledgement", t, func(t *testing.T) {
		r := one(t)
		block := make(chan struct{})
		r.models["bearing"].block = block
		for i := range 500 {
			r.send(p7, labelled(i))
		}
		time.Sleep(time.Minute)
		if got := len(r.acks()); got != mqtt.DefaultConfig().InflightWindow {
			t.Errorf("acknowledged %d, want the first group", got)
		}
		if got := r.node.Stats().Predictions; got < 2*uint64(mqtt.DefaultConfig().InflightWindow) {
			t.Errorf("%d predictions: they wait for the learner", got)
		}
		close(block)
		time.Sleep(time.Minute)
		if got := len(r.models["bearing"].learnt()); got != 500 || len(r.acks()) != 500 {
			t.Errorf("learnt %d, acknowledged %d, want 500", got, len(r.acks()))
		}
	})
}

func TestSeveralModelsAndStreams(t *testing.T) {
	in("each message reaches each model once, and is acknowledged once", t, func(t *testing.T) {
		cfg, bearing := testConfig()
		all := codec.DefaultStream()
		all.Topics, all.Features = []string{"factory/#"}, []string{"f1", "f0", "f2"}
		all.Fields = map[string]string{"f0": "f0"}
		cfg.Streams["all"] = all
		other := bearing
		other.Name, other.Model, other.Streams, other.Features = "other", newFakeModel(1), []string{"all"}, []string{"f1"}
		both := bearing
		both.Name, both.Model, both.Streams, both.Features = "both", newFakeModel(2), []string{"all", "vibration"}, []string{"f1", "f0"}
		r := newRig(t, newFakeJournal(), cfg, bearing, other, both)
		r.send(p7, `{"f0":1,"f1":2,"f2":3,"label":"ok"}`, `{"f0":4,"f1":5,"label":"ok"}`)
		time.Sleep(time.Second)
		equal(t, "bearing", r.models["bearing"].learnt(), []string{"ok 4"}) // f2 is unknown to vibration
		equal(t, "other", r.models["other"].learnt(), []string{"ok 2"})     // f2 is missing for all
		equal(t, "both", r.models["both"].learnt(), []string{"ok 2", "ok 5"})
		if got := len(r.acks()); got != 2 {
			t.Errorf("acknowledged %d, want 2", got)
		}
		if got := r.node.client.Filters; !slices.Contains(got, "factory/#") || slices.Contains(got, "factory/+/vibration") {
			t.Errorf("subscribes to %q, want factory/# alone for both streams", got)
		}
	})
	in("a label reaches the model that has its sample", t, func(t *testing.T) {
		cfg, bearing := testConfig()
		cfg.Labels[0].Model = ""
		second := codec.DefaultStream()
		second.Topics, second.Dimension = []string{"second"}, 2
		cfg.Streams["second"] = second
		other := bearing
		other.Name, other.Model, other.Streams = "other", newFakeModel(2), []string{"second"}
		r := newRig(t, newFakeJournal(), cfg, bearing, other)
		r.send("second", `{"id":"a","features":[1,2]}`)
		r.send("factory/p7/label", `{"id":"a","label":"ok"}`)
		time.Sleep(time.Second)
		equal(t, "other", r.models["other"].learnt(), []string{"ok 1"})
		if got := r.node.Stats().Rejected; len(got) != 0 {
			t.Errorf("refused %v, want nothing", got)
		}
	})
}

func TestRetainedAllowed(t *testing.T) {
	in("is taught once however often the broker sends it", t, func(t *testing.T) {
		cfg, m := testConfig()
		s := cfg.Streams["vibration"]
		s.AllowRetained = true
		cfg.Streams["vibration"] = s
		r := newRig(t, newFakeJournal(), cfg, m)
		for range 3 {
			r.sendMessage(&mqtt.Message{Topic: p7, Payload: []byte(labelled(1)), QoS: 1, Retained: true})
			time.Sleep(time.Second)
		}
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1"})
	})
}

func TestNewNodeRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(*Config, *ModelConfig)
		want   string
	}{
		{func(c *Config, m *ModelConfig) { m.Name = "state" }, `models.state: want names`},
		{func(c *Config, m *ModelConfig) { m.Streams = nil }, "models.bearing.streams []"},
		{func(c *Config, m *ModelConfig) { m.Streams = []string{"x"} }, `there is no stream "x"; there are vibration`},
		{func(c *Config, m *ModelConfig) { m.Features = []string{"f0", "f9"} }, `stream vibration has no feature "f9"`},
		{func(c *Config, m *ModelConfig) { m.Model = newFakeModel(7) }, "2 names, but the model has 7 features"},
		{func(c *Config, m *ModelConfig) { c.Labels[0].Model = "x" }, "labels[0].model x: there is no such model"},
		{func(c *Config, m *ModelConfig) { m.Pending.TTL = 0 }, "models.bearing.pending.ttl 0s"},
		{func(c *Config, m *ModelConfig) { c.MQTT.QoS = 3 }, "mqtt.qos 3"},
		{topics("#"), "would receive the node's own output edge/n1/bearing/prediction"},
		{topics("edge/+/+/prediction/+"), "own output edge/n1/bearing/prediction"},
		{topics("$share/g/edge/n1/+"), "own output edge/n1/state"},
	} {
		cfg, m := testConfig()
		c.change(&cfg, &m)
		_, err := NewNode(cfg, Deps{Models: []ModelConfig{m}, Journal: newFakeJournal()})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	if _, err := NewNode(DefaultConfig(), Deps{Journal: newFakeJournal()}); err == nil {
		t.Error("a node without models")
	}
}

func topics(filter string) func(*Config, *ModelConfig) {
	return func(c *Config, _ *ModelConfig) {
		s := c.Streams["vibration"]
		s.Topics, s.TopicTemplate = []string{filter}, ""
		c.Streams["vibration"] = s
	}
}

// Two streams that read the features of the same message in another order do not
// share the memory of what they read.
func TestTwoStreamsOfOneTopic(t *testing.T) {
	cfg, m := testConfig()
	s := cfg.Streams["vibration"]
	s.Dimension, s.Features = 0, []string{"x0", "x1"}
	cfg.Streams["vibration"] = s
	s.Features = []string{"x1", "x0"}
	cfg.Streams["other"] = s
	other := m
	other.Name, other.Model, other.Streams = "motor", newFakeModel(2), []string{"other"}
	r := newRig(t, newFakeJournal(), cfg, m, other)
	r.send(p7, `{"label":"ok","features":{"x0":1,"x1":2}}`)
	r.stop()
	for name, want := range map[string][]float64{"bearing": {1, 2}, "motor": {2, 1}} {
		if got := r.models[name].record(0).X; !slices.Equal(got, want) {
			t.Errorf("%s learns %v, want %v", name, got, want)
		}
	}
}

// A topic that MQTT forbids, which some brokers let pass, is refused and
// acknowledged: not acknowledged, it would come again on every connection.
func TestForbiddenTopics(t *testing.T) {
	cfg, m := testConfig()
	r := newRig(t, newFakeJournal(), cfg, m)
	topics := []string{"", "factory/+/vibration", "factory/#/vibration", "factory/\xff/vibration", "factory/\x00/vibration"}
	for i, topic := range topics {
		r.sendMessage(&mqtt.Message{Topic: topic, Payload: fmt.Appendf(nil, `{"id":"%d","features":[1,2],"label":"ok"}`, i), QoS: 1})
	}
	r.send("factory/p7/vibration", `{"id":"last","features":[1,2],"label":"ok"}`)
	eventually(t, "all to be acknowledged", func() bool { return len(r.acks()) == len(topics)+1 })
	if s := r.node.Stats(); s.Rejected[codec.BadTopic] != uint64(len(topics)) || s.Learned != 1 {
		t.Errorf("%d refused, %d learnt, want %d and 1", s.Rejected[codec.BadTopic], s.Learned, len(topics))
	}
}

// Names that are longer than those of any device take no memory for long.
func TestLongNamesAreNotRemembered(t *testing.T) {
	var in map[string]int
	long := strings.Repeat("x", maxCachedName)
	putBounded(&in, long, 1)
	putBounded(&in, long+"x", 2)
	if len(in) != 1 || in[long] != 1 {
		t.Errorf("%d are remembered, want the first", len(in))
	}
}
