package probe

import (
	"context"
	"sync"
	"time"

	"edge/internal/broker"
	"edge/internal/timing"
)

// inbox counts the messages that a client receives.
type inbox struct {
	quiet time.Duration // without another message: no more will arrive
	mark  string        // topic of messages that are counted separately; "" for none

	mu    sync.Mutex
	last  time.Time
	total int // without the marks
	marks int
}

// receive counts a message.
func (b *inbox) receive(m broker.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = time.Now()
	if m.Topic == b.mark {
		b.marks++
	} else {
		b.total++
	}
}

// count returns the number of messages.
func (b *inbox) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}

// wait waits until n messages have arrived, or until no more arrive: first is the
// longest wait for the first message. It returns the number of messages.
func (b *inbox) wait(ctx context.Context, n int, first time.Duration) int {
	const poll = 2 * time.Millisecond
	began := time.Now()
	for {
		b.mu.Lock()
		total, since, patience := b.total, began, first
		if b.last.After(began) {
			since, patience = b.last, b.quiet
		}
		b.mu.Unlock()
		if total >= n || time.Since(since) > patience || timing.Sleep(ctx, poll) != nil {
			return total
		}
	}
}
