package compare

import (
	"context"
	"errors"

	"edge/internal/process"
	"edge/lab"
)

// Splits are the first splits of a data set, on which methods run.
type Splits struct {
	Dataset string // its name
	Data    *lab.Data
	Config
	Number  int
	Journal *Journal   // of the runs that are done
	Done    func(*Run) // called with each run
}

// Run is the result of one method on one split.
type Run struct {
	Dataset string `json:"dataset"`
	Method  string `json:"method"`
	Split   int    `json:"split"`
	Config
	M       int     `json:"inducing"`
	Error   float64 `json:"error"`
	NLL     float64 `json:"nll"`     // nats
	Seconds float64 `json:"seconds"` // of processor time, training alone
	Failure string  `json:"failure,omitempty"`
}

// same reports whether two runs are of the same method on the same split.
func (r *Run) same(o *Run) bool {
	return r.Dataset == o.Dataset && r.Method == o.Method && r.Split == o.Split && r.Config == o.Config
}

// Runs returns the runs of a method on all splits. Those that the journal has are not repeated.
func (s *Splits) Runs(ctx context.Context, m *Method) (runs []Run, err error) {
	for split := range s.Number {
		r := s.Journal.Find(&Run{Dataset: s.Dataset, Method: m.Name, Split: split, Config: s.Config})
		if r == nil {
			if r, err = s.run(ctx, m, split); err != nil {
				return nil, err
			}
			if err := s.Journal.add(r); err != nil {
				return nil, err
			}
		}
		runs = append(runs, *r)
		s.Done(r)
	}
	return runs, nil
}

// run runs a method on one split. If the method fails numerically, the run has a Failure; an
// error is an interruption or a wrong set.
func (s *Splits) run(ctx context.Context, m *Method, split int) (*Run, error) {
	d, err := NewSplit(s.Data, s.Config, split)
	if err != nil {
		return nil, err
	}
	p := s.Problem(d.Learn, split)
	r := &Run{Dataset: s.Dataset, Method: m.Name, Split: split, Config: s.Config, M: p.Start.M}
	before := process.CPUTime()
	c, err := m.Fit(ctx, p)
	r.Seconds = (process.CPUTime() - before).Seconds()
	if ctx.Err() != nil {
		return nil, errors.New("compare: interrupted")
	}
	if err == nil {
		r.Error, r.NLL, err = Judge(c, d.Judge)
	}
	if err != nil {
		r.Failure = err.Error()
	}
	return r, nil
}
