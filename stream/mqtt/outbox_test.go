package mqtt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"edge/stream/field"
	"edge/stream/topic"
)

// fakeLink is a connection whose acknowledgements the test gives.
type fakeLink struct {
	mu   sync.Mutex
	sent []string // payloads
	out  []*receipt
	auto bool // acknowledge at once
	lost chan struct{}
	err  error

	culprit bool        // explained was called
	large   atomic.Bool // uploading
	bulk    atomic.Bool // receiving
}

func newFakeLink(auto bool) *fakeLink { return &fakeLink{auto: auto, lost: make(chan struct{})} }

func (l *fakeLink) publish(of *Publication, proven bool) *receipt {
	m := *of // whose payload may be another message's soon
	m.Payload = slices.Clone(m.Payload)
	l.mu.Lock()
	defer l.mu.Unlock()
	d := new(receipts).next()
	d.err = l.err
	l.sent, l.out = append(l.sent, string(m.Payload)), append(l.out, d)
	if l.auto || l.err != nil {
		d.done <- struct{}{}
	}
	return d
}

func (l *fakeLink) uploading() bool       { return l.large.Load() }
func (l *fakeLink) receiving() bool       { return l.bulk.Load() }
func (l *fakeLink) fail(error)            { close(l.lost) }
func (l *fakeLink) Lost() <-chan struct{} { return l.lost }
func (l *fakeLink) broken() bool          { return isClosed(l.lost) }
func (l *fakeLink) explained(bool)        { l.culprit = true }

func (l *fakeLink) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sent)
}

func plain(s string) *Publication { return &Publication{Topic: "t", Payload: []byte(s), QoS: 1} }

func startOutbox(t *testing.T, o *Outbox, l *fakeLink) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { o.Serve(ctx, l) })
	return func() {
		cancel()
		wg.Wait()
	}
}

// newTestOutbox returns an outbox with another window.
func newTestOutbox(window int) *Outbox {
	o := NewOutbox(DefaultOutboxConfig(), new(Counters))
	o.window = window
	return o
}

// Long: a list of independent cases.
func TestOutbox(t *testing.T) {
	bubble("sends in order", t, func(t *testing.T) {
		o, l := newTestOutbox(4), newFakeLink(true)
		stop := startOutbox(t, o, l)
		defer stop()
		var want []string
		for i := range 100 {
			want = append(want, fmt.Sprint(i))
			o.Push(plain(want[i]))
		}
		o.Drain(t.Context(), l)
		equalTexts(t, "sent", l.all(), want)
		if !o.idle() {
			t.Errorf("%d are left after Drain", o.Len())
		}
	})
	bubble("no more on their way than the window", t, func(t *testing.T) {
		o, l := newTestOutbox(2), newFakeLink(false)
		stop := startOutbox(t, o, l)
		for _, s := range []string{"a", "b", "c"} {
			o.Push(plain(s))
		}
		synctest.Wait()
		equalTexts(t, "sent", l.all(), []string{"a", "b"})
		l.out[0].done <- struct{}{}
		synctest.Wait()
		equalTexts(t, "sent", l.all(), []string{"a", "b", "c"})
		stop()
		equalTexts(t, "left", payloads(o), []string{"b", "c"})
	})
	bubble("what was not acknowledged is sent again, first", t, func(t *testing.T) {
		o, l := newTestOutbox(3), newFakeLink(false)
		stop := startOutbox(t, o, l)
		for _, s := range []string{"a", "b", "c", "d"} {
			o.Push(plain(s))
		}
		synctest.Wait()
		l.out[1].done <- struct{}{} // of b
		l.fail(nil)
		stop()
		next := newFakeLink(true)
		stop = startOutbox(t, o, next)
		o.Drain(t.Context(), next)
		stop()
		equalTexts(t, "sent", next.all(), []string{"a", "c", "d"})
	})
	bubble("a broker that does not acknowledge is left", t, func(t *testing.T) {
		o, l := newTestOutbox(3), newFakeLink(false)
		defer startOutbox(t, o, l)()
		o.Push(plain("a"))
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
	bubble("the time without an acknowledgement begins with each", t, func(t *testing.T) {
		o, l := newTestOutbox(4), newFakeLink(false)
		defer startOutbox(t, o, l)()
		for _, s := range []string{"a", "b", "c", "d"} { // as parts of a large one over a slow connection
			o.Push(plain(s))
		}
		for i := range 3 {
			time.Sleep(ackedWithin - 5*time.Second)
			synctest.Wait()
			l.out[i].at = time.Now()
			l.out[i].done <- struct{}{}
		}
		time.Sleep(ackedWithin - time.Second)
		if isClosed(l.lost) {
			t.Error("left too early")
		}
		time.Sleep(2 * time.Second)
		if !isClosed(l.lost) {
			t.Error("not left")
		}
	})
	bubble("a large one has longer, until the broker has read it", t, func(t *testing.T) {
		for read, want := range map[time.Duration]time.Duration{0: ackedWithin, 40500 * time.Millisecond: 41 * time.Second, time.Hour: ackedWithin + 50*time.Second} {
			o, l := newTestOutbox(4), newFakeLink(false)
			l.large.Store(true)
			stop := startOutbox(t, o, l)
			began := time.Now()
			o.Push(plain(strings.Repeat("x", 50*slowest-1)))
			time.AfterFunc(read, func() { l.large.Store(false) })
			<-l.lost
			if took := time.Since(began); took < want || took > want+stuckAgain {
				t.Errorf("read after %v, it is left after %v, want %v", read, took, want)
			}
			stop()
		}
	})
	bubble("acknowledgements may wait behind a large message", t, func(t *testing.T) {
		o, l := newTestOutbox(4), newFakeLink(false)
		defer startOutbox(t, o, l)()
		l.bulk.Store(true)
		time.AfterFunc(70500*time.Millisecond, func() { l.bulk.Store(false) })
		began := time.Now()
		o.Push(plain("a"))
		<-l.lost
		if took, want := time.Since(began), 70*time.Second+receivedWithin; took != want {
			t.Errorf("it is left after %v, want %v", took, want)
		}
	})
	bubble("what was replaced on its way is not sent again", t, func(t *testing.T) {
		o, l := newTestOutbox(4), newFakeLink(false)
		stop := startOutbox(t, o, l)
		retained := func(topic, s string) *Publication {
			return &Publication{Topic: topic, Payload: []byte(s), QoS: 1, Retained: true}
		}
		for _, p := range []*Publication{retained("c", "large"), plain("x"), retained("c/0", "half"), retained("c", "list"), retained("d", "d1")} {
			o.Push(p)
			synctest.Wait()
		}
		o.Push(retained("c/0", "other half"))
		l.fail(nil)
		stop()
		equalTexts(t, "left", payloads(o), []string{"x", "list", "d1", "other half"})
	})
	bubble("what waits, or is on its way", t, func(t *testing.T) {
		o, l := newTestOutbox(2), newFakeLink(false)
		defer startOutbox(t, o, l)()
		for _, s := range []string{"a", "b", "c"} {
			o.Push(plain(s))
		}
		synctest.Wait()
		l.out[1].done <- struct{}{}
		synctest.Wait()
		var all []string
		l.large.Store(true)
		o.Underway(func(m *Publication) { all = append(all, string(m.Payload)) })
		equalTexts(t, "left", all, []string{"a", "c"})
		l.large.Store(false) // the broker has read a, and does not acknowledge it
		all = nil
		o.Underway(func(m *Publication) { all = append(all, string(m.Payload)) })
		equalTexts(t, "left", all, []string{"c"})
	})
	bubble("an error while the connection lives is tried again", t, func(t *testing.T) {
		o, l := newTestOutbox(3), newFakeLink(true)
		l.err = errors.New("timeout")
		stop := startOutbox(t, o, l)
		o.Push(plain("a"))
		time.Sleep(10 * time.Second)
		l.mu.Lock()
		l.err = nil
		l.mu.Unlock()
		time.Sleep(2 * time.Second)
		stop()
		if !o.idle() {
			t.Errorf("%d are left", o.Len())
		}
	})
	bubble("a message that ends every connection is given up", t, func(t *testing.T) {
		o := newTestOutbox(1)
		o.Push(plain("poison"))
		o.Push(plain("good"))
		for i := range maxEnds {
			l := newFakeLink(false)
			stop := startOutbox(t, o, l)
			synctest.Wait()
			equalTexts(t, "sent", l.all(), []string{"poison"})
			l.fail(nil)
			stop()
			if repeated := i > 0; l.culprit != repeated {
				t.Errorf("end %d is explained: %v, want %v", i+1, l.culprit, repeated)
			}
		}
		equalTexts(t, "left", payloads(o), []string{"good"})
		if got := o.counters.OutboxRefused.Load(); got != 1 {
			t.Errorf("refused %d, want 1", got)
		}
	})
}

func payloads(o *Outbox) (all []string) {
	for _, m := range drain(o.queue) {
		all = append(all, string(m.Payload))
	}
	return all
}

func TestOutboxOverflow(t *testing.T) {
	o := NewOutbox(OutboxConfig{MaxMessages: 16, MaxBytes: field.MiB}, new(Counters))
	retained := func(topic, s string) *Publication {
		return &Publication{Topic: topic, Payload: []byte(s), Retained: true}
	}
	o.Push(retained("info", "info 0"))
	var want []string
	for i := range 100 {
		o.Push(plain(fmt.Sprint(i)))
		o.Push(retained("latest", fmt.Sprintf("latest %d", i)))
		if i >= 86 {
			want = append(want, fmt.Sprint(i))
		}
	}
	o.Push(retained("info", "info 1"))
	o.Push(retained(strings.Repeat("t", topic.MaxLength+1), "which no packet can hold"))
	want = append([]string{"info 1", "latest 99"}, want...)
	equalTexts(t, "left", payloads(o), want)
	if got := o.counters.OutboxDropped.Load(); got != 87 {
		t.Errorf("dropped %d, want 87", got)
	}
}
