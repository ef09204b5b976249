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
	fallbackAfter   = time.Second // of a journal that cannot be written; shorter outages fit into the broker's window
	fallbackPolling = 100 * time.Millisecond
	deferredQueue   = 256 // messages that wait for such an answer; full, the oldest goes
	fallbackSuffix  = "-observer"
)

// observer hears what comes while the journal cannot be written. The broker
// sends no more of QoS 1 once its window is full of messages that wait for their
// acknowledgement; so a second connection, whose session ends with it, asks for
// the streams at QoS 0. What it brings is answered and teaches nothing: the
// broker keeps the same messages for the first connection, where they have
// their turn, and another answer, once the journal works again.
type fallback struct {
	client   *mqtt.Client
	degraded *atomic.Bool
	log      *slog.Logger
}

// newObserver returns nil where there is nothing to observe: a broker keeps no
// window of QoS 0, and a message of a shared subscription would be taken from
// others.
func (n *Node) newFallback() *fallback {
	var filters []string
	for _, src := range n.sources {
		if len(src.feeds) == 0 {
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
	c := mqtt.NewClient(mqtt.Options{
		Config: cfg, ID: n.client.ID + fallbackSuffix, Filters: filters, MaxPayload: n.client.MaxPayload, Queue: n.deferred, Dial: n.client.Dial,
		Counters: &n.counts.network, Dropped: &n.counts.network.DeferredDropped, Log: n.log,
		Event: n.client.Event, Serve: func(context.Context, *mqtt.Conn) {},
	})
	return &fallback{client: c, degraded: &n.counts.degraded, log: n.log}
}

// run observes whenever the journal cannot be written, until ctx ends.
func (o *fallback) run(ctx context.Context) {
	if o == nil {
		return
	}
	for {
		since := time.Now()
		for time.Since(since) < fallbackAfter {
			if !sleep(ctx, fallbackPolling) {
				return
			}
			if !o.degraded.Load() {
				since = time.Now()
			}
		}
		o.log.Warn("a second connection asks for the streams, so that they are answered while nothing can be acknowledged", "client_id", o.client.ID)
		observing, end := context.WithCancel(ctx)
		var life sync.WaitGroup
		life.Go(func() { o.client.Run(observing) })
		for o.degraded.Load() && sleep(ctx, fallbackPolling) {
		}
		end()
		life.Wait()
	}
}

// sleep reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// observe answers what will come again. Nobody learns from it, and what is
// refused is reported when it does.
func (w *worker) answerDeferred() {
	for msg, ok := w.deferred.Pop(); ok; msg, ok = w.deferred.Pop() {
		w.routes = w.router.Find(w.routes[:0], msg.Topic)
		for _, src := range w.routes {
			if len(src.feeds) > 0 && refusePanic(w.read, &item{msg: msg, answerOnly: true}, src) == nil {
				w.counts.observed.Add(1)
			}
		}
		msg.Free()
	}
}

// unlabelled drops what could teach.
func unlabelled(readings []codec.Reading) []codec.Reading {
	readings = slices.DeleteFunc(readings, func(r codec.Reading) bool { return r.X == nil })
	for i := range readings {
		readings[i].Label = ""
	}
	return readings
}
