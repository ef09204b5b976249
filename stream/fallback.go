package stream

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"edge/stream/codec"
	"edge/stream/mqtt"
	"edge/stream/topic"
)

const (
	fallbackAfter  = time.Second // of failed commits; the broker's window bridges shorter outages
	deferredQueue  = 256         // capacity in messages; when full, the oldest is discarded
	fallbackSuffix = "-observer"
)

// fallback is a second subscription, which receives the streams while the journal
// cannot be written. The broker sends no more messages of QoS 1 once its window is full
// of unacknowledged ones; so a second connection with a clean session subscribes at QoS
// 0. Its messages are answered and not learnt: the broker keeps the same messages for
// the first connection, where they are answered again and learnt once the journal works.
type fallback struct {
	client   *mqtt.Client
	degraded *atomic.Bool
	changed  <-chan struct{} // has an element when degraded has changed
	hush     *atomic.Bool    // a connection of a moment ago was logged
}

// newFallback returns nil if a fallback is useless: QoS 0 has no window, and a message
// of a shared subscription would be taken from other clients. changed has an element when
// the state of the journal has changed.
func (n *Node) newFallback(changed <-chan struct{}) *fallback {
	var filters []string
	for _, src := range n.sources {
		if len(src.feeds) == 0 || src.stage != nil { // rows that it brought would come again
			continue
		}
		for _, f := range src.filters {
			if _, shared := topic.Unshare(f); !shared {
				filters = append(filters, f)
			}
		}
	}
	if n.cfg.MQTT.QoS == 0 || len(filters) == 0 {
		return nil
	}
	cfg := n.cfg.MQTT
	cfg.QoS, cfg.PersistentSession = 0, false
	filters, _ = topic.Subscriptions(filters)
	hush := new(atomic.Bool)
	c := mqtt.NewClient(mqtt.Options{
		Config: cfg, ID: n.client.ID + fallbackSuffix, Filters: filters, MaxPayload: n.client.MaxPayload, Queue: n.deferred, Dial: n.client.Dial,
		Counters: &n.counts.network, Dropped: &n.counts.network.DeferredDropped, Log: slog.New(&hushed{n.log.Handler(), hush}),
		Event: n.client.Event, Serve: func(context.Context, *mqtt.Conn) {},
	})
	return &fallback{client: c, degraded: &n.counts.degraded, changed: changed, hush: hush}
}

// hushed drops the messages of a log up to warnings while hush is set.
type hushed struct {
	slog.Handler
	hush *atomic.Bool
}

func (h *hushed) Enabled(ctx context.Context, level slog.Level) bool {
	return (level > slog.LevelWarn || !h.hush.Load()) && h.Handler.Enabled(ctx, level)
}

// run subscribes while the journal cannot be written, until ctx ends. It logs a connection if
// none was needed for calmAfter: on a slow disk each label is an outage.
func (f *fallback) run(ctx context.Context) {
	if f == nil {
		return
	}
	var calm time.Time
	for {
		var lasts <-chan time.Time
		if f.degraded.Load() {
			lasts = time.After(fallbackAfter)
		}
		select {
		case <-f.changed:
			continue
		case <-ctx.Done():
			return
		case <-lasts:
		}
		f.hush.Store(time.Now().Before(calm))
		f.client.Log.Warn("a second connection subscribes to the streams, so that they are answered while the journal fails", "client_id", f.client.ID)
		observing, end := context.WithCancel(ctx)
		var life sync.WaitGroup
		life.Go(func() { f.client.Run(observing) })
		for f.degraded.Load() && ctx.Err() == nil {
			select {
			case <-f.changed:
			case <-ctx.Done():
			}
		}
		end()
		life.Wait()
		calm = time.Now().Add(calmAfter)
	}
}

// answerDeferred answers messages that will come again. They are not learnt, and
// refusals are reported when they come again.
func (w *worker) answerDeferred(ctx context.Context) {
	for msg, ok := w.deferred.Pop(); ok && ctx.Err() == nil; msg, ok = w.deferred.Pop() {
		w.routes = w.router.Find(w.routes[:0], msg.Topic)
		for _, src := range w.routes {
			w.noteArrival(src, msg)
			if len(src.feeds) == 0 || src.stage != nil { // its rows come again
				continue
			}
			it := &item{msg: msg, answerOnly: true}
			if _ = refusePanic(w.read, it, src); len(it.examples) > 0 {
				w.counts.observed.Add(1)
			}
		}
		msg.Free()
	}
	w.batch.reset() // as handleReady does
}

// unlabelled removes all labels.
func unlabelled(readings []codec.Reading) []codec.Reading {
	readings = slices.DeleteFunc(readings, func(r codec.Reading) bool { return r.X == nil })
	for i := range readings {
		readings[i].Label = ""
	}
	return readings
}
