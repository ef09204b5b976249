package mqtt

import "sync"

// delivery is a publication that was handed to the network.
type delivery interface {
	// Done has an element once the broker has acknowledged the publication, or once
	// sending it has failed.
	Done() <-chan struct{}
	// Error returns why sending failed. It is valid once Done had its element.
	Error() error
	// Free ends the use of a delivery whose Done had its element.
	Free()
}

// firstReceipt is the smallest packet identifier of a publication. paho numbers its
// own packets, which are few, from 1 on.
const firstReceipt = 1 << 15

// receipts are the deliveries of one connection. Their number is the largest number
// of publications that were ever unacknowledged at one time.
type receipts struct {
	mu   sync.Mutex
	all  []*receipt // by packet identifier
	free []*receipt
}

// receipt is the delivery of one publication.
type receipt struct {
	of   *receipts
	id   uint16
	open bool // not acknowledged yet
	done chan struct{}
	err  error
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

// finish ends a delivery; err is the error of sending, nil for an acknowledgement.
func (rs *receipts) finish(id uint16, err error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	at := int(id) - firstReceipt
	if at >= len(rs.all) || !rs.all[at].open {
		return // the broker acknowledges a packet that it was not sent
	}
	r := rs.all[at]
	r.open, r.err = false, err
	r.done <- struct{}{}
}

func (r *receipt) Done() <-chan struct{} { return r.done }
func (r *receipt) Error() error          { return r.err }

func (r *receipt) Free() {
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.of.free = append(r.of.free, r)
}
