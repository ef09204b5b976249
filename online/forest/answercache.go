package forest

import (
	"math"

	"edge/model"
)

// answerCache holds the answers of members' forests to the samples that the next Learn learns, which
// the prediction that judged them has computed. A sample is found by its features, so that
// no answer to another one, or of other forests, is taken for one to it.
type answerCache struct {
	of      []*model.Forest // whose answers they are
	rows    []float32       // n×D  as model.RawTo stores them
	answers []float64       // n×A  see model.Workspace.MemberAnswers
	n, next int             // the one that is looked for first
}

// KeepAnswers keeps the answers of members' forests in the last prediction of the view, for a sample
// that the next Learn learns. Without them Learn asks the forests again: no result depends on it.
func (l *Learner) KeepAnswers(ws *model.Workspace) {
	if l == nil || l.tuned == nil {
		return
	}
	row, answers := ws.MemberAnswers(l.view)
	if len(answers) == 0 {
		return
	}
	c, all := &l.cache, l.view.Pool.Stack.Members
	if c.n == l.cfg.Stored || !c.areOf(all) {
		c.forget()
		c.of = c.of[:0]
		for i := range all.All {
			c.of = append(c.of, all.All[i].Forest)
		}
	}
	c.rows, c.answers = append(c.rows, row...), append(c.answers, answers...)
	c.n++
}

// areOf reports whether the answers are those of these forests.
func (c *answerCache) areOf(all *model.MemberForests) bool {
	if len(c.of) != len(all.All) {
		return false
	}
	for i, f := range c.of {
		if all.All[i].Forest != f {
			return false
		}
	}
	return true
}

// find returns the answers of these forests to a sample; nil: they are not known.
func (c *answerCache) find(row []float32, all *model.MemberForests) []float64 {
	if c.n == 0 || all == nil || !c.areOf(all) {
		return nil
	}
	d, a := len(c.rows)/c.n, len(c.answers)/c.n
	for i := c.next; i < c.n; i++ {
		if sameRow(c.rows[i*d:(i+1)*d], row) {
			c.next = i + 1
			return c.answers[i*a : (i+1)*a]
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
func (c *answerCache) forget() { c.rows, c.answers, c.n, c.next = c.rows[:0], c.answers[:0], 0, 0 }
