package stream

import (
	"cmp"
	"math"
)

// CommitLoad is an estimate of the commits that a node makes for one stream.
type CommitLoad struct {
	Group  int     // labelled messages that share a commit
	PerDay float64 // commits
}

// CommitLoad estimates the commits for a stream with rate labelled messages a second.
//
// The first label of a group waits for those that arrive within JournalFlush or,
// with relaxed durability, LossWindow. The close of a minibatch by time becomes durable
// with the next commit.
func (c Config) CommitLoad(rate float64) CommitLoad {
	const day = 86400.0
	wait, limit := cmp.Or(c.LossWindow, c.JournalFlush), c.MQTT.InflightWindow
	if c.LossWindow > 0 {
		limit = maxGroupRecords
	}
	group := int(min(math.Round(1+rate*wait.Seconds()), float64(limit)))
	return CommitLoad{Group: group, PerDay: day * rate / float64(group)}
}
