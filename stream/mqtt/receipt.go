package mqtt

import (
	"sync"
	"time"
)

// firstReceipt is the smallest packet identifier of a publication. paho numbers its
// own packets, which are few, from 1 on.
const firstReceipt = 1 << 15

// receipts are those of one connection. Their number is the largest number
// of publications that were ever unacknowledged at one time.
type receipts struct {
	mu   sync.Mutex
	all  []*receipt // by packet identifier
	free []*receipt // not in use
}

// receipt is that of a publication that was handed to the network.
type receipt struct {
	of   *receipts
	id   uint16
	open bool          // not acknowledged yet
	done chan struct{} // has an element once the broker has acknowledged it, or once sending it has failed
	at   time.Time     // of that; valid likewise
	err  error         // why sending failed; valid once done had its element
}

// next returns a receipt for a publication.
func (rs *receipts) next() *receipt {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	var r *receipt
	if n := len(rs.free); n > 0 {
		r, rs.free = rs.free[n-1], rs.free[:n-1]
	} else {
		r = &receipt{of: rs, id: uint16(firstReceipt + len(rs.all)), done: make(chan struct{}, 1)}
		rs.all = append(rs.all, r)
	}
	r.open, r.err = true, nil
	return r
}

// pubackRead records an acknowledgement. It reports false if the packet identifier
// is not that of a publication.
func (rs *receipts) pubackRead(id uint16) bool {
	if id < firstReceipt {
		return false
	}
	rs.finish(id, nil)
	return true
}

// finish closes a receipt; err is the error of sending, nil for an acknowledgement.
func (rs *receipts) finish(id uint16, err error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	at := int(id) - firstReceipt
	if at >= len(rs.all) || !rs.all[at].open {
		return // the broker acknowledges a packet that it was not sent
	}
	r := rs.all[at]
	r.open, r.at, r.err = false, time.Now(), err
	r.done <- struct{}{}
}

// free ends the use of a receipt whose done had its element.
func (r *receipt) free() {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.of.free = append(r.of.free, r)
}
