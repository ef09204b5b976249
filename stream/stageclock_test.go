package stream

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"edge/stream/codec"
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
