package daemon

import (
	"context"
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"edge/internal/process"
	"edge/stream/field"
)

// heapFraction is the fraction of a control group's memory for the heap; the rest
// is for the program's text and for the pages of the state file.
const heapFraction = 0.7

// The daemon's GOGC, by how many percent the heap may grow before it is collected again.
// Half of Go's default takes 2 to 3 MB less memory and 7 % more processor time. A large
// heap is mostly numbers, which the collector does not read: it may grow by gcRoom, but
// by gcLeast at least. Twice that room, and 25 %, took 1.4 % less processor time while a model
// (10, 100, 128) learns. The environment variable GOGC takes precedence.
const (
	gcPercent = 50
	gcLeast   = 15
	gcRoom    = 3 << 19 // bytes
)

// collected is an object that becomes unreachable at once: each collection calls its
// finalizer.
type collected struct{ percent int }

// paceCollector adapts GOGC to the heap after each collection, until the process ends.
func paceCollector() {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	var adapt func(*collected)
	adapt = func(c *collected) {
		metrics.Read(live)
		if percent := percentOf(live[0].Value.Uint64()); percent != c.percent {
			c.percent = percent
			debug.SetGCPercent(percent)
		}
		runtime.SetFinalizer(c, adapt)
	}
	runtime.SetFinalizer(&collected{gcPercent}, adapt)
}

// limitMemory sets the memory limit of the garbage collector: limit, or else
// GOMEMLIMIT, or else heapFraction of the control group's limit. It is a soft
// limit: the heap exceeds it rather than fail. It returns the limit in bytes and
// its source, "" without a limit.
func limitMemory(limit field.ByteSize, log *slog.Logger) (bytes int64, from string) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	switch {
	case limit > 0:
		bytes, from = int64(limit), "memory_limit"
	case os.Getenv("GOMEMLIMIT") != "":
		bytes, from = debug.SetMemoryLimit(-1), "GOMEMLIMIT" // the runtime has read it
	default:
		group, err := memlimit.FromCgroup()
		if err != nil || group == 0 || group > math.MaxInt64/2 {
			return 0, "" // without a control group, or without a limit of it
		}
		bytes, from = int64(heapFraction*float64(group)), "cgroup"
	}
	debug.SetMemoryLimit(bytes)
	log.Info("memory is limited", "bytes", bytes, "from", from)
	return bytes, from
}

// percentOf returns GOGC for a heap of which that many bytes are in use.
func percentOf(live uint64) int {
	return int(min(max(gcRoom*100/max(live, 1), gcLeast), gcPercent))
}

const (
	trimEvery = 10 * time.Second
	trimRest  = time.Minute // interval while nothing is learnt
	trimAbove = 1 << 18     // bytes allocated since the last time
)

// trimMemory returns memory that learning has freed to the system, and pages of
// the program, until ctx ends; release makes the models free the memory that only learning
// needs, and learnt has an element when something was learnt. By itself Go keeps the
// heap near its largest size: after a burst of labels that is twice the size of the
// model. The system keeps every page of the program that was used once, with its
// neighbours, until it needs memory.
func trimMemory(ctx context.Context, learnt <-chan struct{}, release func()) {
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	before := uint64(0)
	process.UnmapProgram() // most pages that the start has read are not needed again
	look := time.NewTimer(trimEvery)
	defer look.Stop()
	var sooner <-chan struct{} // nil while the next look is soon
	for {
		select {
		case <-look.C:
		case <-sooner:
			sooner = nil
			look.Reset(trimEvery)
			continue
		case <-ctx.Done():
			return
		}
		metrics.Read(allocated)
		if now := allocated[0].Value.Uint64(); now-before <= trimAbove {
			sooner = learnt
			look.Reset(trimRest)
			continue
		}
		release()
		debug.FreeOSMemory()
		process.UnmapProgram() // after the collection, which reads tables of the program
		metrics.Read(allocated)
		before = allocated[0].Value.Uint64()
		look.Reset(trimEvery)
	}
}
