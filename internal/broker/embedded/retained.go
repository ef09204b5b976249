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

func (h *retained) ID() string { return "retained" }

func (h *retained) Provides(b byte) bool {
	return slices.Contains([]byte{mochi.OnPublish, mochi.OnWill, mochi.OnRetainMessage, mochi.OnPacketSent, mochi.OnPacketProcessed}, b)
}

func (h *retained) OnPublish(c *mochi.Client, p packets.Packet) (packets.Packet, error) {
	if p.FixedHeader.Retain {
		h.write(c)
	}
	return p, nil
}

func (h *retained) OnWill(c *mochi.Client, will mochi.Will) (mochi.Will, error) {
	if will.Retain && will.WillDelayInterval == 0 {
		h.write(c)
	}
	return will, nil
}

func (h *retained) write(c *mochi.Client) {
	h.mu.Lock()
	h.writer.Store(c)
}

func (h *retained) OnRetainMessage(c *mochi.Client, _ packets.Packet, _ int64) {
	if h.writer.CompareAndSwap(c, nil) {
		h.mu.Unlock()
	}
}

// OnPacketSent is called for the answer to a subscription before mochi looks for the
// retained messages.
func (h *retained) OnPacketSent(_ *mochi.Client, p packets.Packet, _ []byte) {
	if p.FixedHeader.Type == packets.Suback {
		h.mu.RLock()
	}
}

func (h *retained) OnPacketProcessed(_ *mochi.Client, p packets.Packet, err error) {
	if p.FixedHeader.Type == packets.Subscribe && err == nil {
		h.mu.RUnlock()
	}
}
