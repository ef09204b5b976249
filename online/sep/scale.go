package sep

import (
	"math"
	"slices"

	"edge/model"
)

// RobustScale stores the standardisation of the n raw rows in x: per feature,
// values are clipped to the median ± Clip·(q75−q25)/1.349 before mean and standard
// deviation are taken, so that a few wild readings at the start do not flatten
// a feature permanently. Missing values are left out. A constant feature gets
// standard deviation 1.
func RobustScale(s *model.Scale, x []float64, n, d int) {
	col, sorted := make([]float64, 0, n), make([]float64, 0, n)
	for j := range d {
		col = column(col[:0], x, n, d, j)
		if len(col) == 0 {
			s.Mu[j], s.Sd[j] = 0, 1
			continue
		}
		sorted = append(sorted[:0], col...)
		slices.Sort(sorted)
		q25, q50, q75 := quantile(sorted, 0.25), quantile(sorted, 0.5), quantile(sorted, 0.75)
		if iqr := q75 - q25; iqr > 1e-12 {
			reach := s.Limit() * iqr / 1.349
			for i, v := range col {
				col[i] = min(max(v, q50-reach), q50+reach)
			}
		}
		s.Mu[j], s.Sd[j] = meanSd(col)
	}
}

// PlainScale stores the mean and standard deviation of each feature of the n raw
// rows in x, or if common is true the root of their mean variance for all.
// Missing values are left out.
func PlainScale(s *model.Scale, x []float64, n int, common bool) {
	d, col := len(s.Mu), make([]float64, 0, n)
	var total float64
	for j := range d {
		col = column(col[:0], x, n, d, j)
		if len(col) == 0 {
			s.Mu[j], s.Sd[j] = 0, 1
			continue
		}
		mu, sd := meanSd(col)
		s.Mu[j], s.Sd[j] = mu, sd
		if sd == 1 && slices.Min(col) == slices.Max(col) {
			sd = 0 // constant: it has no part in the mean
		}
		total += sd * sd / float64(d)
	}
	if !common {
		return
	}
	if total == 0 {
		total = 1
	}
	for j := range s.Sd {
		s.Sd[j] = math.Sqrt(total)
	}
}

// column appends the values of feature j in the n raw rows of x, without missing ones, to col. As in
// model.Scale.To a value beyond model.MaxFeature counts as that.
func column(col, x []float64, n, d, j int) []float64 {
	for i := range n {
		if v := x[i*d+j]; v-v == 0 {
			col = append(col, min(max(v, -model.MaxFeature), model.MaxFeature))
		}
	}
	return col
}

// minSd is the least standard deviation of a feature that is not constant: a tenth of it, see track,
// and quotients by it are numbers of full precision.
const minSd = 1e-300

// meanSd returns mean and population standard deviation, 1 for a constant
// column. It scales by the largest magnitude first: squares of 1e-200 underflow.
func meanSd(col []float64) (mu, sd float64) {
	var top float64
	for _, v := range col {
		top = max(top, math.Abs(v))
	}
	if top == 0 {
		return 0, 1
	}
	n := float64(len(col))
	for _, v := range col {
		mu += v / top / n
	}
	var ss float64
	for _, v := range col {
		ss += (v/top - mu) * (v/top - mu)
	}
	mu, sd = mu*top, math.Sqrt(ss/n)*top
	if !(sd > max(1e-8*(min(1, top)+math.Abs(mu)), minSd)) {
		sd = 1
	}
	return mu, sd
}

// quantile interpolates linearly between order statistics (Hyndman & Fan, type 7).
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	f := at - float64(i)
	return sorted[i]*(1-f) + sorted[i+1]*f
}

// ranks returns model.Scale.Ranks of the n raw rows in x, without missing values. A
// quantile between two equal values is exactly that value, so that the values of a
// feature that has few of them are found again.
func ranks(x []float64, n, d int) []float64 {
	all := make([]float64, 0, d*model.RankPoints)
	col := make([]float64, 0, n)
	for j := range d {
		col = column(col[:0], x, n, d, j)
		if len(col) == 0 {
			col = append(col, 0)
		}
		slices.Sort(col)
		for i := range model.RankPoints {
			at := float64(i) / (model.RankPoints - 1) * float64(len(col)-1)
			low := int(at)
			high := min(low+1, len(col)-1)
			all = append(all, col[low]+(at-float64(low))*(col[high]-col[low]))
		}
	}
	return all
}

// track lets the standardisation follow the n raw rows of x with a memory of
// memory observations, after they were predicted and before they are learnt. sd0
// are the standard deviations at the end of the warm-up, of which at least a tenth stays.
// It clips its own input: one outlier in 500 would otherwise distort it permanently.
func track(s *model.Scale, sd0, x []float64, n int, memory float64) {
	d := len(s.Mu)
	for j := range d {
		mu, sd := s.Mu[j], s.Sd[j]
		lo, hi := mu-s.Limit()*sd, mu+s.Limit()*sd
		var sum, known float64
		for i := range n {
			if v := x[i*d+j]; v-v == 0 {
				sum += min(max(v, lo), hi)
				known++
			}
		}
		if known == 0 {
			continue
		}
		a := min(known/memory, 0.5)
		next := (1-a)*mu + a*sum/known
		var ss float64
		for i := range n {
			if v := x[i*d+j]; v-v == 0 {
				dev := min(max(v, lo), hi) - next
				ss += dev * dev
			}
		}
		s.Mu[j] = next
		s.Sd[j] = max(math.Sqrt((1-a)*sd*sd+a*ss/known), 0.1*sd0[j])
	}
}
