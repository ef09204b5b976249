package stream

import (
	"strings"
	"time"

	"edge/stream/codec"
	"edge/stream/mqtt"
	"edge/stream/signal"
)

// stageClock is the timer of the worker's stages. It waits for the messages that the broker has kept
// while the node was away. Otherwise windows would miss their rows, and held values would be too old.
type stageClock struct {
	stages  []*stage
	awaited func() time.Duration // for how long that may come; nil: it does not
	timer   *time.Timer
	seen    time.Time // latest reading of the clock
	armed   int64     // moment of the timer, in ns since 1970; 0: it does not run
}

// next returns the channel of the timer, nil if no stage waits for the clock.
func (c *stageClock) next() <-chan time.Time {
	due := int64(0)
	for _, st := range c.stages {
		if d := st.Due(); d != 0 && (due == 0 || d < due) {
			due = d
		}
	}
	switch wait := max(time.Until(signal.ToTime(due)), c.away()); {
	case due == 0:
		return nil
	case c.timer == nil:
		c.timer = time.NewTimer(wait)
	case due != c.armed:
		c.timer.Reset(wait)
	}
	c.armed = due
	return c.timer.C
}

func (c *stageClock) away() time.Duration {
	if c.awaited == nil {
		return 0
	}
	return c.awaited()
}

// tick makes the samples that only the passing of time completes. All messages that have
// arrived were handled before.
func (w *worker) tick() {
	w.armed = 0
	if w.away() > 0 {
		return
	}
	now := time.Now()
	w.look(now)
	for _, st := range w.stages {
		if due := st.Due(); due == 0 || due > signal.FromTime(now) {
			continue
		}
		it := newItem(w.items, ownMessage(now))
		err := refusePanic(func(it *item, _ *source) error {
			st.touch(it)
			w.predictSamples(it, st, st.Clock(signal.FromTime(now)))
			return nil
		}, it, st.of)
		if err != nil {
			w.refuse(it, st.of, err)
		}
		w.forward(it)
	}
}

// ownMessage returns a message for samples that no message of the broker completed.
func ownMessage(now time.Time) *mqtt.Message { return &mqtt.Message{Arrived: now, Ack: func() {}} }

// shortestJump is the least progress of the wall clock beyond the monotonic one with which it was put forward.
const shortestJump = time.Minute

// look compares a reading of the clock with the one before, and adapts the stages to a wall clock that was
// put forward meanwhile: by NTP after a start without a clock that runs on, or while the machine slept.
// In an outage the monotonic clock goes on as well.
func (w *worker) look(now time.Time) {
	elapsed := now.Sub(w.seen)
	if elapsed <= 0 {
		return
	}
	by := time.Duration(signal.FromTime(now)-signal.FromTime(w.seen)) - elapsed
	if w.seen = now; by < shortestJump {
		return
	}
	for _, st := range w.stages {
		w.report.log.Info("the clock was put forward: rows without times go on at the new time", "stream", st.of.name, "by", by.Round(time.Second))
		st.PutForward(signal.FromTime(now), int64(by))
	}
}

// checkTime warns of a row whose time is wrong, or is not at the configured path.
func (w *worker) checkTime(src *source, msg *mqtt.Message, r *codec.Reading) {
	st := src.stage
	switch path := src.decoder.NamedTime(); {
	case r.RawTime != "":
		w.checkClock(st, msg, r)
	case path != "" && !st.warned:
		st.warned = true
		w.report.log.Warn("a payload has no time where the configuration names it, so that the row has the time of its arrival; this is told once", "stream", st.of.name, "topic", shortTopic(msg), "time", path)
	}
}

const (
	mostAhead = time.Minute      // of a row's time before its arrival, of a clock that is right
	zoneUnit  = 15 * time.Minute // zones differ by multiples of it
	zonesMost = 26 * time.Hour   // the largest difference of two zones

	firstClock = 10 * 365 * 24 * time.Hour // since 1970: earlier times are those since the start of a sender
)

// checkClock warns, once an hour for each stream, of a row with a time that only a wrong clock or
// zone explains: it is ahead of its arrival, or has no zone and is behind by the difference of two
// zones, or is one since the start of the sender. Other times behind their arrival are those of old rows.
func (w *worker) checkClock(st *stage, msg *mqtt.Message, r *codec.Reading) {
	rows := st.messages[len(st.messages)-1].Rows
	t := rows[len(rows)-1].Time + int64(r.Back)
	ahead := time.Duration(t - signal.FromTime(msg.Arrived))
	zones := ahead.Round(zoneUnit)
	byZones := zones != 0 && zones.Abs() <= zonesMost && (ahead-zones).Abs() <= mostAhead
	started := t < int64(firstClock)
	if ahead <= mostAhead && !byZones && !started {
		return
	}
	other, _ := signal.ParseTime(r.RawTime, time.FixedZone("", int(zonesMost.Seconds())))
	zoneless := byZones && other != t // the text has no zone
	if ahead < 0 && !zoneless && !started || !st.clocks.allow(msg.Arrived) {
		return
	}
	advice := "set the sender's clock, or time: \"\" for the times of arrival"
	switch {
	case started:
		advice = "a time since the sender's start counts as seconds since 1970, also one in ms: set its clock, or time: \"\" for the times of arrival"
	case zoneless:
		advice = "set time_zone of the stream to the sender's zone, unless the row is old"
	}
	w.report.log.Warn("the time of a row is not near its arrival; more of this stream in the next hour are not logged", "stream", st.of.name, "topic", shortTopic(msg),
		"time", strings.Trim(r.RawTime, `"`), "time_zone", st.zone.String(), "ahead", ahead.Round(time.Second), "advice", advice)
}
