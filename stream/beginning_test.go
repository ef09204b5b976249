package stream

import (
	"testing"
	"testing/synctest"
	"time"
)

// A board that begins without the time knows when it began once its clock is set.
func TestBeginning(t *testing.T) {
	now := time.Now()
	b := &Beginning{at: now}
	boot := time.Unix(3, 0)
	for i, c := range []struct {
		after      time.Duration
		wall, want time.Time
	}{
		{0, boot, boot},
		{20 * time.Second, boot.Add(20 * time.Second), boot},
		{time.Hour, now.Add(time.Hour), now},
		{2 * time.Hour, now.Add(2*time.Hour + 10*time.Second), now}, // NTP corrects it step by step
		{3 * time.Hour, now.Add(-time.Hour), now.Add(-4 * time.Hour)},
	} {
		if got := b.asOf(setWall(now.Add(c.after), c.wall)); !got.Equal(c.want) {
			t.Errorf("look %d: it began at %v, want %v", i, got, c.want)
		}
	}
}

func TestInfoAfterTheClockIsSet(t *testing.T) {
	in("info has the right time of the start", t, func(t *testing.T) {
		r := one(t)
		go r.node.report.run(t.Context())
		l := collect(t.Context(), r.node.outbox)
		synctest.Wait()
		time.Sleep(2 * healthEvery)
		if n := count(l.take(), "info"); n != 0 {
			t.Fatalf("%d times info while the clock is as it was, want none", n)
		}
		b := r.node.report.started
		want := b.Time().Add(-clockSet / 2)
		b.wall.Store(&want) // as if the clock had been set back
		time.Sleep(2 * healthEvery)
		all := l.take()
		if n := count(all, "info"); n != 1 {
			t.Fatalf("%d times info, want 1", n)
		}
		if got, err := time.Parse(time.RFC3339, object(t, all, "info")["started"].(string)); err != nil || got.Sub(want).Abs() > time.Second {
			t.Errorf("started %v, %v, want %v", got, err, want)
		}
	})
}
