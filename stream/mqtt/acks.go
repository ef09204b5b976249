package mqtt

import (
	"sync"
	"sync/atomic"
)

// acks counts the acknowledgements that were written over one connection, and
// those of them that the broker has provably read: it reads in order, so that an
// answer to a packet proves all that was written before the packet.
type acks struct {
	confirmed atomic.Uint64 // of those that were written, the first ones

	mu        sync.Mutex
	written   uint64
	publishes map[uint16]uint64 // written, when a publication left; by its identifier
	pubrecs   map[uint16]uint64 // written, when a PUBREC packet had been; by its identifier
	pings     []uint64          // written, when each ping left that is not answered; oldest first
	read      chan struct{}     // closed once the broker has read the first awaited ones; nil: none are awaited
	awaited   uint64
}

// position returns how many were written.
func (a *acks) position() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.written
}

// wrote counts an acknowledgement. The calls of wrote, published and ping are in
// the order in which the packets are written.
func (a *acks) ackWritten() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.written++
}

// published notes a publication of QoS 1, which the broker answers.
func (a *acks) publishWritten(id uint16) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.publishes == nil {
		a.publishes = map[uint16]uint64{}
	}
	a.publishes[id] = a.written
}

// received notes a PUBREC packet, which the broker answers.
func (a *acks) pubrecWritten(id uint16) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pubrecs == nil {
		a.pubrecs = map[uint16]uint64{}
	}
	a.pubrecs[id] = a.written
}

// released notes the answer to a PUBREC packet.
func (a *acks) pubrelRead(id uint16) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n, ok := a.pubrecs[id]; ok {
		delete(a.pubrecs, id)
		a.confirm(n)
	}
}

// ping notes a ping, which the broker answers.
func (a *acks) pingWritten() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pings = append(a.pings, a.written)
}

// answered notes the answer to a publication.
func (a *acks) pubackRead(id uint16) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.confirm(a.publishes[id])
}

// pong notes the answer to a ping.
func (a *acks) pongRead() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.pings) > 0 { // answers come in the order of the pings
		n := a.pings[0]
		a.pings = a.pings[:copy(a.pings, a.pings[1:])]
		a.confirm(n)
	}
}

// confirm is called with mu held.
func (a *acks) confirm(n uint64) {
	if n > a.confirmed.Load() {
		a.confirmed.Store(n)
	}
	if a.read != nil && a.confirmed.Load() >= a.awaited {
		close(a.read)
		a.read = nil
	}
}

// all returns a channel that is closed once the broker has read all that were
// written so far. It is called once for each connection.
func (a *acks) allRead() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	read := make(chan struct{})
	a.read, a.awaited = read, a.written
	a.confirm(0)
	return read
}
