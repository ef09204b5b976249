package mqtt

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"
)

// Publication is a message to publish. It does not change once it is in the outbox.
type Publication struct {
	Topic    string
	Payload  []byte
	QoS      byte
	Retained bool
	home     pool[Publication] // pool that the memory returns to; nil: the payload has another owner
	tries    int               // number of connections that ended while it was the oldest unacknowledged one
}

// newPublication returns a publication whose payload may be appended to.
func newPublication(home pool[Publication]) *Publication {
	m := home.get()
	if m == nil {
		m = &Publication{home: home}
	}
	m.Payload = m.Payload[:0]
	return m
}

// Free returns the memory of a publication that was published to its pool.
func (m *Publication) Free() {
	if m.home != nil && cap(m.Payload) <= maxPooledBytes {
		m.Retained, m.tries = false, 0
		m.home.put(m)
	}
}

const (
	// publishWindow is the number of publications that may be unacknowledged: enough
	// that the round trip to a busy broker causes no delay, few enough to be sent
	// again after a reconnect.
	publishWindow = 64

	maxTries     = 5                // number of connections that one publication may end before it is discarded
	ackedWithin  = 30 * time.Second // longest wait for an acknowledgement before the connection is ended
	drainPolling = 5 * time.Millisecond
)

// Outbox is the bounded queue of publications. It outlives connections.
type Outbox struct {
	queue    *Queue[*Publication]
	window   int          // number of publications that may be unacknowledged
	inFlight atomic.Int64 // number of unacknowledged publications
	counters *Counters
	unused   pool[Publication]
}

func NewOutbox(cfg OutboxConfig, c *Counters) *Outbox {
	size := func(m *Publication) int { return len(m.Topic) + len(m.Payload) }
	return &Outbox{queue: NewQueue(cfg.MaxMessages, cfg.MaxBytes, size), window: publishWindow, counters: c, unused: make(pool[Publication], pooled)}
}

// New returns a publication whose payload may be appended to. Its memory is used
// again after it was published.
func (o *Outbox) New() *Publication { return newPublication(o.unused) }

// Len returns the number of waiting publications.
func (o *Outbox) Len() int { return o.queue.Len() }

// Pop removes and returns the oldest waiting publication.
func (o *Outbox) Pop() (m *Publication, ok bool) { return o.queue.Pop() }

// Push queues a publication and never waits. A retained publication replaces a
// waiting one of the same topic. If the queue is full, the oldest publication that
// is not retained is discarded.
func (o *Outbox) Push(m *Publication) {
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
	publish(*Publication) delivery
	fail(error)
	done() <-chan struct{}
}

type flight struct {
	m    *Publication
	d    delivery
	sent time.Time
}

// Serve publishes over one connection until the connection or ctx ends. It returns
// unacknowledged publications to the front of the queue.
func (o *Outbox) Serve(ctx context.Context, conn link) {
	var flying []flight // unacknowledged, in the order of sending
	defer func() {
		o.requeue(flying)
		o.inFlight.Store(0)
	}()
	stuck := time.NewTimer(ackedWithin)
	defer stuck.Stop()
	for {
		for len(flying) < o.window {
			m, ok := o.queue.Pop()
			if !ok {
				break
			}
			flying = append(flying, flight{m, conn.publish(m), time.Now()})
			o.inFlight.Store(int64(len(flying)))
		}
		var (
			oldest <-chan struct{}
			more   <-chan struct{}
		)
		if len(flying) > 0 {
			oldest = flying[0].d.Done()
			stuck.Reset(time.Until(flying[0].sent.Add(ackedWithin)))
		} else {
			stuck.Stop()
		}
		if len(flying) < o.window {
			more = o.queue.Ready()
		}
		select {
		case <-conn.done():
			return
		case <-ctx.Done():
			return
		case <-more:
		case <-stuck.C:
			conn.fail(errors.New("mqtt: publish: no acknowledgement from the broker"))
			return
		case <-oldest:
			if flying[0].d.Error() != nil {
				// The connection is ending, or the network did not accept the
				// publication in time.
				select {
				case <-conn.done():
					return
				case <-ctx.Done():
					return
				case <-time.After(publishWait):
					flying[0].d.Free()
					flying[0].d = conn.publish(flying[0].m)
				}
				continue
			}
			o.counters.Published.Add(1)
			flying[0].d.Free()
			flying[0].m.Free()
			flying = slices.Delete(flying, 0, 1)
			o.inFlight.Store(int64(len(flying)))
		}
	}
}

// requeue returns unacknowledged publications to the queue. The oldest may have
// caused the end of the connection, and is discarded after maxTries.
func (o *Outbox) requeue(flying []flight) {
	var back []*Publication
	for _, f := range flying {
		select {
		case <-f.d.Done():
			if f.d.Error() == nil {
				o.counters.Published.Add(1)
				continue
			}
		default:
		}
		if len(back) == 0 {
			if f.m.tries++; f.m.tries > maxTries {
				o.counters.OutboxDropped.Add(1)
				continue
			}
		}
		back = append(back, f.m)
	}
	o.queue.pushFront(back)
}

// Drain waits until all publications are acknowledged, or ctx or the connection ends.
func (o *Outbox) Drain(ctx context.Context, conn link) {
	t := time.NewTicker(drainPolling)
	defer t.Stop()
	for o.queue.Len() > 0 || o.inFlight.Load() > 0 {
		select {
		case <-t.C:
		case <-conn.done():
			return
		case <-ctx.Done():
			return
		}
	}
}
