package simulation

import (
	"fmt"

	"edge/stream"
)

// answers counts, within one life, what was sent to the node, what it has answered
// and what it has acknowledged, by model and sample. World.mu guards it.
type answers struct {
	world             *world
	sent, made, taken map[string]int
}

func newAnswers(w *world) *answers {
	return &answers{world: w, sent: map[string]int{}, made: map[string]int{}, taken: map[string]int{}}
}

// samples calls do with the key of each sample of a message that is to be answered.
func (a *answers) samples(p *publication, do func(key string)) {
	if p.meaning == nil || p.retained {
		return
	}
	for _, e := range p.meaning.entries {
		if e.x == nil {
			continue
		}
		for _, m := range e.models {
			do(fmt.Sprint(m, e.x, e.id))
		}
	}
}

// transmitted notes that a message is on its way to the node.
func (a *answers) transmitted(p *publication) {
	a.samples(p, func(key string) { a.sent[key]++ })
}

// predicted notes an answer: there are no more of them than messages.
func (a *answers) predicted(p *stream.Prediction) {
	key := fmt.Sprint(p.Model, p.X, p.ID)
	if a.made[key]++; a.made[key] > a.sent[key] {
		a.world.fail("%s was sent %d times in this life, and is answered for the %d. time", key, a.sent[key], a.made[key])
	}
}

// acknowledged notes that the node is done with a message: it was answered.
func (a *answers) acknowledged(p *publication) {
	a.samples(p, func(key string) {
		if a.taken[key]++; a.taken[key] > a.made[key] {
			a.world.fail("%s was acknowledged %d times in this life, and answered %d times", key, a.taken[key], a.made[key])
		}
	})
}
