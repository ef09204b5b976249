package daemon

import (
	"context"
	"log/slog"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"edge/stream/field"
)

// The configuration takes precedence over the environment, and that over the
// control group.
func TestLimitMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	percent := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetMemoryLimit(before); debug.SetGCPercent(percent) })
	log := slog.New(slog.DiscardHandler)

	if bytes, from := limitMemory(0, log); from != "" && from != "cgroup" || debug.SetMemoryLimit(-1) != bytes && from != "" {
		t.Errorf("without a setting: %d from %q, in effect %d", bytes, from, debug.SetMemoryLimit(-1))
	}
	debug.SetMemoryLimit(123 << 20) // as the runtime does at the start
	t.Setenv("GOMEMLIMIT", "123MiB")
	if bytes, from := limitMemory(0, log); bytes != 123<<20 || from != "GOMEMLIMIT" || debug.SetMemoryLimit(-1) != 123<<20 {
		t.Errorf("GOMEMLIMIT=123MiB: %d from %q", bytes, from)
	}
	if bytes, from := limitMemory(200*field.MiB, log); bytes != 200<<20 || from != "memory_limit" || debug.SetMemoryLimit(-1) != 200<<20 {
		t.Errorf("memory_limit 200MiB: %d from %q", bytes, from)
	}
	if got := debug.SetGCPercent(100); got != gcPercent {
		t.Errorf("the heap may grow by %d %%, want %d", got, gcPercent)
	}
	t.Setenv("GOGC", "100")
	if limitMemory(0, log); debug.SetGCPercent(100) != 100 {
		t.Error("GOGC is ignored")
	}
}

func TestPercentOf(t *testing.T) {
	for live, want := range map[uint64]int{0: 50, 1 << 20: 50, 3 << 20: 50, 5 << 20: 30, 10 << 20: 15, 1 << 30: 15} {
		if got := percentOf(live); got != want {
			t.Errorf("%d bytes: %d percent, want %d", live, got, want)
		}
	}
}

// Freed memory is returned to the system within seconds.
func TestTrimMemory(t *testing.T) {
	const left = 64 << 20
	released := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapReleased
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go trimMemory(ctx, nil, func() {})
		synctest.Wait()
		block := make([]byte, left)
		for i := range block {
			block[i] = 1
		}
		runtime.KeepAlive(block)
		before := released()
		time.Sleep(2 * trimEvery)
		synctest.Wait()
		if after := released(); after < before+left*3/4 {
			t.Errorf("%d MiB were released, then %d; %d MiB are not needed any more", before>>20, after>>20, left>>20)
		}
	})
}
