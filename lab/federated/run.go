// Package federated deals the rows of a data set to several learners that exchange what
// they have learnt, and judges them beside learners that do not, and beside one that
// has all the rows.
//
//	run.go     Config, Run
//	deal.go    which rows go to which node
//	device.go  devices that differ by gain and offset
//	bad.go     what a bad node does
//	node.go    one learner, with its contributions and merges
//	result.go  Result and its scores
package federated

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"edge/internal/dataset"
	"edge/internal/process"
	"edge/online"
	"edge/online/fleet"
)

// Kinds of a bad member.
const (
	BadLabels = "labels" // learns random labels
	BadNext   = "next"   // takes each class for the next one
	BadHuge   = "huge"   // claims precisions of 10⁶ with random means
)

// Config are the conditions of a run.
type Config struct {
	Model online.Config `json:"-"`

	Nodes   int     `json:"nodes"`
	Every   int     `json:"every"`            // own labels between exchanges
	Late    bool    `json:"late,omitempty"`   // a node merges just before its next label, not after the latest
	Delay   int     `json:"delay,omitempty"`  // own rows after which a label comes
	Nats    float64 `json:"information"`      // of own labels, by the predictions before them, after which a node exchanges earlier; 0: never
	Test    float64 `json:"test_fraction"`    // of the rows, after the shuffle, that judge; 0: each row judges before it is learnt, those of the second half count
	ByClass bool    `json:"by_class"`         // each node has half of the classes
	Bad     string  `json:"bad,omitempty"`    // kind of the bad node, the last one but for a newcomer; "": all are good
	Boast   float64 `json:"boast"`            // by which the bad node multiplies its labels and its precisions
	Before  int     `json:"before,omitempty"` // labels of each of the other nodes when the last one begins; 0: with them
	Seed    uint64  `json:"seed"`             // of bad labels and of the models
	Alone   bool    `json:"-"`                // no exchange
	Declare bool    `json:"declare"`          // all classes are known from the start
	Differ  bool    `json:"differ"`           // the nodes' devices differ by gain and offset, the one device does not

	half int // first row that judges where no row is held out
}

// Validate reports settings out of range.
func (c *Config) Validate() error {
	switch {
	case c.Nodes < 2 || c.Nodes > 64:
		return errors.New("--nodes: want 2 to 64")
	case c.Every < 1:
		return errors.New("--every: want 1 or more")
	case c.Delay < 0:
		return errors.New("--delay: want 0 or more")
	case !(c.Nats >= 0) || math.IsInf(c.Nats, 1):
		return errors.New("--information: want a number from 0")
	case !(c.Test >= 0 && c.Test < 1):
		return errors.New("--test-fraction: want a number from 0, below 1")
	case c.Bad != "" && c.Bad != BadLabels && c.Bad != BadNext && c.Bad != BadHuge:
		return errors.New("--bad: want labels, next or huge")
	case !(c.Boast >= 1 && c.Boast <= 1e6):
		return errors.New("--boast: want 1 to 1e6")
	case c.Bad != "" && c.Before > 0 && c.Nodes < 3:
		return errors.New("--nodes: want 3 or more, of which one is bad and one a newcomer")
	}
	return nil
}

// bad is the place of the bad node.
func (c *Config) bad() int {
	if c.Before > 0 {
		return c.Nodes - 2
	}
	return c.Nodes - 1
}

// checkpoints are the numbers of labels after which a newcomer's scores are noted.
var checkpoints = [...]int{50, 100, 200, 500}

// Run learns the rows in one device, in nodes alone and in a fleet.
func Run(ctx context.Context, cfg Config, rows []dataset.Row, classes []string) (*Result, error) {
	if cfg.Declare {
		cfg.Model.Classes.Names = classes
	}
	cfg.Model.Classes.Max = max(cfg.Model.Classes.Max, len(classes))
	learnt := len(rows) - int(math.Round(cfg.Test*float64(len(rows))))
	learn, test := rows[:learnt], rows[learnt:]
	if others := cfg.Before * (cfg.Nodes - 1); cfg.Before > 0 && learnt <= others {
		return nil, fmt.Errorf("--newcomer %d: the %d other nodes learn the first %d rows, and there are %d", cfg.Before, cfg.Nodes-1, others, learnt)
	}
	r := &Result{Config: cfg, Rows: learnt, Judges: len(test)}
	cfg.half = learnt / 2
	if cfg.Before == 0 {
		one, err := newNode(&cfg, "one", 0)
		if err != nil {
			return nil, err
		}
		if err := one.learnAll(ctx, learn); err != nil {
			return nil, err
		}
		if err := r.One.judge([]*node{one}, test); err != nil {
			return nil, err
		}
	}
	for _, alone := range []bool{true, false} {
		cfg.Alone = alone
		nodes, err := deal(ctx, &cfg, learn, classes)
		if err != nil {
			return nil, err
		}
		into := &r.Fleet
		if alone {
			into = &r.Alone
		}
		good := nodes
		if cfg.Bad != "" {
			good = nodes[:len(nodes)-1]
		}
		if cfg.Before > 0 {
			good = nodes[len(nodes)-1:]
			into.Newcomer = good[0].course
		}
		if err := into.judge(good, test); err != nil {
			return nil, err
		}
		if alone {
			continue
		}
		r.count(&cfg, nodes)
		if cfg.Before > 0 {
			if err := into.judgeFollower(&cfg, nodes, test); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// learnAll learns all rows.
func (n *node) learnAll(ctx context.Context, rows []dataset.Row) error {
	for i := range rows {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := n.learn(&rows[i], rows[i].Label, i); err != nil {
			return err
		}
	}
	return nil
}

// deal lets the nodes learn their rows, and exchange.
func deal(ctx context.Context, cfg *Config, rows []dataset.Row, classes []string) ([]*node, error) {
	var nodes []*node
	for i := range cfg.Nodes {
		n, err := newNode(cfg, string(rune('a'+i%26))+string(rune('a'+i/26)), uint64(i))
		if err != nil {
			return nil, err
		}
		if cfg.Differ {
			n.device = newDevice(rows, 100*cfg.Seed+uint64(i))
		}
		nodes = append(nodes, n)
	}
	last := nodes[len(nodes)-1]
	nodes[cfg.bad()].fault = newFault(cfg)
	active := nodes
	if cfg.Before > 0 {
		active = nodes[:len(nodes)-1]
	}
	published := fleet.NewSet(0)
	d := newDealer(cfg, classes)
	for at := range rows {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if cfg.Before > 0 && len(active) < len(nodes) && at == cfg.Before*len(active) {
			// The newcomer receives all contributions, and has every further row to itself.
			if err := publish(cfg, active, published); err != nil {
				return nil, err
			}
			active = nodes[len(nodes)-1:]
			if err := last.merge(cfg, published); err != nil {
				return nil, err
			}
			last.course = &Course{}
			if !cfg.Alone {
				var err error
				if last.course.follower, _, err = online.Follow(cfg.Model, last.name, published); err != nil {
					return nil, err
				}
			}
		}
		n := active[0]
		if cfg.Before == 0 {
			n = nodes[d.node(rows[at].Label)]
		} else if len(active) > 1 {
			n = active[at%len(active)]
		}
		if n == last && last.course != nil && last.labels >= checkpoints[len(checkpoints)-1] {
			break
		}
		label := n.label(rows[at].Label, classes)
		if n.exchanged && cfg.Late {
			if err := n.merge(cfg, published); err != nil {
				return nil, err
			}
		}
		if err := n.learn(&rows[at], label, at); err != nil {
			return nil, err
		}
		if n.exchanged = n.due(cfg) || n.begins(cfg); n.exchanged {
			if err := publish(cfg, []*node{n}, published); err != nil {
				return nil, err
			}
			if cfg.Late {
				continue
			}
			if err := n.merge(cfg, published); err != nil {
				return nil, err
			}
		}
	}
	return nodes, rest(cfg, nodes, published)
}

// rest is what nodes do before held out rows judge them, when no labels come any more and
// fleet.max_wait has passed: they close the open minibatch, publish new contributions, and merge.
func rest(cfg *Config, nodes []*node, published *fleet.Set) error {
	if cfg.Alone || cfg.Test == 0 || cfg.Before > 0 {
		return nil
	}
	var late []*node
	for _, n := range nodes {
		if out := n.learner.Add(&online.Event{Kind: online.Boundary}); out.Refused != nil {
			return out.Refused
		}
		if c := published.Get(n.name); c == nil || fleet.Worthwhile(uint64(n.labels), c.N) {
			late = append(late, n)
		}
	}
	if err := publish(cfg, late, published); err != nil {
		return err
	}
	for _, n := range nodes {
		if err := n.merge(cfg, published); err != nil {
			return err
		}
	}
	return nil
}

// publish adds the contributions of nodes that have one to the set.
func publish(cfg *Config, nodes []*node, set *fleet.Set) error {
	if cfg.Alone {
		return nil
	}
	for _, n := range nodes {
		c, err := n.contribute()
		if err != nil {
			return err
		}
		if c != nil {
			set.Put(c)
		}
	}
	return nil
}

// clock measures processor time.
func clock(into *time.Duration) func() {
	start := process.CPUTime()
	return func() { *into += process.CPUTime() - start }
}
