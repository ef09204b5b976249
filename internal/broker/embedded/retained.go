package embedded

import (
	"slices"
	"sync"
	"sync/atomic"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// retained is a hook that lets mochi store a retained message or look for them, not
// both at once: mochi v2.7.9 writes the topic of a retained message while a
// subscription with a wildcard reads it. It is the last hook, so that a message that
// another hook refuses is not waited for.
type retained struct {
	mochi.HookBase
	mu     sync.RWMutex
	writer atomic.Pointer[mochi.Client] // holds mu, or nil
}

func (r *retained) ID() string { return "retained" }

func (r *retained) Provides(b byte) bool {
	return slices.Contains([]byte{mochi.OnPublish, mochi.OnWill, mochi.OnRetainMessage, mochi.OnPacketSent, mochi.OnPacketProcessed}, b)
}

func (r *retained) OnPublish(c *mochi.Client, p packets.Packet) (packets.Packet, error) {
	if p.FixedHeader.Retain {
		r.write(c)
	}
	return p, nil
}

func (r *retained) OnWill(c *mochi.Client, will mochi.Will) (mochi.Will, error) {
	if will.Retain && will.WillDelayInterval == 0 {
		r.write(c)
	}
	return will, nil
}

func (r *retained) write(c *mochi.Client) {
	r.mu.Lock()
	r.writer.Store(c)
}

func (r *retained) OnRetainMessage(c *mochi.Client, _ packets.Packet, _ int64) {
	if r.writer.CompareAndSwap(c, nil) {
		r.mu.Unlock()
	}
}

// OnPacketSent is called for the answer to a subscription before mochi looks for the
// retained messages.
func (r *retained) OnPacketSent(_ *mochi.Client, p packets.Packet, _ []byte) {
	if p.FixedHeader.Type == packets.Suback {
		r.mu.RLock()
	}
}

func (r *retained) OnPacketProcessed(_ *mochi.Client, p packets.Packet, err error) {
	if p.FixedHeader.Type == packets.Subscribe && err == nil {
		r.mu.RUnlock()
	}
}
