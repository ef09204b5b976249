package federated

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"edge/internal/dataset"
	"edge/model"
	"edge/online"
	"edge/online/fleet"
)

// node is one learner.
type node struct {
	name    string
	learner *online.Learner
	learnt
	half   int // first row that judges
	device *device
	ready  bool // its warm-up is over

	posterior *model.Posterior // the newest snapshot; nil: it is older than the learner
	fault
	late

	sum    tally   // of the rows of the second half, judged before they were learnt
	course *Course // of a newcomer

	times
	merges, bytes, sequence int
	tested, refused         map[string]int // of other members, by name
	probs                   []float64
	ws                      model.Workspace
}

// times are the processor time of a node.
type times struct{ learning, contributing, merging time.Duration }

// learnt are the own labels.
type learnt struct {
	labels    int
	since     tally // of those since the last exchange
	exchanged bool  // after the latest
}

// late are the rows whose labels come later.
type late struct {
	held  []online.Event
	delay int // own rows after which they come
}

// tally sums the judgements of rows.
type tally struct {
	rows, wrong int
	nll         float64
}

// Floors of a probability before its logarithm.
const (
	minProb  = 1e-12
	leastDue = 1e-6 // of a label that counts for the next exchange, as in score.Scores
)

// add judges a prediction.
func (t *tally) add(names []string, probs []float64, label string) {
	t.floored(names, probs, label, minProb)
}

// floored is add with a floor of the label's probability.
func (t *tally) floored(names []string, probs []float64, label string, floor float64) {
	best, p := "", 0.
	top := -1.
	for k, v := range probs {
		if v > top {
			top, best = v, names[k]
		}
		if names[k] == label {
			p = v
		}
	}
	t.rows++
	if best != label {
		t.wrong++
	}
	t.nll -= math.Log(max(p, floor))
}

func newNode(cfg *Config, name string, seed uint64) (*node, error) {
	c := cfg.Model
	c.Seed = 1 + cfg.Seed*1000 + seed
	l, err := online.NewLearner(c)
	if err != nil {
		return nil, err
	}
	n := &node{name: name, learner: l, half: cfg.half, late: late{delay: cfg.Delay}, tested: map[string]int{}, refused: map[string]int{}}
	l.Reuse(func(m *model.Memory) bool { return n.posterior == nil || n.posterior.Memory != m })
	return n, nil
}

// learn judges row number at and learns it with that label, or the row whose label has come now.
func (n *node) learn(row *dataset.Row, label string, at int) error {
	defer clock(&n.learning)()
	var err error
	x := n.device.measure(row.X)
	if n.posterior == nil {
		n.posterior = n.learner.Posterior()
	}
	if n.probs, _, err = n.posterior.PredictTo(n.probs, x, &n.ws); err != nil {
		return err
	}
	n.note(n.posterior.Names, row.Label, at)
	n.since.floored(n.posterior.Names, n.probs, label, leastDue)
	ev := online.Event{Kind: online.Observe, X: x, Label: label}
	if n.delay > 0 {
		ev.X, ev.Probs, ev.Parts, ev.Epoch = slices.Clone(x), slices.Clone(n.probs), n.ws.AppendParts(nil), n.posterior.Epoch
		u := n.learner.Uncertainty()
		ev.Meta = u.Meta(ev.Probs, n.ws.Novelty())
		ev.Meta.Version = n.posterior.Version()
		if n.held = append(n.held, ev); len(n.held) <= n.delay {
			return nil
		}
		ev = n.held[0]
		n.held = n.held[1:]
	}
	out := n.learner.Add(&ev)
	if out.Stepped || out.ClassAdded != "" {
		n.posterior = nil
	} else {
		n.posterior = n.learner.Ordered(n.posterior)
	}
	n.labels++
	return out.Refused
}

// note judges the last prediction, of row number at.
func (n *node) note(names []string, label string, at int) {
	if at >= n.half {
		n.sum.add(names, n.probs, label)
	}
	if n.course == nil {
		return
	}
	n.course.sum.add(names, n.probs, label)
	for i, labels := range checkpoints {
		if n.course.sum.rows == labels {
			n.course.Labels[i] = labels
			n.course.Errors[i], n.course.NLL[i] = n.course.sum.means()
		}
	}
}

// due reports whether the node exchanges after its latest label: by the number of labels
// since its last exchange, or by their information.
func (n *node) due(cfg *Config) bool {
	if cfg.Alone || n.since.rows < cfg.Every && !(cfg.Nats > 0 && n.since.nll >= cfg.Nats) {
		return false
	}
	n.since = tally{}
	return true
}

// begins reports whether the warm-up of a node that shares a basis has just ended: it
// proposes one then, or adopts one, and does not wait for the next exchange.
func (n *node) begins(cfg *Config) bool {
	before := n.ready
	n.ready = n.learner.WarmedUp()
	return cfg.Model.Fleet.Shared && !cfg.Alone && n.ready && !before
}

// contribute returns the node's contribution; nil if it has none yet.
func (n *node) contribute() (*fleet.Contribution, error) {
	defer clock(&n.contributing)()
	c, err := n.learner.Contribution(n.name)
	if errors.Is(err, online.ErrNotReady) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	n.sequence++
	c.Version = fleet.Version{Epoch: 1, Sequence: uint64(n.sequence)}
	if err := n.falsify(c); err != nil {
		return nil, err
	}
	data, err := c.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	n.bytes = max(n.bytes, len(data))
	return fleet.Decode(data)
}

// merge takes over the others' contributions.
func (n *node) merge(cfg *Config, set *fleet.Set) error {
	if cfg.Alone || len(set.Members()) == 0 && !cfg.Model.Fleet.Shared {
		return nil
	}
	defer clock(&n.merging)()
	set.Vacant = set.Common() == nil
	m, err := n.learner.Merge(n.name, set)
	if err != nil {
		return fmt.Errorf("%s: %w", n.name, err)
	}
	for _, v := range m.Members {
		switch v.Refused {
		case fleet.Own:
			continue
		case fleet.None:
		default:
			n.refused[v.Name]++
		}
		n.tested[v.Name]++
	}
	if m.Announce != nil {
		set.Offer(m.Announce)
	}
	ev := online.MergeEvent(m)
	n.posterior = nil
	n.merges++
	return n.learner.Add(&ev).Refused
}
