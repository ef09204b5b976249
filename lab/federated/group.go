package federated

import (
	"context"

	"edge/internal/dataset"
	"edge/online"
	"edge/online/fleet"
)

// group is a number of nodes that learn, and exchange what they have learnt unless they are alone.
type group struct {
	cfg       *Config
	classes   []string
	nodes     []*node // the bad one is the last, but for a newcomer
	published *fleet.Set
}

// newGroup returns the nodes of a configuration, whose devices may differ in the features of rows.
func newGroup(cfg *Config, rows []dataset.Row, classes []string) (*group, error) {
	g := &group{cfg: cfg, classes: classes, published: fleet.NewSet(0)}
	for i := range cfg.Nodes {
		n, err := newNode(cfg, string(rune('a'+i%26))+string(rune('a'+i/26)), uint64(i))
		if err != nil {
			return nil, err
		}
		if cfg.Differ {
			n.device = newDevice(rows, 100*cfg.Seed+uint64(i))
		}
		g.nodes = append(g.nodes, n)
	}
	g.nodes[cfg.bad()].fault = newFault(cfg)
	return g, nil
}

// judged returns the nodes that are scored: a newcomer alone, or all good ones.
func (g *group) judged() []*node {
	last := len(g.nodes) - 1
	switch {
	case g.cfg.Before > 0:
		return g.nodes[last:]
	case g.cfg.Bad != "":
		return g.nodes[:last]
	}
	return g.nodes
}

// learnAll deals the rows to the nodes.
func (g *group) learnAll(ctx context.Context, rows []dataset.Row) error {
	if g.cfg.Before > 0 {
		return g.learnWithNewcomer(ctx, rows)
	}
	d := newDealer(g.cfg, g.classes)
	for at := range rows {
		if err := g.learn(ctx, g.nodes[d.node(rows[at].Label)], &rows[at], at); err != nil {
			return err
		}
	}
	return g.rest()
}

// learnWithNewcomer deals the first rows to all nodes but the last, in turn. That one then receives
// all contributions, and has every further row to itself, until its course is complete.
func (g *group) learnWithNewcomer(ctx context.Context, rows []dataset.Row) error {
	others, newcomer := g.nodes[:len(g.nodes)-1], g.nodes[len(g.nodes)-1]
	first := g.cfg.Before * len(others)
	for at := range first {
		if err := g.learn(ctx, others[at%len(others)], &rows[at], at); err != nil {
			return err
		}
	}
	if err := g.publish(others...); err != nil {
		return err
	}
	if err := newcomer.merge(g.cfg, g.published); err != nil {
		return err
	}
	newcomer.course = &Course{}
	if !g.cfg.Alone {
		var err error
		if newcomer.course.follower, _, err = online.Follow(g.cfg.Model, newcomer.name, g.published); err != nil {
			return err
		}
	}
	for at := first; at < len(rows) && newcomer.labels < checkpoints[len(checkpoints)-1]; at++ {
		if err := g.learn(ctx, newcomer, &rows[at], at); err != nil {
			return err
		}
	}
	return nil
}

// learn lets a node learn row number at, and exchange if that is due.
func (g *group) learn(ctx context.Context, n *node, row *dataset.Row, at int) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if n.exchanged && g.cfg.Late {
		if err := n.merge(g.cfg, g.published); err != nil {
			return err
		}
	}
	if err := n.learn(row, n.label(row.Label, g.classes), at); err != nil {
		return err
	}
	if n.exchanged = n.due(g.cfg) || n.begins(g.cfg); !n.exchanged {
		return nil
	}
	if err := g.publish(n); err != nil || g.cfg.Late {
		return err
	}
	return n.merge(g.cfg, g.published)
}

// rest is what nodes do before held out rows judge them, when no labels come any more and
// fleet.max_wait has passed: they close the open minibatch, publish new contributions, and merge.
func (g *group) rest() error {
	if g.cfg.Alone || g.cfg.Test == 0 {
		return nil
	}
	var late []*node
	for _, n := range g.nodes {
		if out := n.learner.Add(&online.Event{Kind: online.Boundary}); out.Refused != nil {
			return out.Refused
		}
		if c := g.published.Get(n.name); c == nil || fleet.Worthwhile(uint64(n.labels), c.N) {
			late = append(late, n)
		}
	}
	if err := g.publish(late...); err != nil {
		return err
	}
	for _, n := range g.nodes {
		if err := n.merge(g.cfg, g.published); err != nil {
			return err
		}
	}
	return nil
}

// publish publishes the contributions of nodes that have one.
func (g *group) publish(nodes ...*node) error {
	if g.cfg.Alone {
		return nil
	}
	for _, n := range nodes {
		c, err := n.contribute()
		if err != nil {
			return err
		}
		if c != nil {
			g.published.Put(c)
		}
	}
	return nil
}
