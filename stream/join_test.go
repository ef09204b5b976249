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
	add(messageKey("s", []byte("a"), 0), "message 0")
	add(messageKey("s", []byte("a"), 1), "message 1")
	add(waitKey("s", nil, "a"), "wait s a")
	add(waitKey("s", []string{"d"}, "a"), "wait s/d a")
	if idPart(waitKey("s", nil, "a")) != idPart(waitKey("t", []string{"d"}, "a")) {
		t.Error("the id's part of a key depends on stream or device")
	}
	// Keys are in the journal: they may never change. Computed by this code when
	// it was first released.
	if got := fmt.Sprintf("%x %x %x", sampleKey("vibration", []string{"p7"}, "p7-000123"), messageKey("a/b", []byte("[1]"), 0), waitKey("vibration", []string{"p7"}, "p7-000123")); got != goldenKeys {
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

func TestWaiting(t *testing.T) {
	now := time.Unix(1e9, 0)
	sample := func(device, id string) online.Pending {
		return online.Pending{Model: "m", Key: waitKey("s", []string{device}, id), X: []float64{1}}
	}
	w, _ := newWaiting(Pending{Max: 3, TTL: time.Minute}, nil, now)
	a, b, c, d := sample("p1", "1"), sample("p2", "1"), sample("p1", "2"), sample("p1", "3")
	w.add(a, now)
	w.add(b, now.Add(time.Second))
	w.add(c, now.Add(2*time.Second))
	if got := w.sharing(waitKey("", nil, "1")); len(got) != 2 {
		t.Errorf("%d samples share id 1, want 2", len(got))
	}
	if evicted := w.add(d, now.Add(3*time.Second)); len(evicted) != 1 || evicted[0].Key != a.Key {
		t.Errorf("evicted %v, want the oldest", evicted)
	}
	if got := w.sharing(waitKey("", nil, "1")); len(got) != 1 || got[0] != b.Key {
		t.Errorf("under id 1: %v, want that of p2", got)
	}
	if _, ok := w.take(a.Key); ok {
		t.Error("took a sample that was evicted")
	}
	if p, ok := w.take(c.Key); !ok || p.Key != c.Key || w.has(c.Key) {
		t.Error("take")
	}
	if gone := w.expire(now.Add(time.Minute + time.Second)); len(gone) != 0 {
		t.Errorf("expired %v after exactly its time", gone)
	}
	if gone := w.expire(now.Add(time.Minute + 2*time.Second)); len(gone) != 1 || gone[0].Key != b.Key {
		t.Errorf("expired %v, want the one of p2", gone)
	}
	if w.len() != 1 || len(w.byKey) != 1 || len(w.byID) != 1 {
		t.Errorf("%d samples, %d keys, %d ids, want 1 of each", w.len(), len(w.byKey), len(w.byID))
	}
}

func TestWaitingRecovered(t *testing.T) {
	now := time.Unix(1e9, 0)
	var recovered []online.Pending
	for i := range 5 {
		recovered = append(recovered, online.Pending{Key: waitKey("s", nil, fmt.Sprint(i))})
	}
	w, evicted := newWaiting(Pending{Max: 3, TTL: time.Hour}, recovered, now)
	if w.len() != 3 || len(evicted) != 2 || evicted[0].Key != recovered[0].Key {
		t.Errorf("%d wait, %d evicted, want 3 and the 2 oldest", w.len(), len(evicted))
	}
	if w, evicted := newWaiting(Pending{}, recovered, now); w.len() != 0 || len(evicted) != 5 {
		t.Errorf("with max 0: %d wait, %d evicted, want 0 and 5", w.len(), len(evicted))
	}
}
