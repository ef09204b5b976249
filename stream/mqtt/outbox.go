package mqtt

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"
)

// outgoing is a message to publish. It is not changed once it is in the outbox.
type Publication struct {
	Topic    string
	Payload  []byte
	QoS      byte
	Retained bool
	home     pool[Publication] // nil: somebody else has the payload
	tries    int               // connections that ended while it was the oldest on its way
}

// newOutgoing returns a message whose payload may be appended to.
func newPublication(home pool[Publication]) *Publication {
	m := home.get()
	if m == nil {
		m = &Publication{home: home}
	}
	m.Payload = m.Payload[:0]
	return m
}

// free lets another message have the memory of one that has been published.
func (m *Publication) Free() {
	if m.home != nil && cap(m.Payload) <= maxPooledBytes {
		m.Retained, m.tries = false, 0
		m.home.put(m)
	}
}

const (
	// publishWindow is how many publications may be on their way at once: enough
	// that a round trip to a busy broker holds up nothing, few enough to be sent
	// again after a reconnect.
	publishWindow = 64

	maxTries     = 5                // a message that ends every connection must not be sent for ever
	ackedWithin  = 30 * time.Second // a broker that takes longer is taken for dead
	drainPolling = 5 * time.Millisecond
)

// outbox holds what waits to be published, bounded; it outlives connections.
type Outbox struct {
	queue    *Queue[*Publication]
	window   int          // publications on their way at once
	inFlight atomic.Int64 // of them
	counters *Counters
	unused   pool[Publication]
}

func NewOutbox(cfg OutboxConfig, c *Counters) *Outbox {
	size := func(m *Publication) int { return len(m.Topic) + len(m.Payload) }
	return &Outbox{queue: NewQueue(cfg.MaxMessages, cfg.MaxBytes, size), window: publishWindow, counters: c, unused: make(pool[Publication], pooled)}
}

// newPublication returns a publication whose payload may be appended to. Its
// memory is used again once it has been published.
func (o *Outbox) New() *Publication { return newPublication(o.unused) }

// len returns how many publications wait.
func (o *Outbox) Len() int { return o.queue.Len() }

// pop removes and returns the oldest publication that waits.
func (o *Outbox) Pop() (m *Publication, ok bool) { return o.queue.Pop() }

// push takes a message and never waits. A retained message replaces one of the
// same topic that was not sent yet. Full, it drops the oldest that is not retained.
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

// link is what the outbox needs of a connection.
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

// serve publishes over one connection until that or ctx ends. What the broker
// has not acknowledged by then goes back to the front of the queue.
func (o *Outbox) Serve(ctx context.Context, conn link) {
	var flying []flight // in the order of sending
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
			conn.fail(errors.New("stream: publish: no acknowledgement from the broker"))
			return
		case <-oldest:
			if flying[0].d.Error() != nil {
				// Either the connection is ending, or the network did not take the
				// message in time.
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

// giveBack returns unacknowledged messages to the queue. The oldest may be what
// ended the connection, and is given up after maxTries.
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

// drain waits until everything is published, or ctx or the connection ends.
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
