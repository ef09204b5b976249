// Package federated deals the rows of a data set to several learners that exchange what
// they have learnt, and judges them beside learners that do not, and beside one that
// has all the rows.
//
//	run.go     Config, Run
//	group.go   nodes that learn and exchange, also with a newcomer
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
	case c.Before < 0:
		return errors.New("--newcomer: want 0 or more")
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
	switch {
	case learnt < cfg.Nodes:
		return nil, fmt.Errorf("--test-fraction %g leaves %d of %d rows to learn: want one for each of %d nodes", cfg.Test, learnt, len(rows), cfg.Nodes)
	case cfg.Test > 0 && len(test) == 0:
		return nil, fmt.Errorf("--test-fraction %g of %d rows leaves nothing to judge", cfg.Test, len(rows))
	}
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
	cfg.Alone = true
	if _, err := r.Alone.learn(ctx, &cfg, learn, test, classes); err != nil {
		return nil, err
	}
	cfg.Alone = false
	g, err := r.Fleet.learn(ctx, &cfg, learn, test, classes)
	if err != nil {
		return nil, err
	}
	r.count(&cfg, g.nodes)
	if cfg.Before > 0 {
		return r, r.Fleet.judgeFollower(&cfg, g.nodes, test)
	}
	return r, nil
}

// learn lets a group learn the rows, and scores it.
func (s *Scores) learn(ctx context.Context, cfg *Config, rows, test []dataset.Row, classes []string) (*group, error) {
	g, err := newGroup(cfg, rows, classes)
	if err != nil {
		return nil, err
	}
	if err := g.learnAll(ctx, rows); err != nil {
		return nil, err
	}
	judged := g.judged()
	if cfg.Before > 0 {
		s.Newcomer = judged[0].course
	}
	return g, s.judge(judged, test)
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

// clock measures processor time.
func clock(into *time.Duration) func() {
	start := process.CPUTime()
	return func() { *into += process.CPUTime() - start }
}
