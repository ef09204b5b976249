package stream

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"edge/online"
	"edge/stream/mqtt"
)

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
		time.Sleep(45 * time.Millisecond)
		synctest.Wait()
		if n, records := r.journal.committed(); n != 1 || records != 5 {
			t.Errorf("%d commits of %d records after 70 ms, want 1 of 5", n, records)
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
	in("what waits for a slow disk shares a commit", t, func(t *testing.T) {
		r := one(t)
		r.journal.setSlow(time.Second)
		var sent []string
		for i := range 500 {
			sent = append(sent, labelled(i))
		}
		r.send(p7, sent...)
		time.Sleep(20 * time.Second)
		equal(t, "acknowledged", r.acks(), sent)
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
		for i := range maxGroupRecords + 1 {
			r.send(p7, labelled(i))
			synctest.Wait()
		}
		if n, records := r.journal.committed(); n != 1 || records != maxGroupRecords {
			t.Errorf("%d commits of %d records, want 1 of %d", n, records, maxGroupRecords)
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

// A disk that does not end a commit in time is reported like one that fails.
func TestSlowCommit(t *testing.T) {
	in("a failure until it ends", t, func(t *testing.T) {
		r := one(t)
		block := make(chan struct{})
		r.journal.set(nil, block)
		r.send(p7, labelled(1))
		time.Sleep(slowCommit)
		if r.node.Stats().Degraded {
			t.Error("degraded before the commit has taken long")
		}
		time.Sleep(time.Second)
		slow := "the disk is slow: a commit has not ended within 2s"
		if s := r.node.Stats(); !s.Degraded || s.CommitError != slow || s.CommitFailures != 0 {
			t.Errorf("degraded %v because of %q, %d failures, want %q", s.Degraded, s.CommitError, s.CommitFailures, slow)
		}
		close(block)
		synctest.Wait()
		equal(t, "acknowledged", r.acks(), []string{labelled(1)})
		if r.node.Stats().Degraded {
			t.Error("still degraded, although nothing waits for the disk")
		}
		equal(t, "events", r.events(), []string{"store_degraded: " + slow})
		time.Sleep(calmAfter + time.Second)
		equal(t, "events after a while", r.events(), []string{"store_recovered: "})
	})
	in("no failure once those that wait need no commit", t, func(t *testing.T) {
		r := one(t)
		r.journal.setSlow(3 * time.Second)
		r.send(p7, labelled(1))
		time.Sleep(time.Second)
		r.send(p7, "[1,2]", "[3,4]", "[5,6]")
		time.Sleep(10 * time.Second)
		if n, _ := r.journal.committed(); n != 1 || r.node.Stats().Degraded {
			t.Errorf("%d commits, degraded %v, want one, and not", n, r.node.Stats().Degraded)
		}
	})
	in("one failure while messages wait for the next commit", t, func(t *testing.T) {
		r := one(t)
		r.journal.setSlow(3 * time.Second)
		var sent []string
		for i := range 8 {
			sent = append(sent, labelled(i))
			r.send(p7, sent[i])
			time.Sleep(time.Second)
		}
		time.Sleep(20*time.Second + calmAfter)
		equal(t, "acknowledged", r.acks(), sent)
		if n, _ := r.journal.committed(); n < 3 {
			t.Errorf("%d commits, want 3 at least", n)
		}
		equal(t, "events", r.events(), []string{"store_degraded: the disk is slow: a commit has not ended within 2s", "store_recovered: "})
	})
	in("one failure over many labels, each of which is slow", t, func(t *testing.T) {
		r := one(t)
		r.journal.setSlow(3 * time.Second)
		for i := range 20 {
			r.send(p7, labelled(i))
			time.Sleep(time.Minute)
		}
		slow := "store_degraded: the disk is slow: a commit has not ended within 2s"
		equal(t, "events", r.events(), []string{slow})
		r.journal.set(errDiskFull, nil)
		r.send(p7, labelled(20))
		time.Sleep(time.Minute)
		r.journal.set(nil, nil)
		r.journal.setSlow(0)
		time.Sleep(time.Minute)
		equal(t, "events with a full disk", r.events(), []string{"store_degraded: " + errDiskFull.Error(), "store_recovered: "})
	})
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
	in("one at the start, for what an earlier run left, or else none", t, func(t *testing.T) {
		for _, left := range []int{0, 3} {
			cfg, m := testConfig()
			m.Batch.MaxWait, m.Model.(*fakeModel).open = time.Second, left
			r := newRig(t, newFakeJournal(), cfg, m)
			time.Sleep(time.Hour)
			if got := r.models["bearing"].learnt(); len(got) != min(left, 1) {
				t.Errorf("with %d samples left: %q", left, got)
			}
		}
	})
	in("max_wait after the first sample of a minibatch", t, func(t *testing.T) {
		r := batch(t, 16, time.Second)
		time.Sleep(time.Minute)
		r.send(p7, labelled(1))
		time.Sleep(700 * time.Millisecond)
		r.send(p7, labelled(2))
		time.Sleep(400 * time.Millisecond) // first commit at 50 ms
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1", "ok 2", "|"})
		time.Sleep(time.Hour)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1", "ok 2", "|"})
		r.send(p7, labelled(3))
		time.Sleep(time.Hour)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1", "ok 2", "|", "ok 3", "|"})
	})
	in("none while the model is behind", t, func(t *testing.T) {
		for _, wait := range []time.Duration{20 * time.Millisecond, time.Second} { // with the commit of the group, and later
			r := batch(t, 16, wait)
			time.Sleep(time.Minute)
			r.models["bearing"].setBehind(true)
			r.send(p7, labelled(1))
			time.Sleep(time.Minute)
			r.send(p7, labelled(2))
			time.Sleep(time.Minute)
			equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1", "ok 2"})
			r.models["bearing"].setBehind(false)
			time.Sleep(2 * wait)
			equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1", "ok 2", "|"})
		}
	})
	in("a full minibatch needs none, what follows it does", t, func(t *testing.T) {
		r := batch(t, 2, time.Second)
		time.Sleep(time.Minute)
		for i := range 9 { // 4 full ones, and one sample
			r.send(p7, labelled(i))
			time.Sleep(300 * time.Millisecond)
		}
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 0", "ok 1", "ok 2", "ok 3", "ok 4", "ok 5", "ok 6", "ok 7", "ok 8"})
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
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1", "|"})
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

// A group is committed at once when its messages take much memory, however late its commit is due.
func TestGroupTakesMemory(t *testing.T) {
	in("long messages within the time of a flush", t, func(t *testing.T) {
		cfg, m := testConfig()
		cfg.JournalFlush = 10 * time.Second
		r := newRig(t, newFakeJournal(), cfg, m)
		entries, size := make([]string, 100), 0
		for i := range 100 {
			for j := range entries {
				entries[j] = fmt.Sprintf(`{"id":"%d","features":[%d,0]}`, i*100+j, i*100+j)
			}
			r.sendMessage(&mqtt.Message{Topic: p7, Payload: []byte(`{"batch":[` + strings.Join(entries, ",") + `]}`), QoS: 0})
			time.Sleep(time.Millisecond)
		}
		r.journal.mu.Lock()
		for _, c := range r.journal.commits {
			size = max(size, len(c.Wait)*exampleSize)
		}
		r.journal.mu.Unlock()
		if size == 0 || size > maxGroupBytes+100*exampleSize {
			t.Errorf("%d bytes in a commit, want %d at most and some", size, maxGroupBytes)
		}
		time.Sleep(time.Minute)
	})
}
