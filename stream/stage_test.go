package stream

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"edge/online"
	"edge/stream/codec"
	"edge/stream/mqtt"
	"edge/stream/signal"
)

const accP7 = "plant/p7/acc"

// signalsConfig is a node with one stream of two signals, vibration, for one model,
// bearing, which gets mean and max of a window of x.
func signalsConfig(set func(*codec.Stream)) (Config, ModelConfig) {
	cfg, m := testConfig()
	s := codec.DefaultStream()
	s.Topics, s.TopicTemplate, s.ID = []string{"plant/+/acc"}, "plant/{device}/acc", ""
	s.Stage.Signals = []string{"x", "y"}
	s.Stage.Window.Length, s.Stage.Window.Hop, s.Stage.Window.MinRows = signal.Span{Rows: 4}, signal.Span{Rows: 2}, 1
	s.Stage.Window.MaxGap = time.Minute
	s.Stage.Window.Of, s.Stage.Window.Features = []string{"x"}, signal.Choice{All: []string{"mean", "max"}}
	s.Features = []string{"x.mean", "x.max"}
	if set != nil {
		set(&s)
	}
	cfg.Streams = map[string]codec.Stream{"vibration": s}
	l := codec.DefaultLabels()
	l.Topics, l.TopicTemplate = []string{"plant/+/label"}, "plant/{device}/label"
	cfg.Labels = []codec.Labels{l}
	return cfg, m
}

// rowAt is a row of a second after 1000, with a label unless it is "".
func rowAt(second, x int, label string) string {
	if label != "" {
		label = fmt.Sprintf(`,"label":%q`, label)
	}
	return fmt.Sprintf(`{"ts":%d,"x":%d,"y":0%s}`, 1000+second, x, label)
}

// ids returns the ids of the predictions in the outbox.
func (r *rig) ids() (all []string) {
	for _, m := range r.published() {
		if strings.Contains(m.Topic, "/prediction") {
			p := gjson.ParseBytes(m.Payload)
			all = append(all, p.Get("id").String())
		}
	}
	return all
}

// windows returns the stored windows of the journal.
func (j *fakeJournal) windows() (all []online.Windows) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range j.commits {
		for _, w := range c.Windows {
			all = slices.DeleteFunc(all, func(o online.Windows) bool { return o.Stream == w.Stream })
			if len(w.State) > 0 {
				all = append(all, w)
			}
		}
	}
	return all
}

// restart stops a rig's node, as a new process would after an orderly stop.
func (r *rig) restart(cfg Config, m ModelConfig) *rig {
	r.t.Helper()
	r.stop()
	return r.begin(cfg, m)
}

// begin starts another node on the journal.
func (r *rig) begin(cfg Config, m ModelConfig) *rig {
	r.t.Helper()
	next := &rig{t: r.t, journal: r.journal, models: r.models}
	m.Waiting = r.journal.waiting(m.Name)
	next.node = newTestNode(r.t, cfg, Deps{Models: []ModelConfig{m}, Journal: r.journal, Windows: r.journal.windows()})
	next.reconnect(nil)
	next.start()
	return next
}

func TestWindowsBecomeSamples(t *testing.T) {
	in("a label of its rows is learnt, ids and times are the window's", t, func(t *testing.T) {
		cfg, m := signalsConfig(nil)
		r := newRig(t, newFakeJournal(), cfg, m)
		for i := range 6 {
			r.send(accP7, rowAt(i, i, "ok"))
		}
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1.5", "ok 3.5"})
		if len(r.acks()) != 6 {
			t.Errorf("acknowledged %q", r.acks())
		}
		var got []string
		for _, p := range r.published() {
			if p.Topic == "edge/n1/bearing/prediction/p7" {
				v := gjson.ParseBytes(p.Payload)
				got = append(got, v.Get("id").String()+" "+v.Get("ts").String()+" "+v.Get("seq").String())
			}
		}
		equal(t, "predictions", got, []string{"p7#1003000 1970-01-01T00:16:43.000Z 1", "p7#1005000 1970-01-01T00:16:45.000Z 2"})
		if s := r.node.Stats(); s.Streams["vibration"].Signals.Samples != 2 || s.Streams["vibration"].Signals.Rows != 6 {
			t.Errorf("counters %+v", s.Streams["vibration"].Signals)
		}
	})
	in("a label comes later by the id, over a restart", t, func(t *testing.T) {
		cfg, m := signalsConfig(nil)
		r := newRig(t, newFakeJournal(), cfg, m)
		for i := range 4 {
			r.send(accP7, rowAt(i, i, ""))
		}
		time.Sleep(time.Second)
		if p := r.journal.waiting("bearing"); len(p) != 1 || p[0].Device != "p7" || p[0].From != 1000e9 || p[0].To != 1003e9 {
			t.Fatalf("pending %+v", p)
		}
		r = r.restart(cfg, m)
		r.send("plant/p7/label", `{"id":"p7#1003000","label":"worn"}`)
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"worn 1.5"})
	})
	in("a missing feature is refused where on_missing is reject", t, func(t *testing.T) {
		cfg, m := signalsConfig(func(s *codec.Stream) {
			s.Stage.Derive = signal.Formulas{{Name: "p", Text: "log(x)"}}
			s.Stage.Window.Of = []string{"p"}
			s.Features = []string{"p.mean", "x"}
		})
		r := newRig(t, newFakeJournal(), cfg, m)
		for i := range 4 {
			r.send(accP7, rowAt(i, -1, "ok"))
		}
		time.Sleep(time.Second)
		equal(t, "rejects", r.rejects(), []string{"missing_feature"})
	})
	in("the refusal of a time names those that are read, and the key", t, func(t *testing.T) {
		cfg, m := signalsConfig(nil)
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(accP7, `{"ts":"22.11.2026 17:00:00","x":1,"y":0}`)
		time.Sleep(time.Second)
		for _, p := range r.published() {
			if p.Topic == "edge/n1/bearing/reject" && strings.Contains(string(p.Payload), `as 2026-11-22T17:00:00Z, nor Unix time in s, ms, µs or ns, from 1970 to 2199; time: \"\" of the stream takes that of the arrival`) {
				return
			}
		}
		t.Error("no such refusal")
	})
	in("a time that is none is refused, also one that some entries lack", t, func(t *testing.T) {
		cfg, m := signalsConfig(nil)
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(accP7, `{"ts":"yesterday","x":1,"y":0}`, `{"batch":[{"ts":1,"x":1,"y":0},{"x":1,"y":0}]}`, `{"ts":true,"x":1,"y":0}`, `{"ts":{},"x":1,"y":0}`,
			`{"ts":"`+strings.Repeat("1", 70)+`","x":1,"y":0}`, `{"ts":null,"x":1,"y":0}`)
		time.Sleep(time.Second)
		equal(t, "rejects", r.rejects(), []string{"malformed", "malformed", "malformed", "malformed", "malformed"})
	})
}

func TestDeferredRowsAreNotObserved(t *testing.T) {
	in("a row before its turn", t, func(t *testing.T) {
		cfg, m := signalsConfig(nil)
		r := newRig(t, newFakeJournal(), cfg, m)
		r.node.deferred.Push(&mqtt.Message{Topic: accP7, Payload: []byte(rowAt(0, 0, "")), Arrived: time.Now()}, nil)
		time.Sleep(time.Second)
		if s := r.node.Stats(); s.Observed != 0 || s.SinceMessage == 0 {
			t.Errorf("%d messages were answered, the latest came %v ago", s.Observed, s.SinceMessage)
		}
	})
}

// After a stop the clock waits for the rows that the broker has kept: windows and rows of held values are
// those of a node that was never away.
func TestClockWaitsForWhatTheBrokerKept(t *testing.T) {
	states := codec.DefaultLabels()
	states.Topics, states.Sticky = []string{"plant/state"}, true
	for name, set := range map[string]func(*codec.Stream){
		"windows": func(s *codec.Stream) {
			s.Stage.Window.Length, s.Stage.Window.Hop = signal.Span{Time: 8 * time.Second}, signal.Span{Time: 8 * time.Second}
		},
		"held values": func(s *codec.Stream) {
			s.Stage.Window, s.Stage.Hold, s.Features = codec.DefaultStream().Stage.Window, signal.Hold{Every: 2 * time.Second}, []string{"x", "y"}
		},
	} {
		in(name, t, func(t *testing.T) {
			learnt := func(away bool) []string {
				cfg, m := signalsConfig(set)
				cfg.Labels = append(cfg.Labels, states)
				r := newRig(t, newFakeJournal(), cfg, m)
				begin := time.Now().Truncate(time.Hour).Add(time.Hour)
				time.Sleep(time.Until(begin))
				var kept []string
				for i := range 40 {
					time.Sleep(time.Until(begin.Add(time.Duration(i) * time.Second)))
					row := fmt.Sprintf(`{"ts":%d,"x":%d,"y":0,"label":"ok"}`, time.Now().UnixNano(), i)
					switch {
					case away && i == 10:
						r.stop()
						fallthrough
					case away && i > 10 && i < 35:
						kept = append(kept, row)
						continue
					case away && i == 35:
						began := time.Now()
						next := &rig{t: t, journal: r.journal, models: r.models}
						m.Waiting = r.journal.waiting(m.Name)
						next.node = newTestNode(t, cfg, Deps{Models: []ModelConfig{m}, Journal: r.journal, Windows: r.journal.windows()})
						next.node.worker.awaited = func() time.Duration { return max(0, 2*time.Second-time.Since(began)) }
						next.reconnect(nil)
						next.start()
						r = next
						time.Sleep(time.Second / 2)  // before the broker sends
						r.send("plant/state", "run") // the broker keeps it, too
						r.send(accP7, kept...)
					case i == 10:
						r.send("plant/state", "run")
					}
					r.send(accP7, row)
				}
				time.Sleep(time.Second)
				r.stop()
				return r.models["bearing"].learnt()
			}
			want := learnt(false)
			if len(want) < 4 {
				t.Fatalf("learnt %q", want)
			}
			equal(t, "learnt after a stop", learnt(true), want)
		})
	}
}

func TestClockClosesWindows(t *testing.T) {
	byTime := func(s *codec.Stream) {
		s.Stage.Window.Length, s.Stage.Window.Hop = signal.Span{Time: 4 * time.Second}, signal.Span{Time: 4 * time.Second}
	}
	in("a silent device's window ends by the clock, once, and a timer runs only until then", t, func(t *testing.T) {
		cfg, m := signalsConfig(byTime)
		r := newRig(t, newFakeJournal(), cfg, m)
		for i := range 5 {
			r.send(accP7, fmt.Sprintf(`{"x":%d,"y":0,"label":"ok"}`, i))
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		got := r.models["bearing"].learnt()
		equal(t, "learnt", got, []string{"ok 1.5", "ok 4"})
		if n := len(r.ids()); n != 2 {
			t.Errorf("%d predictions", n)
		}
		r.stop()
		if due := r.node.worker.stages[0].Due(); due != 0 {
			t.Errorf("the clock is due at %d", due)
		}
	})
	in("the same window comes from the clock and from a later row", t, func(t *testing.T) {
		var ids [2][]string
		for i, wait := range []time.Duration{0, time.Minute} {
			cfg, m := signalsConfig(byTime)
			r := newRig(t, newFakeJournal(), cfg, m)
			now := time.Now().Truncate(time.Hour).Add(time.Hour)
			time.Sleep(time.Until(now))
			for range 4 {
				r.send(accP7, fmt.Sprintf(`{"ts":%d,"x":1,"y":0}`, time.Now().UnixNano()))
				time.Sleep(time.Second)
			}
			time.Sleep(wait)
			r.send(accP7, fmt.Sprintf(`{"ts":%d,"x":1,"y":0}`, time.Now().UnixNano()))
			time.Sleep(time.Millisecond)
			for _, id := range r.ids() {
				ids[i] = append(ids[i], strings.Replace(id, fmt.Sprint(now.Add(4*time.Second).UnixMilli()), "end", 1))
			}
			r.stop()
		}
		equal(t, "ids", ids[0], []string{"p7@end"})
		equal(t, "ids with silence", ids[1], ids[0])
	})
}

func TestRepeatedRows(t *testing.T) {
	in("rows with times are late, rows without are known by their flag", t, func(t *testing.T) {
		for _, own := range []bool{true, false} {
			cfg, m := signalsConfig(nil)
			r := newRig(t, newFakeJournal(), cfg, m)
			row := func(i int) string {
				if own {
					return rowAt(i, i, "ok")
				}
				return fmt.Sprintf(`{"x":%d,"y":0,"label":"ok"}`, i)
			}
			for i := range 3 {
				r.send(accP7, row(i))
			}
			for i := range 3 { // over another connection: the acknowledgements were lost
				if i == 0 {
					time.Sleep(time.Second)
					r.reconnect(&mqtt.Cursor{})
				}
				r.sendMessage(&mqtt.Message{Topic: accP7, Payload: []byte(row(i)), QoS: 1, Dup: true})
			}
			r.send(accP7, row(3))
			time.Sleep(time.Second)
			equal(t, fmt.Sprintf("learnt, own times %v", own), r.models["bearing"].learnt(), []string{"ok 1.5"})
			r.stop()
		}
	})
	in("a window that a crash made form again teaches once", t, func(t *testing.T) {
		cfg, m := signalsConfig(nil)
		r := newRig(t, newFakeJournal(), cfg, m)
		for i := range 4 {
			r.send(accP7, rowAt(i, i, "ok"))
		}
		time.Sleep(time.Second)
		r.stop()
		for _, c := range r.journal.commits {
			c.Windows = nil // a crash stores none
		}
		r = r.begin(cfg, m)
		for i := range 4 {
			r.sendMessage(&mqtt.Message{Topic: accP7, Payload: []byte(rowAt(i, i, "ok")), QoS: 1, Dup: true})
		}
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1.5"})
		equal(t, "predicted again", r.ids(), []string{"p7#1003000"})
	})
	in("a sample is committed although its connection ended before the cursor was known", t, func(t *testing.T) {
		cfg, m := signalsConfig(nil)
		r := newRig(t, newFakeJournal(), cfg, m)
		r.conn = newFakeOrigin() // whose cursor never comes
		for i := range 4 {
			r.send(accP7, rowAt(i, i, "ok"))
		}
		time.Sleep(time.Second)
		close(r.conn.lost)
		time.Sleep(time.Second)
		r.reconnect(&mqtt.Cursor{})
		for i := range 4 {
			r.sendMessage(&mqtt.Message{Topic: accP7, Payload: []byte(rowAt(i, i, "ok")), QoS: 1, Dup: true})
		}
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1.5"})
	})
	in("a window of one message has the guarantees of a sample", t, func(t *testing.T) {
		cfg, m := signalsConfig(func(s *codec.Stream) {
			s.Stage.Window.Length, s.Stage.Window.Hop = signal.Span{Message: true}, signal.Span{}
		})
		r := newRig(t, newFakeJournal(), cfg, m)
		batch := `{"batch":[{"x":1,"y":0,"label":"ok"},{"x":3,"y":0,"label":"ok"}]}`
		r.send(accP7, batch, batch) // two readings without a time are two samples
		time.Sleep(time.Second)
		r.reconnect(&mqtt.Cursor{})
		r.sendMessage(&mqtt.Message{ID: 2, Topic: accP7, Payload: []byte(batch), QoS: 1, Dup: true})
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 2", "ok 2"})
	})
}

// Long: cases with their messages.
func TestWindowsOverAnOrderlyStop(t *testing.T) {
	in("go on, and are removed with the first row", t, func(t *testing.T) {
		cfg, m := signalsConfig(nil)
		r := newRig(t, newFakeJournal(), cfg, m)
		for i := range 3 {
			r.send(accP7, rowAt(i, i, "ok"))
		}
		time.Sleep(time.Second)
		if w := r.journal.windows(); len(w) > 0 {
			t.Errorf("windows are stored while the node runs: %v", w)
		}
		r = r.restart(cfg, m)
		if w := r.journal.windows(); len(w) != 1 {
			t.Fatalf("stored: %v", w)
		}
		r = r.restart(cfg, m) // without a row: they stay
		r.send(accP7, rowAt(3, 3, "ok"))
		time.Sleep(time.Second)
		if w := r.journal.windows(); len(w) > 0 || len(r.acks()) != 1 {
			t.Errorf("stored after a row was acknowledged: %d, %q", len(w), r.acks())
		}
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1.5"})
	})
	in("are removed before the acknowledgement of a row", t, func(t *testing.T) {
		cfg, m := signalsConfig(nil)
		r := newRig(t, newFakeJournal(), cfg, m)
		r.send(accP7, rowAt(0, 0, ""))
		time.Sleep(time.Second)
		r = r.restart(cfg, m)
		r.journal.set(errDiskFull, nil)
		r.send(accP7, rowAt(1, 1, ""))
		time.Sleep(time.Minute)
		if len(r.acks()) > 0 {
			t.Error("a row is acknowledged while the old windows are stored")
		}
		r.journal.set(nil, nil)
		time.Sleep(time.Minute)
		if len(r.acks()) != 1 || len(r.journal.windows()) > 0 {
			t.Errorf("acknowledged %q, stored %d", r.acks(), len(r.journal.windows()))
		}
	})
	in("a reload passes them on, unless their configuration differs", t, func(t *testing.T) {
		cfg, m := signalsConfig(nil)
		r := newRig(t, newFakeJournal(), cfg, m)
		for i := range 3 {
			r.send(accP7, rowAt(i, i, "ok"))
		}
		time.Sleep(time.Second)
		r = r.handOver(cfg, m)
		r.reconnect(nil)
		r.send(accP7, rowAt(3, 3, "ok"))
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1.5"})
		other, m := signalsConfig(func(s *codec.Stream) {
			s.Stage.Window.Length, s.Stage.Window.Hop = signal.Span{Rows: 3}, signal.Span{Rows: 1}
		})
		m.Model = r.models["bearing"]
		r = r.handOver(other, m)
		r.reconnect(nil)
		for i := range 3 {
			r.send(accP7, rowAt(4+i, 10, "ok"))
		}
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 1.5", "ok 10"})
		if len(r.journal.windows()) > 0 {
			t.Error("the windows of the old configuration are still stored")
		}
	})
	in("are given up where the node could not commit all", t, func(t *testing.T) {
		cfg, m := signalsConfig(nil)
		r := newRig(t, newFakeJournal(), cfg, m)
		for i := range 3 {
			r.send(accP7, rowAt(i, i, "ok"))
		}
		time.Sleep(time.Second)
		r.journal.set(errDiskFull, nil)
		r.send(accP7, rowAt(3, 3, "ok"))
		time.Sleep(time.Second)
		r.stop()
		r.journal.set(nil, nil)
		if len(r.acks()) != 3 || len(r.journal.windows()) > 0 {
			t.Errorf("acknowledged %q, stored %d", r.acks(), len(r.journal.windows()))
		}
		r = r.begin(cfg, m)
		for i := range 4 { // the unacknowledged row, and what follows
			r.send(accP7, rowAt(3+i, 3+i, "ok"))
		}
		time.Sleep(time.Second)
		equal(t, "learnt", r.models["bearing"].learnt(), []string{"ok 4.5"})
	})
}

// A stream with more devices than window.devices is told once an hour, not for each device.
func TestMoreDevicesThanWindows(t *testing.T) {
	for most, want := range map[int]int{2: 0, 1: 1} {
		in(fmt.Sprint(most), t, func(t *testing.T) {
			cfg, m := signalsConfig(func(s *codec.Stream) { s.Stage.Window.Devices = most })
			var log lockedBuffer
			r := newRig(t, newFakeJournal(), cfg, m)
			r.node.report.log = slog.New(slog.NewTextHandler(&log, nil))
			for range 3 {
				r.send(accP7, `{"x":1,"y":2}`)
				r.send(strings.Replace(accP7, "p7", "p8", 1), `{"x":1,"y":2}`)
				time.Sleep(time.Second)
			}
			if text := string(log.tail(1 << 16)); strings.Count(text, "more devices than window.devices") != want {
				t.Errorf("want %d lines:\n%s", want, text)
			}
		})
	}
}
