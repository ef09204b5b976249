package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeLink is a connection whose acknowledgements the test gives.
type fakeLink struct {
	mu   sync.Mutex
	sent []string // payloads
	msgs []*outgoing
	out  []*fakeDelivery
	auto bool // acknowledge at once
	lost chan struct{}
	err  error
}

type fakeDelivery struct {
	done chan struct{}
	err  error
}

func (d *fakeDelivery) Done() <-chan struct{} { return d.done }
func (d *fakeDelivery) Error() error          { return d.err }
func (d *fakeDelivery) Free()                 {}

func newFakeLink(auto bool) *fakeLink { return &fakeLink{auto: auto, lost: make(chan struct{})} }

func (l *fakeLink) publish(of *outgoing) delivery {
	m := *of // whose payload may be another message's soon
	m.payload = slices.Clone(m.payload)
	l.mu.Lock()
	defer l.mu.Unlock()
	d := &fakeDelivery{done: make(chan struct{}), err: l.err}
	l.sent, l.msgs, l.out = append(l.sent, string(m.payload)), append(l.msgs, &m), append(l.out, d)
	if l.auto || l.err != nil {
		close(d.done)
	}
	return d
}

func (l *fakeLink) fail(error)            { close(l.lost) }
func (l *fakeLink) done() <-chan struct{} { return l.lost }

func (l *fakeLink) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sent)
}

// take returns what was sent since the last call.
func (l *fakeLink) take() []*outgoing {
	l.mu.Lock()
	defer l.mu.Unlock()
	msgs := l.msgs
	l.msgs = nil
	return msgs
}

func plain(s string) *outgoing { return &outgoing{topic: "t", payload: []byte(s), qos: 1} }

func startOutbox(t *testing.T, o *outbox, l *fakeLink) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { o.serve(ctx, l) })
	return func() {
		cancel()
		wg.Wait()
	}
}

func TestOutbox(t *testing.T) {
	in("sends in order", t, func(t *testing.T) {
		o, l := newOutbox(DefaultOutbox(), 4, new(counters)), newFakeLink(true)
		stop := startOutbox(t, o, l)
		defer stop()
		var want []string
		for i := range 100 {
			want = append(want, fmt.Sprint(i))
			o.push(plain(want[i]))
		}
		o.drain(t.Context(), l)
		equal(t, "sent", l.all(), want)
		if got := o.counters.published.Load(); got != 100 {
			t.Errorf("published %d", got)
		}
	})
	in("no more on their way than the window", t, func(t *testing.T) {
		o, l := newOutbox(DefaultOutbox(), 2, new(counters)), newFakeLink(false)
		stop := startOutbox(t, o, l)
		for _, s := range []string{"a", "b", "c"} {
			o.push(plain(s))
		}
		synctest.Wait()
		equal(t, "sent", l.all(), []string{"a", "b"})
		close(l.out[0].done)
		synctest.Wait()
		equal(t, "sent", l.all(), []string{"a", "b", "c"})
		stop()
		equal(t, "left", payloads(o), []string{"b", "c"})
	})
	in("what was not acknowledged is sent again, first", t, func(t *testing.T) {
		o, l := newOutbox(DefaultOutbox(), 3, new(counters)), newFakeLink(false)
		stop := startOutbox(t, o, l)
		for _, s := range []string{"a", "b", "c", "d"} {
			o.push(plain(s))
		}
		synctest.Wait()
		close(l.out[1].done) // of b
		l.fail(nil)
		stop()
		next := newFakeLink(true)
		stop = startOutbox(t, o, next)
		o.drain(t.Context(), next)
		stop()
		equal(t, "sent", next.all(), []string{"a", "c", "d"})
	})
	in("a broker that does not acknowledge is left", t, func(t *testing.T) {
		o, l := newOutbox(DefaultOutbox(), 3, new(counters)), newFakeLink(false)
		defer startOutbox(t, o, l)()
		o.push(plain("a"))
		time.Sleep(ackedWithin - time.Second)
		select {
		case <-l.lost:
			t.Error("left too early")
		default:
		}
		time.Sleep(2 * time.Second)
		select {
		case <-l.lost:
		default:
			t.Error("not left")
		}
	})
	in("an error while the connection lives is tried again", t, func(t *testing.T) {
		o, l := newOutbox(DefaultOutbox(), 3, new(counters)), newFakeLink(true)
		l.err = errors.New("timeout")
		stop := startOutbox(t, o, l)
		o.push(plain("a"))
		time.Sleep(10 * time.Second)
		l.mu.Lock()
		l.err = nil
		l.mu.Unlock()
		time.Sleep(2 * time.Second)
		stop()
		if got := o.counters.published.Load(); got != 1 || o.queue.len() != 0 {
			t.Errorf("published %d, %d left, want 1 and none", got, o.queue.len())
		}
	})
	in("a message that ends every connection is given up", t, func(t *testing.T) {
		o := newOutbox(DefaultOutbox(), 1, new(counters))
		o.push(plain("poison"))
		o.push(plain("good"))
		for range maxTries + 1 {
			l := newFakeLink(false)
			stop := startOutbox(t, o, l)
			synctest.Wait()
			equal(t, "sent", l.all(), []string{"poison"})
			l.fail(nil)
			stop()
		}
		equal(t, "left", payloads(o), []string{"good"})
		if got := o.counters.outboxDropped.Load(); got != 1 {
			t.Errorf("dropped %d, want 1", got)
		}
	})
}

func payloads(o *outbox) (all []string) {
	for _, m := range drainFifo(o.queue) {
		all = append(all, string(m.payload))
	}
	return all
}

func TestOutboxOverflow(t *testing.T) {
	o := newOutbox(Outbox{MaxMessages: 16, MaxBytes: MiB}, 1, new(counters))
	retained := func(topic, s string) *outgoing {
		return &outgoing{topic: topic, payload: []byte(s), retained: true}
	}
	o.push(retained("info", "info 0"))
	var want []string
	for i := range 100 {
		o.push(plain(fmt.Sprint(i)))
		o.push(retained("latest", fmt.Sprintf("latest %d", i)))
		if i >= 86 {
			want = append(want, fmt.Sprint(i))
		}
	}
	o.push(retained("info", "info 1"))
	want = append([]string{"info 1", "latest 99"}, want...)
	equal(t, "left", payloads(o), want)
	if got := o.counters.outboxDropped.Load(); got != 86 {
		t.Errorf("dropped %d, want 86", got)
	}
}

func TestLimiter(t *testing.T) {
	l := limiter{interval: time.Second, burst: 3}
	now := time.Unix(1e9, 0)
	allowed := func(at time.Duration, n int) (k int) {
		for range n {
			if l.allow(now.Add(at)) {
				k++
			}
		}
		return k
	}
	for _, c := range []struct {
		at   time.Duration
		want int
	}{{0, 3}, {999 * time.Millisecond, 0}, {time.Second, 1}, {3 * time.Second, 2}, {time.Hour, 3}} {
		if got := allowed(c.at, 10); got != c.want {
			t.Errorf("after %v: %d allowed, want %d", c.at, got, c.want)
		}
	}
}
