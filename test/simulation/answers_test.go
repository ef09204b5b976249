package simulation

import (
	"fmt"

	"edge/stream"
)

// answers counts the messages to one process of the node, its predictions and its
// acknowledgements, by model and sample. World.mu guards it.
type answers struct {
	world                   *world
	sent, predictions, acks map[string]int
}

func newAnswers(w *world) *answers {
	return &answers{world: w, sent: map[string]int{}, predictions: map[string]int{}, acks: map[string]int{}}
}

// samples calls do with the key of each sample of a message that the node must answer.
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

// transmitted records that the broker has sent a message to the node.
func (a *answers) transmitted(p *publication) {
	a.samples(p, func(key string) { a.sent[key]++ })
}

// predicted records a prediction, and fails if the node has answered more messages
// than it was sent.
func (a *answers) predicted(p *stream.Prediction) {
	if a.world.plan.rows != nil { // a message is no sample
		return
	}
	key := fmt.Sprint(p.Model, p.X, p.ID)
	if a.predictions[key]++; a.predictions[key] > a.sent[key] {
		a.world.fail("%s was sent %d times to this process, and answered %d times", key, a.sent[key], a.predictions[key])
	}
}

// acknowledged records an acknowledgement, and fails if the node has not answered the
// message.
func (a *answers) acknowledged(p *publication) {
	a.samples(p, func(key string) {
		if a.acks[key]++; a.acks[key] > a.predictions[key] {
			a.world.fail("%s was acknowledged %d times by this process, and answered %d times", key, a.acks[key], a.predictions[key])
		}
	})
}
