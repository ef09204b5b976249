package stream

import (
	"context"
	"time"
)

// stillArriving is how many times as long as its quiet time a wait may last while
// bytes arrive.
const stillArriving = 30

// awaits waits for an answer from the broker. A broker sends what is in flight
// before it answers, and a link may be slow: as long as bytes arrive, the answer
// may be on its way. It reports false once nothing has arrived for quiet, after
// stillArriving times as long, and where the connection or ctx ends.
func (conn *connection) awaits(ctx context.Context, answer <-chan struct{}, quiet time.Duration) bool {
	began, arrived := time.Now(), conn.net.arrived.Load()
	late := time.NewTimer(quiet)
	defer late.Stop()
	for {
		select {
		case <-answer:
			return true
		case <-late.C:
			now := conn.net.arrived.Load()
			if now == arrived || time.Since(began) >= stillArriving*quiet {
				return false
			}
			arrived = now
			late.Reset(quiet)
		case <-conn.lost:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
