package forest

import (
	"math"

	"edge/model"
)

// heard are the answers of members' forests to the samples that the next Learn learns, which
// the prediction that judged them has computed. A sample is found by its features, so that
// no answer to another one, or of other forests, is taken for one to it.
type heard struct {
	of      []*model.Forest // whose answers they are
	rows    []float32       // n×D  as model.RawTo stores them
	answers []float64       // n×A  see model.Workspace.MemberAnswers
	n, next int             // the one that is looked for first
}

// Hear keeps the answers of members' forests in the last prediction of the view, for a sample
// that the next Learn learns. Without them Learn asks the forests again: no result depends on it.
func (l *Learner) Hear(ws *model.Workspace) {
	if l == nil || l.tuned == nil {
		return
	}
	row, answers := ws.MemberAnswers(l.view)
	if len(answers) == 0 {
		return
	}
	h, all := &l.heard, l.view.Pool.Stack.Members
	if h.n == l.cfg.Stored || !h.areOf(all) {
		h.forget()
		h.of = h.of[:0]
		for i := range all.All {
			h.of = append(h.of, all.All[i].Forest)
		}
	}
	h.rows, h.answers = append(h.rows, row...), append(h.answers, answers...)
	h.n++
}

// areOf reports whether the answers are those of these forests.
func (h *heard) areOf(all *model.MemberForests) bool {
	if len(h.of) != len(all.All) {
		return false
	}
	for i, f := range h.of {
		if all.All[i].Forest != f {
			return false
		}
	}
	return true
}

// find returns the answers of these forests to a sample; nil: they are not known.
func (h *heard) find(row []float32, all *model.MemberForests) []float64 {
	if h.n == 0 || all == nil || !h.areOf(all) {
		return nil
	}
	d, a := len(h.rows)/h.n, len(h.answers)/h.n
	for i := h.next; i < h.n; i++ {
		if sameRow(h.rows[i*d:(i+1)*d], row) {
			h.next = i + 1
			return h.answers[i*a : (i+1)*a]
		}
	}
	return nil
}

func sameRow(a, b []float32) bool {
	for j, v := range a {
		if math.Float32bits(v) != math.Float32bits(b[j]) {
			return false
		}
	}
	return true
}

// forget drops the answers.
func (h *heard) forget() { h.rows, h.answers, h.n, h.next = h.rows[:0], h.answers[:0], 0, 0 }
