package model

import (
	"math"
	"slices"
)

// Order describes in which order labels follow each other. The labels
// of a stream that dwell, go round or come in waves predict the next ones.
type Order struct {
	Labels uint64         // number of labels that have come
	Last   int            // class of the latest one, −1: none
	Steps  []Moves        // at the distances 1, 2, 4, … labels; nil: the order is not used
	Paths  [Paths]float64 // weights of the two ways to a distance, sum 1
	Recent []float64      // len(RecentMemories)×C: labels of each class, which fade; nil: the order is not used
}

// clone returns a deep copy.
func (o *Order) clone() Order {
	c := *o
	c.Recent, c.Steps = slices.Clone(o.Recent), slices.Clone(o.Steps)
	for j := range c.Steps {
		c.Steps[j].Counts = slices.Clone(c.Steps[j].Counts)
	}
	return c
}

// WithOrder returns p after more labels of the same classes, before their moves are
// counted. It shares all but the latest labels with p.
func (p *Posterior) WithOrder(o *Order) *Posterior {
	c := *p
	c.Pool.Order = Order{Labels: o.Labels, Last: o.Last, Steps: p.Pool.Order.Steps, Paths: p.Pool.Order.Paths, Recent: slices.Clone(o.Recent)}
	return &c
}

// Moves counts the moves from one label to the label that comes a fixed distance
// after it. A row of transition probabilities is a mixture of the row's frequencies
// under several priors z of mass A_z,
//
//	R_ab = Σ_z w_z (n_ab + A_z base_z(a, b))/(n_a + A_z),   w = softmax(Evidence)
//
// so that few moves are trusted as far as that has paid, and labels without an order
// end at the frequencies of the classes. The bases are π_b; 1/C; and both of them
// outside of the diagonal, with the probability to stay on it:
//
//	stay = (Σ n_aa + 1)/(Σ n_ab + 2)
//
// Source: MacKay & Peto (1995), "A hierarchical Dirichlet language model", for rows with a
// Dirichlet prior of mass A and mean base.
type Moves struct {
	Counts   []uint32        // C×C, Counts[a·C+b] for a move from a to b
	Stayed   uint64          // Σ n_aa
	All      uint64          // Σ n_ab
	Evidence [Priors]float64 // sum of log P_z(label), which fades
}

// Paths is the number of ways in which an Order goes to a distance: by the moves that
// were counted at distances, and as a label that dwells.
const Paths = 2

// Steps of an Order, and the number of priors of each.
const (
	MaxSteps = 10
	FarAhead = 1000 // labels beyond which the order is not known
	Priors   = len(priorMasses) * priorBases

	priorBases = 4
)

var priorMasses = [...]float64{0.5, 4, 32}

// Count adds a move from class a to class b of c; it reports false, and does nothing, if
// their count is full.
func (m *Moves) Count(a, b, c int) bool {
	n := &m.Counts[a*c+b]
	if *n == math.MaxUint32 {
		return false
	}
	*n++
	m.All++
	if a == b {
		m.Stayed++
	}
	return true
}

// Recount sets the sums of the counts, of c classes.
func (m *Moves) Recount(c int) {
	m.Stayed, m.All = 0, 0
	for i, n := range m.Counts {
		m.All += uint64(n)
		if i%(c+1) == 0 {
			m.Stayed += uint64(n)
		}
	}
}

// stay is the probability that a label is that of the distance before.
func (m *Moves) stay() float64 { return (float64(m.Stayed) + 1) / (float64(m.All) + 2) }

// row returns row a of the counts and its sum.
func (m *Moves) row(a, c int) (row []uint32, n float64) {
	row = m.Counts[a*c : (a+1)*c]
	for _, v := range row {
		n += float64(v)
	}
	return row, n
}

// LogsTo stores log P_z(b | a) for each prior z in dst.
//
//	pi  C  frequencies of the classes, at least two
func (m *Moves) LogsTo(dst *[Priors]float64, a, b int, pi []float64) {
	row, n := m.row(a, len(pi))
	stay, even := m.stay(), 1/float64(len(pi))
	base := [priorBases]float64{pi[b], even, stay, stay}
	if a != b {
		base[2], base[3] = (1-stay)*pi[b]/(1-pi[a]), (1-stay)/float64(len(pi)-1)
	}
	for i, mass := range priorMasses {
		for j, p := range base {
			if at := i*priorBases + j; j > 0 && p == base[j-1] { // a label that stays: two bases are alike
				dst[at] = dst[at-1]
			} else {
				dst[at] = math.Log(max((float64(row[b])+mass*p)/(n+mass), floorProb))
			}
		}
	}
}

// stepTo stores from·R, the distribution one distance after from, in dst: C each.
// O(C²), O(C) if from is certain of the class.
func (m *Moves) stepTo(dst, from, pi []float64) {
	c := len(pi)
	stay := m.stay()
	weights := m.Evidence
	softmax(weights[:])
	var even, likePi float64 // probability that is shared out evenly, and as pi is
	clear(dst)
	for a, p := range from {
		if p == 0 {
			continue
		}
		row, n := m.row(a, c)
		var counted float64
		var based [priorBases]float64
		for i, mass := range priorMasses {
			one := p / (n + mass)
			for j, w := range weights[i*priorBases : (i+1)*priorBases] {
				counted += one * w
				based[j] += one * w * mass
			}
		}
		elsewhere, evenly := based[2]*(1-stay)/(1-pi[a]), based[3]*(1-stay)/float64(c-1)
		likePi += based[0] + elsewhere
		even += based[1]/float64(c) + evenly
		dst[a] += stay*(based[2]+based[3]) - elsewhere*pi[a] - evenly
		if n > 0 {
			for b, v := range row {
				dst[b] += counted * float64(v)
			}
		}
	}
	for b, v := range pi {
		dst[b] += even + likePi*v
	}
}
