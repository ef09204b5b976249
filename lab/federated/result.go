package federated

import (
	"time"

	"edge/internal/dataset"
	"edge/model"
)

// Result is a run: one device with all rows, nodes alone and nodes in a fleet.
type Result struct {
	Dataset string `json:"dataset"`
	Config
	Rows   int    `json:"rows"`
	Judges int    `json:"judges"` // rows that judge; 0: those of the second half, before they are learnt
	One    Scores `json:"one_device"`
	Alone  Scores `json:"alone"`
	Fleet  Scores `json:"fleet"`

	Merges             int     `json:"merges"`
	MergeMillis        float64 `json:"merge_ms"`        // of a merge, processor time
	ContributionMillis float64 `json:"contribution_ms"` // of an own contribution with its encoding, for each merge
	Bytes              int     `json:"contribution_bytes"`
	GoodTests          int     `json:"good_tests"`
	GoodRefused        int     `json:"good_refused"`
	BadTests           int     `json:"bad_tests,omitempty"`
	BadRefused         int     `json:"bad_refused,omitempty"`
	TimeRatio          float64 `json:"time_ratio"` // of learning and predicting, fleet to alone
}

// Scores are the means over the nodes.
type Scores struct {
	Error    float64 `json:"error"`
	NLL      float64 `json:"nll"`
	Seconds  float64 `json:"seconds"` // of learning and predicting, processor time
	Newcomer *Course `json:"newcomer,omitempty"`
	Follower *Scores `json:"follower,omitempty"` // beside a newcomer: of a follower of the other nodes, and
	Others   *Scores `json:"others,omitempty"`   // of the good ones of these, for the rows held out
}

// Course are a newcomer's scores over its first labels.
type Course struct {
	Labels [len(checkpoints)]int     `json:"labels"` // 0: it has learnt fewer
	Errors [len(checkpoints)]float64 `json:"errors"`
	NLL    [len(checkpoints)]float64 `json:"nll"`

	sum      tally
	follower *model.Posterior // of the other nodes when the newcomer began
}

// judge sets the scores: of the nodes' rows of the second half, or of the test rows.
func (s *Scores) judge(nodes []*node, test []dataset.Row) error {
	for _, n := range nodes {
		sum := n.sum
		if len(test) > 0 {
			var err error
			if sum, err = n.answer(n.learner.Posterior(), test); err != nil {
				return err
			}
		}
		e, nll := sum.means()
		s.Error += e / float64(len(nodes))
		s.NLL += nll / float64(len(nodes))
		s.Seconds += n.learning.Seconds()
	}
	return nil
}

// answer scores the predictions of a posterior for rows as the node's device measures them.
func (n *node) answer(p *model.Posterior, rows []dataset.Row) (sum tally, err error) {
	for i := range rows {
		if n.probs, _, err = p.PredictTo(n.probs, n.device.measure(rows[i].X), &n.ws); err != nil {
			return sum, err
		}
		sum.add(p.Names, n.probs, rows[i].Label)
	}
	return sum, nil
}

// judgeFollower scores the other nodes than a newcomer, the last one, as they were when it
// began, and a follower of these.
func (s *Scores) judgeFollower(cfg *Config, nodes []*node, test []dataset.Row) error {
	newcomer, good := nodes[len(nodes)-1], nodes[:len(nodes)-1]
	if cfg.Bad != "" {
		good = nodes[:cfg.bad()]
	}
	if newcomer.course == nil || len(test) == 0 {
		return nil
	}
	sum, err := newcomer.answer(newcomer.course.follower, test)
	if err != nil {
		return err
	}
	s.Follower, s.Others = &Scores{}, &Scores{}
	s.Follower.Error, s.Follower.NLL = sum.means()
	return s.Others.judge(good, test)
}

// count adds the cost of the exchange, and the refusals.
func (r *Result) count(cfg *Config, nodes []*node) {
	var merging, contributing time.Duration
	for i, n := range nodes {
		r.Merges += n.merges
		merging, contributing = merging+n.merging, contributing+n.contributing
		r.Bytes = max(r.Bytes, n.bytes)
		if cfg.Bad != "" && i == cfg.bad() {
			continue // a bad member's refusals prove nothing
		}
		for name, tests := range n.tested {
			if cfg.Bad != "" && name == nodes[cfg.bad()].name {
				r.BadTests += tests
				r.BadRefused += n.refused[name]
			} else {
				r.GoodTests += tests
				r.GoodRefused += n.refused[name]
			}
		}
	}
	if r.Merges > 0 {
		r.MergeMillis, r.ContributionMillis = 1e3*merging.Seconds()/float64(r.Merges), 1e3*contributing.Seconds()/float64(r.Merges)
	}
	if r.Alone.Seconds > 0 {
		r.TimeRatio = r.Fleet.Seconds / r.Alone.Seconds
	}
}

// means returns error and nll.
func (t *tally) means() (wrong, nll float64) {
	if t.rows == 0 {
		return 0, 0
	}
	return float64(t.wrong) / float64(t.rows), t.nll / float64(t.rows)
}
