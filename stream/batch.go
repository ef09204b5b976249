package stream

import (
	"context"

	"edge/model"
	"edge/online"
	"edge/stream/codec"
)

const (
	maxBatchMessages = 16       // largest number of messages that are popped at once
	maxBatchBytes    = 64 << 10 // of their payloads, beyond which no other one is
	maxBatchSamples  = 32       // largest number of their samples that are predicted together
)

// predecoded is the content of a message that was decoded before its turn.
type predecoded struct {
	src      *source // source of the decoder; nil: not decoded yet
	readings []codec.Reading
	row      int // of the first reading in the batch; −1: not in the batch
}

// batch is a set of samples that one model predicts together, so that they share
// matrix products (model.Posterior.Load).
type batch struct {
	by   *modelState // nil: the batch is empty
	post *model.Posterior
	ws   *model.Workspace

	readers *online.Readers // counts the worker while it has a snapshot
	x       []float64       // rows×D
	rows    int
}

// handleReady handles the messages in the ring, samples of one model in a batch. If ctx ends
// meanwhile, the rest of them are left for the broker to send again: each may take long.
func (w *worker) handleReady(ctx context.Context) {
	w.ready = w.ready[:0]
	for bytes := 0; len(w.ready) < maxBatchMessages && bytes < maxBatchBytes; {
		msg, ok := w.ring.Pop()
		if !ok {
			break
		}
		w.ready = append(w.ready, newItem(w.items, msg))
		bytes += len(msg.Payload)
	}
	w.decodeBatch(ctx)
	for i, it := range w.ready {
		w.ready[i] = nil
		if ctx.Err() == nil {
			w.handle(it)
		}
	}
	w.batch.reset() // keeps no posterior alive until the next message
}

// decodeBatch decodes several messages before their turn, and computes the common
// part of the predictions for the first model that they are for.
func (w *worker) decodeBatch(ctx context.Context) {
	b := &w.batch
	b.reset()
	if len(w.ready) < 2 {
		return
	}
	for _, it := range w.ready {
		if ctx.Err() != nil {
			return
		}
		if err := w.predecode(it); err != nil {
			it.predecoded.src = nil // the message is refused in its turn
		}
	}
	b.load()
}

// predecode decodes a message if exactly one source receives it.
func (w *worker) predecode(it *item) (err error) {
	defer online.Recover(&err)
	if it.msg.Attached != nil {
		return nil
	}
	if w.routes = w.router.Find(w.routes[:0], it.msg.Topic); len(w.routes) != 1 {
		return nil
	}
	src := w.routes[0]
	if src.handle != nil || src.joiner != nil || src.stage != nil || len(src.feeds) == 0 || it.msg.Retained && !src.allowRetained {
		return nil
	}
	readings, err := src.decoder.DecodeTo(&it.scratch, it.msg.Payload)
	if err != nil {
		return err
	}
	it.predecoded = predecoded{src: src, readings: readings, row: w.batch.add(src, readings)}
	return nil
}

func (b *batch) reset() { b.by, b.post, b.rows, b.x = nil, nil, 0, b.x[:0] }

// add adds samples, and returns the row of the first; −1 if some of them cannot be
// predicted together with the earlier ones.
func (b *batch) add(src *source, readings []codec.Reading) int {
	f := src.feeds[0]
	if b.by == nil {
		if b.post = f.to.Model.Snapshot(); !b.post.Built() {
			return -1
		}
		b.by = f.to
	}
	if b.by != f.to || f.pick != nil || b.rows+len(readings) > maxBatchSamples {
		return -1
	}
	before := len(b.x)
	for i := range readings {
		x := readings[i].X
		if x == nil || b.post.CheckInput(x) != nil || missing(x) > 0 { // missing features may be imputed
			b.x = b.x[:before]
			return -1
		}
		b.x = append(b.x, x...)
	}
	b.rows += len(readings)
	return b.rows - len(readings)
}

// load computes the common part of the predictions.
func (b *batch) load() {
	if b.by == nil || b.rows < 2 || b.post.Load(b.x, b.rows, b.ws) != nil {
		b.by = nil
	}
}

// predict predicts a sample, at a row of the batch or −1. It also returns the
// workspace that it used.
func (w *worker) predict(dst, x []float64, m *modelState, post *model.Posterior, ahead, row int) (probs []float64, novelty float64, ws *model.Workspace, err error) {
	if b := &w.batch; row >= 0 && b.by == m && b.post.SameInputs(post) {
		probs, novelty = post.AnswerTo(dst, row, ahead, b.ws)
		return probs, novelty, b.ws, nil
	}
	probs, novelty, err = post.PredictNextTo(dst, x, ahead, w.ws)
	return probs, novelty, w.ws, err
}
