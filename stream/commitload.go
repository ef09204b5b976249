package stream

import (
	"cmp"
	"math"
	"time"

	"edge/online"
)

// CommitLoad is an estimate of the commits that a node makes for one stream.
type CommitLoad struct {
	Group  int     // labelled messages that share a commit
	PerDay float64 // commits, with those that close a minibatch by time
}

// CommitLoad estimates the commits for a stream with rate labelled messages a
// second, whose models have these minibatches.
//
// The first label of a group waits for those that arrive within JournalFlush or,
// with relaxed durability, LossWindow. The close of a minibatch by time is a commit
// of its own, once for the models with the same MaxWait; it is none where a group
// waits as long.
func (c Config) CommitLoad(rate float64, batches []online.Batch) CommitLoad {
	const day = 86400.0
	wait, limit := cmp.Or(c.LossWindow, c.JournalFlush), c.MQTT.InflightWindow
	if c.LossWindow > 0 {
		limit = MaxGroup
	}
	load := CommitLoad{Group: int(min(math.Round(1+rate*wait.Seconds()), float64(limit)))}
	load.PerDay = day * rate / float64(load.Group)
	closed := map[time.Duration]bool{}
	for _, b := range batches {
		if b.MaxWait > wait && rate > 0 && rate*b.MaxWait.Seconds() < float64(b.MaxSize-1) && !closed[b.MaxWait] {
			closed[b.MaxWait] = true
			load.PerDay += day / (b.MaxWait.Seconds() + 1/rate)
		}
	}
	return load
}
