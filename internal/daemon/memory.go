package daemon

import (
	"context"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"edge/stream/codec"
)

// ofCgroup is the part of a control group's memory that the heap may take; the
// rest is for the program's text and for the pages of the state file.
const ofCgroup = 0.7

// collectAt is Go's GOGC for the daemon: how far, in percent, the heap may grow
// before it is collected again. Half of Go's own takes 2 to 3 MB less and 7 %
// more processor time. The environment variable GOGC comes first.
const collectAt = 50

// limitMemory tells the garbage collector what to stay within: limit, or else
// what GOMEMLIMIT says, or else the control group. It is a goal: the heap grows
// beyond it rather than fail. It returns the limit in bytes, and where it is
// from; "" if there is none.
func limitMemory(limit codec.ByteSize, log *slog.Logger) (bytes int64, from string) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	switch {
	case limit > 0:
		bytes, from = int64(limit), "memory_limit"
	case os.Getenv("GOMEMLIMIT") != "":
		bytes, from = debug.SetMemoryLimit(-1), "GOMEMLIMIT" // the runtime has read it
	default:
		group, err := memlimit.FromCgroup()
		if err != nil || group == 0 || group > math.MaxInt64/2 {
			return 0, "" // no group has a limit here
		}
		bytes, from = int64(ofCgroup*float64(group)), "cgroup"
	}
	debug.SetMemoryLimit(bytes)
	log.Info("memory is limited", "bytes", bytes, "from", from)
	return bytes, from
}

const (
	trimEvery = 10 * time.Second
	trimAbove = 1 << 18 // bytes allocated since the last time
)

// trimMemory gives back to the system what learning has left behind, until ctx
// ends; rest makes the models give up what only learning needs. Go by itself
// keeps what the heap was at its largest, as it may be needed again: after a
// burst of labels that is as much again as the model.
func trimMemory(ctx context.Context, rest func()) {
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	before := uint64(0)
	every(ctx, trimEvery, func() {
		metrics.Read(allocated)
		if now := allocated[0].Value.Uint64(); now-before > trimAbove {
			rest()
			debug.FreeOSMemory()
			metrics.Read(allocated)
			before = allocated[0].Value.Uint64()
		}
	})
}

// every calls f at once and then at intervals, until ctx ends.
func every(ctx context.Context, interval time.Duration, f func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		f()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
