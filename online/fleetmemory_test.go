package online

import (
	"runtime"
	"slices"
	"testing"

	"edge/online/fleet"
	"edge/test/fleettest"
)

// inUse returns the bytes of the heap that are in use.
func inUse() int {
	runtime.GC()
	runtime.GC() // frees what pools and finalizers have kept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// The estimated memory of 16 members is not below the measured one, and not far above it, also
// where they answer for a class that the learner does not know.
func TestFleetMemory(t *testing.T) {
	l, set, next := fleetOf16(t, false)
	next()
	var sent [][]byte
	for _, c := range set.Members() {
		sent = append(sent, fleettest.Encode(t, c))
	}
	set, next = nil, nil
	before := inUse()
	kept := fleet.NewSet(0)
	for _, data := range sent {
		c, err := fleet.Decode(slices.Clone(data))
		if err != nil {
			t.Fatal(err)
		}
		kept.Put(c)
	}
	each := (inUse() - before) / len(sent)
	if n := len(merged(t, l, kept).Forests); n != fleet.MaxForests {
		t.Fatalf("%d forests", n)
	}
	l.bank.GiveBack()
	all := inUse() - before
	wantEach, want := l.cfg.FleetMemory(len(sent), 6)
	t.Logf("a contribution %d, sent %d, estimate %d; all %d, estimate %d", each, len(sent[0]), wantEach, all, want)
	if each < int(wantEach)/2 || each > int(wantEach)*11/10 {
		t.Errorf("a contribution takes %d bytes, and %d are estimated", each, wantEach)
	}
	if all < int(want)/3 || all > int(want) {
		t.Errorf("the members take %d bytes, and %d are estimated", all, want)
	}
	before = inUse()
	l.cfg.Fleet.Unseen, l.view.Counts[0] = MixUnseen, 0
	if merged(t, l, kept); l.fleet.unseen == nil {
		t.Fatal("nobody answers for a class that the learner does not know")
	}
	l.bank.GiveBack()
	more := inUse() - before
	_, mixed := l.cfg.FleetMemory(len(sent), 6)
	t.Logf("the answer for that class %d, estimate %d", more, mixed-want)
	if more < int(mixed-want)/3 || more > int(mixed-want) {
		t.Errorf("the answer for that class takes %d bytes, and %d are estimated", more, mixed-want)
	}
	runtime.KeepAlive(kept)
	runtime.KeepAlive(l)
}

// The estimate may be more than an int of 32-bit ARM holds.
func TestFleetMemoryOfLargeModels(t *testing.T) {
	cfg := testConfig(10, "a", "b")
	cfg.Inducing = 600
	each, all := cfg.FleetMemory(64, 32)
	if _, twice := cfg.FleetMemory(128, 32); all < 2<<30 || all > 8<<30 || twice-all != 64*each {
		t.Errorf("64 members take %d bytes, twice as many %d, and each of them %d", all, twice, each)
	}
}
