package stream

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"edge/stream/codec"
	"edge/stream/signal"
)

// Rows whose zone or clock is wrong are told in the log, old rows are not.
func TestClocksOfSenders(t *testing.T) {
	const zoneless, utc, unix = "2006-01-02T15:04:05", "2006-01-02T15:04:05Z", "unix"
	for _, c := range []struct {
		layout string
		ahead  time.Duration
		want   string // in the log; "" if it has no line
	}{
		{zoneless, 0, ""},
		{zoneless, -50 * time.Second, ""},
		{zoneless, time.Hour, "set time_zone"},
		{zoneless, -5*time.Hour - 20*time.Second, "ahead=-5h0m20s"},
		{zoneless, 5*time.Hour + 45*time.Minute, "set time_zone"},
		{zoneless, -7 * time.Minute, ""},
		{zoneless, -24 * 90 * time.Hour, ""},
		{zoneless, 7 * time.Minute, "set the sender's clock"},
		{utc, time.Hour, "set the sender's clock"},
		{utc, -time.Hour, ""},
		{unix, time.Hour, "set the sender's clock"},
		{unix, -time.Hour, ""},
		{unix, 0, ""},
		{unix, -25 * 365 * 24 * time.Hour, "a time since the sender's start counts as seconds"},
	} {
		in(fmt.Sprint(c.layout, " ", c.ahead), t, func(t *testing.T) {
			cfg, m := signalsConfig(func(s *codec.Stream) { s.Stage.TimeZone = "UTC" })
			var log lockedBuffer
			r := newRig(t, newFakeJournal(), cfg, m)
			r.node.report.log = slog.New(slog.NewTextHandler(&log, nil))
			for range 3 {
				at := time.Now().UTC().Add(c.ahead)
				text := at.Format(`"` + c.layout + `"`)
				if c.layout == unix {
					text = fmt.Sprint(at.Unix())
				}
				r.send(accP7, fmt.Sprintf(`{"ts":%s,"x":1,"y":2}`, text))
				time.Sleep(time.Second)
			}
			lines := strings.Count(string(log.tail(1<<16)), "not near its arrival")
			if text := string(log.tail(1 << 16)); lines != min(1, len(c.want)) || !strings.Contains(text, c.want) {
				t.Errorf("%d lines, want one with %q, or none if that is empty:\n%s", lines, c.want, text)
			}
		})
	}
}

// A payload without the time that the configuration names is told once, one without ts is not.
func TestPayloadsWithoutTheirTime(t *testing.T) {
	for name, want := range map[string]int{"ts": 0, "": 0, "Time": 1} {
		in(name, t, func(t *testing.T) {
			cfg, m := signalsConfig(func(s *codec.Stream) { s.Time = name })
			var log lockedBuffer
			r := newRig(t, newFakeJournal(), cfg, m)
			r.node.report.log = slog.New(slog.NewTextHandler(&log, nil))
			r.send(accP7, `{"time":1,"x":1,"y":2}`, `{"time":2,"x":1,"y":2}`)
			time.Sleep(time.Second)
			if text := string(log.tail(1 << 16)); strings.Count(text, "has no time where") != want {
				t.Errorf("want %d lines:\n%s", want, text)
			}
		})
	}
}

// A time within an object, as of MongoDB, needs a path, which the refusal tells.
func TestTimesInObjects(t *testing.T) {
	for name, want := range map[string]string{"ts": "the path in time of the stream goes on into an object, as ts.$date does", "ts.$date": ""} {
		in(name, t, func(t *testing.T) {
			cfg, m := signalsConfig(func(s *codec.Stream) { s.Time = name })
			var log lockedBuffer
			r := newRig(t, newFakeJournal(), cfg, m)
			r.node.report.log = slog.New(slog.NewTextHandler(&log, nil))
			r.send(accP7, `{"ts":{"$date":"2026-11-22T17:00:00Z"},"x":1,"y":2}`, `{"ts":{"$date":1795363501000},"x":1,"y":2}`)
			time.Sleep(time.Second)
			if text := string(log.tail(1 << 16)); strings.Contains(text, "refused") != (want != "") || !strings.Contains(text, want) {
				t.Errorf("want %q:\n%s", want, text)
			}
		})
	}
}

// A wall clock that is put forward makes no rows of held values, and is told from an outage.
func TestHeldRowsWhenTheWallClockJumps(t *testing.T) {
	start := time.Now()
	start = start.Add(start.Round(0).Truncate(time.Minute).Add(time.Second).Sub(start.Round(0)))
	for _, c := range []struct {
		name          string
		elapsed, wall time.Duration
		rows          int // that the clock makes then
	}{
		{"put forward after 10 s", 10 * time.Second, 8 * time.Hour, 0},
		{"put forward by years", 10 * time.Second, 20 * 365 * 24 * time.Hour, 0},
		{"after an outage", 8 * time.Hour, 8 * time.Hour, 479},
		{"adjusted by half a minute", 10 * time.Second, 40 * time.Second, 0},
		{"set back", 10 * time.Minute, -time.Hour, 0},
	} {
		in(c.name, t, func(t *testing.T) {
			cfg, m := signalsConfig(func(s *codec.Stream) {
				s.Stage.Window, s.Stage.Hold, s.Features = codec.DefaultStream().Stage.Window, signal.Hold{Every: time.Minute}, []string{"x", "y"}
			})
			r := newRig(t, newFakeJournal(), cfg, m)
			r.stop() // its worker is ours now
			w := r.node.worker
			w.seen = start.Add(-time.Second)
			last := start
			for i := range 3 {
				last = start.Add(time.Duration(i) * time.Minute)
				w.look(last)
				w.stages[0].Take(&signal.Message{Device: "p7", Arrived: signal.FromTime(last), Rows: []signal.Row{{Time: signal.FromTime(last), X: []float64{1, 2}}}})
			}
			now := setWall(last.Add(c.elapsed), last.Add(c.wall))
			w.look(now)
			if n := len(w.stages[0].Clock(signal.FromTime(now))); n != c.rows {
				t.Errorf("%d rows, want %d", n, c.rows)
			}
		})
	}
}
