package stream

import (
	"edge/model"
	"edge/online"
	"edge/stream/codec"
)

const (
	together  = 16 // messages that are taken from the ring at once, at most
	sharedMax = 32 // their samples that are predicted together, at most
)

// early is what a message says that was decoded before its turn.
type early struct {
	src      *source // whose decoder it was; nil: none
	readings []codec.Reading
	row      int // of the first reading in shared; −1: they are not there
}

// shared are samples that wait for the predictions of one model, which share
// products of matrices (model.Posterior.Load).
type shared struct {
	by   *modelState // nil: there are none
	post *model.Posterior
	ws   *model.Workspace
	x    []float64 // rows×D
	rows int
}

// next answers what waits in the ring, some of it together.
func (w *worker) next() {
	w.turn = w.turn[:0]
	for len(w.turn) < together {
		msg, ok := w.ring.Pop()
		if !ok {
			break
		}
		w.turn = append(w.turn, newItem(w.items, msg))
	}
	w.share()
	for i, it := range w.turn {
		w.turn[i] = nil
		w.handle(it)
	}
	w.shared.begin() // which keeps no posterior alive, when the next message may be far
}

// share decodes the messages whose turn it is, if they are several, and predicts
// what it can of the first model that they are for.
func (w *worker) share() {
	s := &w.shared
	s.begin()
	if len(w.turn) < 2 {
		return
	}
	for _, it := range w.turn {
		if err := w.decodeEarly(it); err != nil {
			it.early.src = nil // its turn will tell
		}
	}
	s.load()
}

// decodeEarly decodes a message for the only source that asks for it.
func (w *worker) decodeEarly(it *item) (err error) {
	defer online.Recover(&err)
	if it.msg.Attached != nil {
		return nil
	}
	if w.routes = w.router.Find(w.routes[:0], it.msg.Topic); len(w.routes) != 1 {
		return nil
	}
	src := w.routes[0]
	if src.heed != nil || src.gatherer != nil || len(src.feeds) == 0 || it.msg.Retained && !src.allowRetained {
		return nil
	}
	readings, err := src.decoder.DecodeTo(&it.scratch, it.msg.Payload)
	if err != nil {
		return err
	}
	it.early = early{src: src, readings: readings, row: w.shared.take(src, readings)}
	return nil
}

func (s *shared) begin() { s.by, s.post, s.rows, s.x = nil, nil, 0, s.x[:0] }

// take adds samples, and returns the row of the first; −1 if not all of them can
// be predicted together with those before.
func (s *shared) take(src *source, readings []codec.Reading) int {
	f := src.feeds[0]
	if s.by == nil {
		if s.post = f.to.Model.Posterior(); !s.post.Built() {
			return -1
		}
		s.by = f.to
	}
	if s.by != f.to || f.pick != nil || s.rows+len(readings) > sharedMax {
		return -1
	}
	before := len(s.x)
	for i := range readings {
		x := readings[i].X
		if x == nil || s.post.CheckInput(x) != nil || missing(x) > 0 { // which may have to be filled in
			s.x = s.x[:before]
			return -1
		}
		s.x = append(s.x, x...)
	}
	s.rows += len(readings)
	return s.rows - len(readings)
}

// load computes what the samples share.
func (s *shared) load() {
	if s.by == nil || s.rows < 2 || s.post.Load(s.x, s.rows, s.ws) != nil {
		s.by = nil
	}
}

// predict is PredictNextTo for a sample at a row of shared, or −1. It returns
// the workspace that was used, too.
func (w *worker) predict(dst, x []float64, m *modelState, post *model.Posterior, ahead, row int) (probs []float64, novelty float64, ws *model.Workspace, err error) {
	if s := &w.shared; row >= 0 && s.by == m && s.post == post {
		probs, novelty = post.AnswerTo(dst, row, post.Pool.Last, ahead, s.ws)
		return probs, novelty, s.ws, nil
	}
	probs, novelty, err = post.PredictNextTo(dst, x, ahead, w.ws)
	return probs, novelty, w.ws, err
}
