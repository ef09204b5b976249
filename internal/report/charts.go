package report

import "edge/online/score"

// Charts are the parts of a report that the page draws and --json leaves out. Over
// several runs they pool the samples of all runs.
type Charts struct {
	Matrix      [][]uint64         // C×C counts, [label][predicted], in the order of PerClass
	Reliability []score.Bin        // the bins of the calibration error
	PerClass    []score.ClassScore // precision, recall and number of labels
	Target      float64            // coverage that prediction sets aim at; 0: no sets
	Settings    []Setting          // of the model, in the order in which they are shown
}

// Setting is one key of a model's configuration.
type Setting struct{ Key, Value string }

// fill copies the parts of the scores that charts draw.
func (c *Charts) fill(s *score.Scores) {
	c.Matrix, c.Reliability, c.PerClass = s.Matrix, s.Reliability, s.PerClass
}

// ChartsOf returns the charts of held-out samples.
func ChartsOf(s *score.Scores) (c Charts) {
	c.fill(s)
	return c
}

// pool adds up the charts of several runs, class by class: the order of the
// classes may differ where labels introduce them.
func pool(reports []*Report) Charts {
	first := &reports[0].Charts
	all := Charts{Target: first.Target, Settings: first.Settings}
	var classes ClassBook
	for _, r := range reports {
		for _, s := range r.Charts.PerClass {
			classes.ClassOf(s.Class)
		}
	}
	for _, name := range classes.Names {
		all.Matrix = append(all.Matrix, make([]uint64, len(classes.Names)))
		all.PerClass = append(all.PerClass, score.ClassScore{Class: name})
	}
	for _, r := range reports {
		c := &r.Charts
		for i, row := range c.Matrix {
			for j, n := range row {
				all.Matrix[classes.ClassOf(c.PerClass[i].Class)][classes.ClassOf(c.PerClass[j].Class)] += n
			}
		}
		for _, s := range c.PerClass {
			all.PerClass[classes.ClassOf(s.Class)].N += s.N
		}
		all.Reliability = poolBins(all.Reliability, c.Reliability)
	}
	var labels uint64
	for _, s := range all.PerClass {
		labels += s.N
	}
	for k := range all.PerClass {
		s := &all.PerClass[k]
		var predicted uint64
		for _, row := range all.Matrix {
			predicted += row[k]
		}
		hits := float64(all.Matrix[k][k])
		s.Prevalence = score.Real(float64(s.N) / float64(labels))
		s.Precision, s.Recall = score.Real(hits/float64(predicted)), score.Real(hits/float64(s.N))
	}
	return all
}

// poolBins adds the bins of one run to those of others.
func poolBins(all, bins []score.Bin) []score.Bin {
	if all == nil {
		all = make([]score.Bin, len(bins))
	}
	for i, b := range bins {
		if b.N == 0 {
			continue
		}
		sum := &all[i]
		n, m := float64(sum.N), float64(b.N)
		sum.Confidence = (n*sum.Confidence + m*b.Confidence) / (n + m)
		sum.Accuracy = (n*sum.Accuracy + m*b.Accuracy) / (n + m)
		sum.N += b.N
	}
	return all
}
