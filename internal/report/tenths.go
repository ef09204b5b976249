package report

import "edge/online/score"

// Tenth holds the scores of one tenth of a stream.
type Tenth struct {
	N        uint64     `json:"n"`
	Error    score.Real `json:"error"`
	NLL      score.Real `json:"nll"`
	Coverage score.Real `json:"coverage"` // of the prediction sets
	Size     score.Real `json:"set_size"`
}

// Tenths computes the scores of each tenth from the cumulative ones at its end.
// The zero value is ready.
type Tenths struct {
	List []Tenth
	last score.Figures
}

// Add ends a tenth at the cumulative scores s.
func (t *Tenths) Add(s score.Scores) {
	sets := func(f *score.Figures) score.Coverage {
		if f.Sets == nil {
			return score.Coverage{}
		}
		return *f.Sets
	}
	now, before := sets(&s.Figures), sets(&t.last)
	part := func(n, then uint64, mean, was float64) score.Real {
		return score.Real((float64(n)*mean - float64(then)*was) / float64(n-then))
	}
	t.List = append(t.List, Tenth{
		N:        s.N - t.last.N,
		Error:    part(s.N, t.last.N, s.Error, t.last.Error),
		NLL:      part(s.N, t.last.N, s.NLL, t.last.NLL),
		Coverage: part(now.N, before.N, float64(now.Covered), float64(before.Covered)),
		Size:     part(now.N, before.N, float64(now.Size), float64(before.Size)),
	})
	t.last = s.Figures
}
