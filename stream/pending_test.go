package stream

import (
	"fmt"
	"testing"
	"time"

	"edge/online"
)

func TestIdentity(t *testing.T) {
	keys := map[uint64]string{}
	add := func(key uint64, what string) {
		t.Helper()
		if other, ok := keys[key]; ok {
			t.Errorf("%s and %s have the same key %x", what, other, key)
		}
		keys[key] = what
	}
	add(sampleKey("s", nil, "a"), "sample s a")
	add(sampleKey("s", []string{"d"}, "a"), "sample s/d a")
	add(sampleKey("sd", nil, "a"), "sample sd a")
	add(sampleKey("s", []string{"d", "e"}, "a"), "sample s/d/e a")
	add(sampleKey("s", []string{"de"}, "a"), "sample s/de a")
	message := messageKey("s", []byte("a"))
	add(message, "message 0")
	add(entryKey(message, 1), "message 1")
	add(entryKey(message, 2), "message 2")
	if entryKey(message, 0) != message {
		t.Error("the first entry has another key than its message")
	}
	add(waitKey("s", nil, "a"), "wait s a")
	add(waitKey("s", []string{"d"}, "a"), "wait s/d a")
	if idPart(waitKey("s", nil, "a")) != idPart(waitKey("t", []string{"d"}, "a")) {
		t.Error("the id's part of a key depends on stream or device")
	}
	// Keys are in the journal: they may never change. Computed by this code when
	// it was first released.
	if got := fmt.Sprintf("%x %x %x", sampleKey("vibration", []string{"p7"}, "p7-000123"), messageKey("a/b", []byte("[1]")), waitKey("vibration", []string{"p7"}, "p7-000123")); got != goldenKeys {
		t.Errorf("keys = %s, want %s", got, goldenKeys)
	}
}

const goldenKeys = "acdc0a71b776f416 bf2e95bbb80d0656 d374aa6e68366e9a"

// Ids as senders make them, counted up, spread over all bits of the key.
func TestIdentitySpread(t *testing.T) {
	const n = 1 << 16
	parts, sums := map[uint64]bool{}, [64]int{}
	for i := range n {
		key := waitKey("s", []string{"d"}, fmt.Sprintf("p7-%06d", i))
		parts[idPart(key)] = true
		k := sampleKey("s", nil, fmt.Sprint(i))
		for b := range sums {
			sums[b] += int(k >> b & 1)
		}
	}
	if len(parts) != n {
		t.Errorf("%d ids have %d different parts of 40 bits", n, len(parts))
	}
	for b, sum := range sums { // 8 standard deviations
		if sum < n/2-8*128 || sum > n/2+8*128 {
			t.Errorf("bit %d is set in %d of %d keys", b, sum, n)
		}
	}
}

// pendingFor are limits of number and age.
func pendingFor(ttl time.Duration, n int) Pending {
	p := DefaultPending()
	p.TTL, p.Max, p.Corrections = ttl, n, 2
	return p
}

func TestPendingStore(t *testing.T) {
	now := time.Unix(1e9, 0)
	sample := func(device, id, label string) pendingSample {
		return pendingSample{sample: online.Pending{Model: "m", Key: waitKey("s", []string{device}, id), X: []float64{1}, Label: label}}
	}
	w, _ := newPendingStore(pendingFor(time.Minute, 3), nil, now)
	a, b, c, d := sample("p1", "1", ""), sample("p2", "1", ""), sample("p1", "2", ""), sample("p1", "3", "")
	w.add(a, now)
	w.add(b, now.Add(time.Second))
	w.add(c, now.Add(2*time.Second))
	if got := w.sameID(waitKey("", nil, "1")); len(got) != 2 {
		t.Errorf("%d samples share id 1, want 2", len(got))
	}
	if _, evicted := w.add(d, now.Add(3*time.Second)); len(evicted) != 1 || evicted[0].sample.Key != a.sample.Key {
		t.Errorf("evicted %v, want the oldest", evicted)
	}
	if got := w.sameID(waitKey("", nil, "1")); len(got) != 1 || got[0] != b.sample.Key {
		t.Errorf("under id 1: %v, want that of p2", got)
	}
	if w.removeKey(a.sample.Key) != nil {
		t.Error("took a sample that was evicted")
	}
	if p := w.removeKey(c.sample.Key); p == nil || p.sample.Key != c.sample.Key || w.get(c.sample.Key) != nil {
		t.Error("take")
	}
	if gone := w.expire(now.Add(time.Minute + time.Second)); len(gone) != 0 {
		t.Errorf("expired %v after exactly its time", gone)
	}
	if gone := w.expire(now.Add(time.Minute + 2*time.Second)); len(gone) != 1 || gone[0].sample.Key != b.sample.Key {
		t.Errorf("expired %v, want the one of p2", gone)
	}
	if w.len() != 1 || len(w.byKey) != 1 || len(w.byID) != 1 {
		t.Errorf("%d samples, %d keys, %d ids, want 1 of each", w.len(), len(w.byKey), len(w.byID))
	}
	// A labelled sample is not pending any more, and makes room first.
	w.add(sample("p1", "3", "ok"), now.Add(4*time.Second))
	if w.len() != 0 || w.get(d.sample.Key).sample.Label != "ok" || len(w.byID) != 1 {
		t.Errorf("%d wait, want none", w.len())
	}
	for i := range 3 {
		w.add(sample("p1", fmt.Sprint("labelled ", i), "ok"), now.Add(5*time.Second))
	}
	if w.get(d.sample.Key) != nil || w.labelled.Len() != 2 {
		t.Errorf("%d labelled samples are kept, want the 2 latest", w.labelled.Len())
	}
	wide := sample("p1", "wide", "")
	wide.sample.X = make([]float64, 1000)
	w.limits.MaxBytes = 10 << 10
	w.add(sample("p1", "thin", ""), now.Add(6*time.Second))
	if _, dropped := w.add(wide, now.Add(6*time.Second)); len(dropped) != 0 || w.bytes > 10<<10 {
		t.Errorf("dropped %d at %d bytes", len(dropped), w.bytes)
	}
	wide.sample.Key++
	if _, dropped := w.add(wide, now.Add(6*time.Second)); len(dropped) != 4 || dropped[0].sample.Label == "" || w.len() != 1 || w.get(wide.sample.Key) == nil {
		t.Errorf("dropped %d at %d bytes, %d wait: want the labelled ones first, then the oldest", len(dropped), w.bytes, w.len())
	}
	for _, e := range w.byKey {
		w.remove(e)
	}
	if w.bytes != 0 || len(w.byKey) != 0 || len(w.byID) != 0 {
		t.Errorf("%d bytes, %d keys, %d ids of nothing", w.bytes, len(w.byKey), len(w.byID))
	}
}

func TestPendingStoreRecovered(t *testing.T) {
	now := time.Unix(1e9, 0)
	var recovered []online.Pending
	for i := range 5 {
		recovered = append(recovered, online.Pending{Key: waitKey("s", nil, fmt.Sprint(i)), Clock: time.Duration(i) * time.Minute})
	}
	recovered = append(recovered, online.Pending{Key: 1, Label: "ok", Clock: 4 * time.Minute})
	w, dropped := newPendingStore(pendingFor(time.Hour, 3), recovered, now)
	if w.len() != 3 || len(dropped) != 2 || dropped[0].sample.Key != recovered[0].Key || !dropped[0].stored || w.get(1) == nil {
		t.Errorf("%d wait, %d dropped, want 3 and the 2 oldest", w.len(), len(dropped))
	}
	// Ages go on from the latest arrival: the sample of minute 2 is 2 minutes old.
	if gone := w.expire(now.Add(58 * time.Minute)); len(gone) != 0 {
		t.Errorf("%d expire too early", len(gone))
	}
	if gone := w.expire(now.Add(58*time.Minute + time.Second)); len(gone) != 1 || gone[0].sample.Key != recovered[2].Key {
		t.Errorf("%d expire, want that of minute 2", len(gone))
	}
	none := pendingFor(time.Hour, 0)
	none.Corrections = 0
	if w, dropped := newPendingStore(none, recovered, now); w.len() != 0 || len(dropped) != 6 {
		t.Errorf("with max 0: %d wait, %d dropped, want 0 and 6", w.len(), len(dropped))
	}
}

func TestMedian(t *testing.T) {
	var m median
	if m.value() != 0 {
		t.Error("the median of nothing should be 0")
	}
	for i := range 1000 {
		m.add(time.Duration(i))
		if i == 2 && m.value() != 1 {
			t.Errorf("median of 0, 1, 2: %d", m.value())
		}
	}
	if got := m.value(); got != 949 || len(m.latest) != medianOf {
		t.Errorf("median of the latest %d of 0 to 999: %d", medianOf, got)
	}
}
