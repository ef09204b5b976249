package mqtt

import (
	"sync"
	"sync/atomic"
)

// acks counts the acknowledgements that were written over one connection, and the
// number of them that the broker has provably read. A broker reads in order, so an
// answer to a packet proves that it has read all earlier packets.
type acks struct {
	confirmed atomic.Uint64 // number of acknowledgements that the broker has read

	mu        sync.Mutex
	written   uint64
	publishes map[uint16]uint64 // value of written when each PUBLISH left, by packet identifier
	pubrecs   map[uint16]uint64 // value of written after each PUBREC, by packet identifier
	pings     []uint64          // value of written when each unanswered ping left, oldest first
	proofs    []uint16          // receipt that each unanswered ping proves, see prove, oldest first, without those given up; 0: none
	proven    uint16            // receipt that the next ping proves; 0: none
	uploads   uint64            // large publications that were written
	uploaded  uint64            // those that the broker has read
	newest    uint16            // packet identifier of the latest of them
	behind    []uint64          // value of uploads when each unanswered ping left, oldest first
	read      chan struct{}     // closed once the broker has read awaited acknowledgements; nil: no wait
	awaited   uint64
	pong      chan struct{} // closed at the next answer to a ping; nil: no call waits
}

// position returns the number of written acknowledgements.
func (a *acks) position() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.written
}

// ackWritten counts an acknowledgement. The calls of ackWritten, publishWritten and
// pingWritten are in the order in which the packets are written.
func (a *acks) ackWritten() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.written++
}

// publishWritten records a PUBLISH packet of QoS 1, which may be a large one.
func (a *acks) publishWritten(id uint16, large bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.publishes[id] = a.written; large {
		a.uploads, a.newest = a.uploads+1, id
	}
}

// pubrecWritten records a PUBREC packet.
func (a *acks) pubrecWritten(id uint16) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pubrecs[id] = a.written
}

// pubrelRead records the answer to a PUBREC packet.
func (a *acks) pubrelRead(id uint16) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.confirm(a.pubrecs[id])
	delete(a.pubrecs, id)
}

// prove makes the answer to the next ping acknowledge a publication of QoS 0 that has left.
func (a *acks) prove(receipt uint16) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.proven = receipt
}

// pingWritten records a ping.
func (a *acks) pingWritten() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pings, a.proofs, a.behind = append(a.pings, a.written), append(a.proofs, a.proven), append(a.behind, a.uploads)
	a.proven = 0
}

// pubackRead records the answer to a PUBLISH packet.
func (a *acks) pubackRead(id uint16) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.confirm(a.publishes[id])
	if id == a.newest {
		a.uploaded = a.uploads
	}
}

// uploading reports whether the broker may not have read all large publications.
func (a *acks) uploading() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.uploaded < a.uploads
}

// pongRead records the answer to a ping. It returns the receipt that the ping proves; 0: none.
func (a *acks) pongRead() (proven uint16) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pong != nil {
		close(a.pong)
		a.pong = nil
	}
	if len(a.pings) > 0 { // answers come in the order of the pings
		n := a.pings[0]
		a.pings = a.pings[:copy(a.pings, a.pings[1:])]
		a.uploaded = max(a.uploaded, a.behind[0])
		a.behind = a.behind[:copy(a.behind, a.behind[1:])]
		a.confirm(n)
	}
	if len(a.proofs) > 0 {
		proven = a.proofs[0]
		a.proofs = a.proofs[:copy(a.proofs, a.proofs[1:])]
	}
	return proven
}

// nextPong returns a channel that is closed at the next answer to a ping. Only one goroutine
// may wait.
func (a *acks) nextPong() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pong = make(chan struct{})
	return a.pong
}

// answered reports whether no answer to a ping is expected.
func (a *acks) answered() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.proofs) == 0
}

// giveUp expects no answers to earlier pings any more: the next one is that of a later ping.
// What it confirms stays that of an earlier ping, since an answer may come late.
func (a *acks) giveUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.proofs = a.proofs[:0]
}

// confirm raises confirmed to n. The caller holds mu.
func (a *acks) confirm(n uint64) {
	if n > a.confirmed.Load() {
		a.confirmed.Store(n)
	}
	if a.read != nil && a.confirmed.Load() >= a.awaited {
		close(a.read)
		a.read = nil
	}
}

// allRead returns a channel that is closed once the broker has read all
// acknowledgements written so far. It is called once for each connection.
func (a *acks) allRead() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	read := make(chan struct{})
	a.read, a.awaited = read, a.written
	a.confirm(0)
	return read
}
