package stream

import (
	"slices"

	"edge/stream/mqtt"
)

// recentKeys is the number of messages whose repetition is recognised.
const recentKeys = 64

// recentMessages are the latest messages, whose values have neither times nor ids.
type recentMessages struct {
	keys [recentKeys]uint64
	at   int // of the oldest
}

// repeats reports whether the broker has sent a message again that is among the latest,
// and notes it. input is 0, or that of several with the same topics.
func (r *recentMessages) repeats(msg *mqtt.Message, input int) bool {
	key := keyOf(msg) + uint64(input)
	if msg.Dup && slices.Contains(r.keys[:], key) {
		return true
	}
	r.keys[r.at], r.at = key, (r.at+1)%recentKeys
	return false
}
