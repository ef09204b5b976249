package mqtt

import (
	"context"
	"slices"
	"sync"
	"time"

	"edge/stream/topic"
)

// Publication is a message to publish. It does not change once it is in the outbox.
type Publication struct {
	Topic    string
	Payload  []byte
	QoS      byte
	Retained bool
	home     Pool[Publication] // pool that the memory returns to; nil: the payload has another owner
}

// size is the number of bytes by which the outbox and the broker bound a publication.
func (p *Publication) size() int { return len(p.Topic) + len(p.Payload) }

// Free returns the memory of a publication that was published to its pool.
func (p *Publication) Free() {
	if p.home != nil && cap(p.Payload) <= maxPooledBytes {
		p.Retained = false
		p.home.Put(p)
	}
}

const (
	// publishWindow is the number of publications that may be unacknowledged: enough
	// that the round trip to a busy broker causes no delay, few enough to be sent
	// again after a reconnect.
	publishWindow = 64

	ackedWithin    = 30 * time.Second // longest wait for an acknowledgement before the connection is ended
	stuckAgain     = time.Second      // between looks whether the wait for that of a large one is over
	receivedWithin = 5 * time.Second  // of a large message, for the acknowledgements behind it
	slowest        = 2000             // bytes a second, of a connection over which a large one is acknowledged
	drainPolling   = 5 * time.Millisecond
)

// Outbox is the bounded queue of publications. It outlives connections.
type Outbox struct {
	queue    *Queue[*Publication]
	window   int // number of publications that may be unacknowledged
	counters *Counters
	unused   Pool[Publication]
	culprit  culprit
	refused  func(topic string, bytes int, limit bool)

	mu       sync.Mutex
	flying   []flight  // publications on their way, in the order of sending; only Serve changes it
	received time.Time // when a large message was being received last, when Serve had to know
	conn     link      // over which they are
	progress time.Time // when the oldest one was acknowledged last
	blind    bool      // the broker may not have taken publications that were sent over this connection
}

// NewOutbox returns an empty outbox that counts in c.
func NewOutbox(cfg OutboxConfig, c *Counters) *Outbox {
	return &Outbox{queue: NewQueue(cfg.MaxMessages, cfg.MaxBytes, (*Publication).size), window: publishWindow, counters: c, unused: NewPool[Publication]()}
}

// OnRefused sets a function that is called, before Serve, when a publication was discarded
// because the broker ended one connection after the other upon it. limit is true if all as
// large are discarded from then on.
func (o *Outbox) OnRefused(f func(topic string, bytes int, limit bool)) { o.refused = f }

// New returns a publication whose payload may be appended to. Its memory is used
// again after it was published.
func (o *Outbox) New() *Publication {
	m := o.unused.Get()
	if m == nil {
		m = &Publication{home: o.unused}
	}
	m.Payload = m.Payload[:0]
	return m
}

// Len returns the number of waiting publications.
func (o *Outbox) Len() int { return o.queue.Len() }

// Pop removes and returns the oldest waiting publication.
func (o *Outbox) Pop() (m *Publication, ok bool) { return o.queue.Pop() }

// Remove drops the waiting publications of topics.
func (o *Outbox) Remove(topics []string) {
	o.queue.remove(func(m *Publication) bool { return slices.Contains(topics, m.Topic) })
}

// Push queues a publication and never waits. A retained publication replaces a
// waiting one of the same topic. If the queue is full, the oldest publication that
// is not retained is discarded; so is a publication whose topic is too long for a packet.
func (o *Outbox) Push(m *Publication) {
	if len(m.Topic) > topic.MaxLength {
		o.counters.OutboxDropped.Add(1)
		return
	}
	if m.Retained && o.queue.replace(m, func(old *Publication) bool { return old.Retained && old.Topic == m.Topic }) {
		return
	}
	taken, dropped := o.queue.Push(m, func(old *Publication) bool { return !old.Retained })
	if !taken {
		dropped++
	}
	o.counters.OutboxDropped.Add(uint64(dropped))
}

// link is a connection as the outbox uses it.
type link interface {
	publish(m *Publication, proven bool) *receipt // proven: also of QoS 0
	fail(error)
	uploading() bool       // the broker may not have read all large publications
	receiving() bool       // a part of a large message has come, and acknowledgements may follow it
	broken() bool          // the broker or the network has ended it
	explained(mended bool) // notes that a publication was the cause; mended: none as large follows
	Lost() <-chan struct{}
}

// flight is a publication that was handed to the network.
type flight struct {
	m       *Publication
	receipt *receipt
	sent    time.Time
	proven  bool // the element of receipt.done, unless it is an error, proves that the broker took m
	done    bool // the element of receipt.done was received
}

// ended reports whether the publication is acknowledged, or sending it has failed.
func (f *flight) ended() bool {
	if !f.done {
		select {
		case <-f.receipt.done:
			f.done = true
		default:
		}
	}
	return f.done
}

// acknowledged reports whether the broker has acknowledged the publication, as far as Serve has to know.
func (f *flight) acknowledged() bool {
	return f.done && f.receipt.err == nil || !f.done && len(f.receipt.done) > 0
}

// acknowledged counts the publications on their way that the broker has acknowledged:
// Serve collects them when it sends the next. The caller holds mu.
func (o *Outbox) acknowledged() (n int) {
	for i := range o.flying {
		if o.flying[i].acknowledged() {
			n++
		}
	}
	return n
}

// Underway calls use with each publication that waits, or that the broker has not acknowledged and may not have read; use
// must not call the outbox.
func (o *Outbox) Underway(use func(*Publication)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.flying {
		if !o.flying[i].acknowledged() && o.conn.uploading() {
			use(o.flying[i].m)
		}
	}
	o.queue.each(use)
}

// idle reports whether all publications are acknowledged.
func (o *Outbox) idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queue.Len() == 0 && o.acknowledged() == len(o.flying)
}

// collect frees the oldest publications as far as they are acknowledged. It returns the
// oldest of the others, and their number.
func (o *Outbox) collect() (oldest *flight, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	acked := 0
	for ; acked < len(o.flying); acked++ {
		f := &o.flying[acked]
		if !f.ended() || f.receipt.err != nil {
			break
		}
		o.acked(f)
		o.progress = f.receipt.at
		f.receipt.free()
		f.m.Free()
	}
	o.flying = slices.Delete(o.flying, 0, acked)
	if len(o.flying) == 0 {
		return nil, 0
	}
	return &o.flying[0], len(o.flying)
}

// acked notes that a publication is on its way no more.
func (o *Outbox) acked(f *flight) {
	if f.proven {
		o.culprit.acknowledged(f.m)
	} else {
		o.blind = true
	}
}

// stuck reports for how long the broker has acknowledged nothing although it was sent the oldest publication, and whether
// that is too long. Over a slow connection others wait behind that one, and a large one takes long.
func (o *Outbox) stuck(conn link, oldest *flight) (d time.Duration, fails bool) {
	within := ackedWithin
	if conn.uploading() {
		within += time.Duration(oldest.m.size()) * time.Second / slowest
	}
	d = min(time.Since(oldest.sent), time.Since(o.progress))
	return d, d >= within && time.Since(o.received) >= receivedWithin
}

// send hands a publication to the network. It reports whether the network took it.
func (o *Outbox) send(conn link, m *Publication) (taken bool) {
	proven := o.culprit.proves()
	f := flight{m: m, receipt: conn.publish(m, proven), sent: time.Now(), proven: m.QoS > 0 || proven}
	o.mu.Lock()
	defer o.mu.Unlock()
	taken = !f.ended() || f.receipt.err == nil
	o.flying, o.conn = append(o.flying, f), conn
	return taken
}

// sendAgain hands the oldest publication to the network again.
func (o *Outbox) sendAgain(conn link) {
	f := &o.flying[0]
	again := conn.publish(f.m, f.proven)
	o.mu.Lock()
	defer o.mu.Unlock()
	f.receipt.free()
	f.receipt, f.done = again, false
}

// Serve publishes over one connection until the connection or ctx ends. It returns
// unacknowledged publications to the front of the queue.
//
// An acknowledgement wakes it only if it waits for room for the next publication, or if
// one has failed: most acknowledgements come while there is nothing else to send.
func (o *Outbox) Serve(ctx context.Context, conn link) {
	defer o.requeue(conn)
	stuck := time.NewTimer(ackedWithin)
	defer stuck.Stop()
	failed := false // one of those on their way was not taken by the network
	for {
		oldest, n := o.collect()
		for n < o.culprit.window(o.window) {
			m, ok := o.queue.Pop()
			if !ok {
				break
			}
			if !o.culprit.admits(m) {
				o.counters.OutboxRefused.Add(1)
				m.Free()
				continue
			}
			failed = !o.send(conn, m) || failed
			oldest, n = o.collect()
		}
		var acked, more <-chan struct{}
		switch {
		case n == 0:
			failed = false
			stuck.Stop()
		case oldest.done: // the connection is ending, or the network did not accept it in time
			select {
			case <-conn.Lost():
				return
			case <-ctx.Done():
				return
			case <-time.After(publishWait):
				o.sendAgain(conn)
			}
			continue
		case failed || n >= o.culprit.window(o.window):
			acked = oldest.receipt.done
			fallthrough
		default:
			d, _ := o.stuck(conn, oldest)
			stuck.Reset(max(stuckAgain, ackedWithin-d))
		}
		if n < o.culprit.window(o.window) {
			more = o.queue.Ready()
		}
		select {
		case <-conn.Lost():
			return
		case <-ctx.Done():
			return
		case <-more:
		case <-stuck.C:
			if conn.receiving() {
				o.received = time.Now()
			}
			if oldest, n := o.collect(); n > 0 {
				if _, fails := o.stuck(conn, oldest); fails {
					conn.fail(errUnanswered)
					return
				}
			}
		case <-acked:
			o.mu.Lock()
			oldest.done = true
			o.mu.Unlock()
		}
	}
}

// requeue returns unacknowledged publications to the queue, except one upon which the
// broker has ended too many connections.
func (o *Outbox) requeue(conn link) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var back []*Publication
	var unanswered []flight
	for i := range o.flying {
		f := &o.flying[i]
		switch {
		case !f.ended():
			unanswered = append(unanswered, *f)
		case f.receipt.err == nil:
			o.acked(f)
			continue
		}
		back = append(back, f.m)
	}
	clear(o.flying)
	o.flying = o.flying[:0]
	if conn.broken() && o.accuse(conn, unanswered) {
		back = slices.DeleteFunc(back, func(m *Publication) bool { return m == unanswered[0].m })
	}
	o.blind = false
	o.queue.pushFront(o.withoutReplaced(back))
}

// withoutReplaced drops the retained publications that a later one of their topic replaces: over a slow connection,
// a large one that was replaced would end the next one as well.
func (o *Outbox) withoutReplaced(all []*Publication) []*Publication {
	newer := map[string]bool{}
	o.queue.each(func(m *Publication) { newer[m.Topic] = newer[m.Topic] || m.Retained })
	at := len(all)
	for i := len(all) - 1; i >= 0; i-- {
		m := all[i]
		if m.Retained && newer[m.Topic] {
			m.Free()
			continue
		}
		newer[m.Topic] = newer[m.Topic] || m.Retained
		at--
		all[at] = m
	}
	return all[at:]
}

// accuse looks for the publication upon which the broker has ended the connection among
// those that it has not answered. It reports whether the oldest one has ended too many.
func (o *Outbox) accuse(conn link, unanswered []flight) bool {
	if len(unanswered) == 0 {
		unproven := 0
		if o.blind { // any of them may have been the cause
			unproven = o.window
		}
		o.culprit.endedOtherwise(unproven)
		return false
	}
	m, again := unanswered[0].m, o.culprit.proving > 0
	refused := o.culprit.ended(m, len(unanswered), time.Since(unanswered[0].sent) < lostWithin)
	if refused || o.culprit.ends > 1 || again {
		conn.explained(refused && o.culprit.refuses(m))
	}
	if !refused {
		return false
	}
	o.counters.OutboxRefused.Add(1)
	if o.refused != nil {
		o.refused(m.Topic, m.size(), o.culprit.refuses(m))
	}
	return true
}

// Drain waits until all publications are acknowledged, or ctx or the connection ends.
func (o *Outbox) Drain(ctx context.Context, conn link) {
	t := time.NewTicker(drainPolling)
	defer t.Stop()
	for !o.idle() {
		select {
		case <-t.C:
		case <-conn.Lost():
			return
		case <-ctx.Done():
			return
		}
	}
}
