package mqtt

import "sync"

// delivery is a publication on its way.
type delivery interface {
	// Done has an element once the broker has acknowledged the publication, or it
	// was not sent.
	Done() <-chan struct{}
	// Error says why it was not sent. It is valid once Done had its element.
	Error() error
	// Free ends the use of a delivery whose Done had its element.
	Free()
}

// firstReceipt is the smallest identifier of a publication. paho gives its own
// packets, few as they are, numbers from 1 on.
const firstReceipt = 1 << 15

// receipts are those of the publications of one connection. There are as many as
// were ever on their way at once.
type receipts struct {
	mu   sync.Mutex
	all  []*receipt // by id
	free []*receipt
}

// receipt is the delivery of one publication.
type receipt struct {
	of   *receipts
	id   uint16
	open bool // the broker has not acknowledged it
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

// acknowledged hears of an acknowledgement. It reports false if that is none of
// a publication.
func (rs *receipts) pubackRead(id uint16) bool {
	if id < firstReceipt {
		return false
	}
	rs.finish(id, nil)
	return true
}

// settle ends a publication; err says why it was not sent.
func (rs *receipts) finish(id uint16, err error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	at := int(id) - firstReceipt
	if at >= len(rs.all) || !rs.all[at].open {
		return // the broker acknowledges what it was not sent
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
