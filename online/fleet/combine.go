package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"edge/model"
	"edge/model/dense"
	"edge/online/natural"
)

// Rules of a merge.
const (
	maxClaim = 10 // of the median precision, by which a contribution is too sure

	// DefaultTrust is the least Trust of a contribution that is taken, in standard errors.
	DefaultTrust = -2
)

// Receiver describes the member that computes a merge.
type Receiver struct {
	Member   string
	Features uint64 // digest of its features, see the function Features
	Inputs   int    // number of them
	// Basis is the one on which the sums are written. Without inducing points the receiver
	// has none yet, and that of the contribution with the most labels is taken, or one of all
	// members if this one does not know all their classes.
	Basis
	Units                    // that the features of all members have in common
	Horizons []float64       // that the fleet joins, the longest first
	Own      *Contribution   // nil: none yet; it bounds the precision of the others
	Window   *Window         // nil: no member is tested
	Labels   *Labels         // nil: no forest is tested
	Shared   bool            // it shares a basis
	Birth                    // of its common basis; Number 0: it has none
	Inducing int             // its number of inducing points, if it shares a basis
	Experts  natural.Experts // of its blends
	Trust    float64         // least trust; −Inf: no member is refused
	Mix      bool            // it wants the sums Unseen of a merge
}

// sum is the sum of one class.
type sum struct {
	a, b []float64 // H×M×M lower triangles, H×M
}

// Merge adds the contributions of a set, and decides how a receiver that shares a basis
// changes its own. The result is a function of the receiver and the set. The error is
// model.ErrFactor if a basis does not factor.
func (r *Receiver) Merge(s *Set) (*Merge, error) {
	m, err := r.sum(s)
	if err == nil && r.Shared {
		err = r.share(m, s)
	}
	return m, err
}

// sum adds the contributions.
func (r *Receiver) sum(s *Set) (*Merge, error) {
	m := &Merge{Basis: r.Basis.clone(), Horizons: slices.Clone(r.Horizons), Weights: make([]float64, len(r.Horizons))}
	var open []int // of the members that no reason refuses yet
	for i, c := range s.members {
		m.Members = append(m.Members, Member{Name: c.Member, Version: c.Version, N: c.N, Refused: r.judge(c)})
		if m.Members[i].Refused == None {
			open = append(open, i)
		}
	}
	open = r.bound(m, s, open)
	if !r.tests() && !math.IsInf(r.Trust, -1) {
		open = r.crossCheck(m, s, open)
	}
	if len(open) == 0 {
		return m, nil
	}
	p, open, err := r.projector(m, s, open)
	if err != nil {
		return nil, err
	}
	if len(open) == 0 {
		return m, nil
	}
	t, err := newTrial(r.Window, m.Params.M)
	if err != nil {
		return nil, err
	}
	sums, forests := map[string]*sum{}, r.candidates(s, open)
	for _, i := range open {
		r.add(&m.Members[i], s.members[i], forests[i], p, t, sums)
	}
	if t != nil {
		m.Comparison = r.compare(m, s, p, t)
	}
	if m.Taken() == 0 {
		return m, nil
	}
	m.weigh(s)
	if t != nil {
		m.Tested = true
		if m.Trust, err = t.trust(func(class string, a, b []float64) {
			if total := sums[class]; total != nil {
				dense.Axpy(1, total.a[:len(a)], a) // of the longest horizon, as the trial is
				dense.Axpy(1, total.b[:len(b)], b)
			}
		}); err != nil {
			return nil, err
		}
	}
	if taken := s.taken(m); r.Own == nil && differ(taken) {
		if of := r.seen(taken, p); of != nil {
			sums = of
		}
	}
	r.addForests(m, forests)
	r.addExponents(m, s)
	if r.Mix && r.Own != nil && lacks(r.Own, s.taken(m)) {
		m.Unseen = r.unseen(s.taken(m))
	}
	return m, m.set(sums)
}

// projector returns one on the basis of the sums, and the members that are left. A receiver without a
// basis takes that of the member with the most labels, of those whose basis factors, or one of all
// members if this one does not know all their classes. None is left where no basis factors.
func (r *Receiver) projector(m *Merge, s *Set, open []int) (p *projector, left []int, err error) {
	if m.Params.M > 0 {
		p, err = newProjector(&m.Basis, r.Units)
		return p, open, err
	}
	for left = open; len(left) > 0; {
		at := 0 // of equals the first name
		for i := range left {
			if s.members[left[i]].N > s.members[left[at]].N {
				at = i
			}
		}
		largest := s.members[left[at]]
		if lacks(largest, s.taken(m)) {
			m.Basis = *poolOf(s.taken(m), r.Units, largest.Params.M)
			if p, err = newProjector(&m.Basis, r.Units); err == nil {
				return p, left, nil
			}
		}
		m.Basis = largest.Basis.clone()
		if p, err = newProjector(&m.Basis, r.Units); err == nil {
			return p, left, nil
		}
		m.Members[left[at]].Refused = NotFactored
		left = slices.Delete(left, at, at+1)
	}
	m.Basis = r.Basis.clone()
	return nil, nil, nil
}

// tests reports whether the receiver has enough labels to test contributions by them.
func (r *Receiver) tests() bool { return r.Window != nil && len(r.Window.Y) >= MinWindow }

// weigh sets the weights of the horizons by those of the members that are taken.
func (m *Merge) weigh(s *Set) {
	var labels float64
	for _, v := range m.Members {
		if v.Refused == None {
			labels += float64(v.N)
		}
	}
	for i, v := range m.Members {
		for h, length := range m.Horizons {
			if at := slices.Index(s.members[i].Horizons, length); at >= 0 && v.Refused == None {
				m.Weights[h] += float64(s.members[i].Weights[at] * float64(v.N) / labels)
			}
		}
	}
	for h, v := range m.Weights {
		m.Weights[h] = min(v, 1) // a sum of rounded parts
	}
}

// judge returns a reason to refuse c that its header gives.
func (r *Receiver) judge(c *Contribution) Reason {
	switch {
	case c.Member == r.Member:
		return Own
	case c.Features != r.Features || c.Params.D != r.Inputs:
		return OtherInputs
	case r.shared(c) < 0:
		return OtherShape
	}
	return None
}

// shared is the first of the receiver's horizons that c has; −1 if there is none.
func (r *Receiver) shared(c *Contribution) int {
	return slices.IndexFunc(r.Horizons, func(length float64) bool { return slices.Contains(c.Horizons, length) })
}

// claim is the precision that a contribution claims to have learnt, and from how many labels.
type claim struct {
	precision float64 // that all its labels have given to the latent functions
	labels    float64
}

// each is the precision for each label.
func (c claim) each() float64 { return c.precision / c.labels }

// claim returns what c claims under the longest horizon that it shares with the receiver.
func (r *Receiver) claim(c *Contribution) claim {
	trace := c.trace(slices.Index(c.Horizons, r.Horizons[r.shared(c)]))
	return claim{trace / math.Exp(*c.Params.LogAmp()), float64(c.N)}
}

// bound refuses the open members that claim too much: more than maxClaim times what the median
// of them all and the receiver claims for each label, and for as many labels as that one has.
// A member that claims far more labels than it has claims little for each of them, and does not
// make those too sure that state their number. Of an even number the lower median counts.
func (r *Receiver) bound(m *Merge, s *Set, open []int) (left []int) {
	claims := make([]claim, 0, len(open)+1)
	for _, i := range open {
		claims = append(claims, r.claim(s.members[i]))
	}
	if r.Own != nil {
		claims = append(claims, r.claim(r.Own))
	}
	order := make([]int, len(claims))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(claims[i].each(), claims[j].each()) })
	for at, i := range open {
		median := claims[order[(len(order)-1)/2]]
		if claims[at].precision > maxClaim*median.each()*max(claims[at].labels, median.labels) {
			m.Members[i].Refused = TooSure
			continue
		}
		left = append(left, i)
	}
	return left
}

// add tests a contribution and adds it to the sums, or notes why not. Without a trial it was
// tested before. f is its forest; nil: it has none.
func (r *Receiver) add(v *Member, c *Contribution, f *candidate, p *projector, t *trial, sums map[string]*sum) {
	classes := len(sums)
	for _, name := range c.Classes {
		if sums[name] == nil {
			classes++
		}
	}
	if classes > model.MaxClasses {
		v.Refused = TooManyNames
		return
	}
	sites := r.sites(c, p)
	if sites == nil {
		v.Refused = NotFactored
		return
	}
	size := p.m
	first := r.shared(c)
	if v.Refused = r.test(v, c, f, t, func(class string, a, b []float64) {
		if k := slices.Index(c.Classes, class); k >= 0 {
			dense.Axpy(1, sites[k].a[first*size*size:(first+1)*size*size], a)
			dense.Axpy(1, sites[k].b[first*size:(first+1)*size], b)
		}
	}); v.Refused != None {
		return
	}
	for k, name := range c.Classes {
		include(sums, name, sites[k])
	}
}

// sites returns the sites of the classes of a contribution under the receiver's horizons, on the basis of
// p. They are valid until the next call. Nil: they do not factor.
func (r *Receiver) sites(c *Contribution, p *projector) []sum {
	if p.from(&c.Basis) != nil {
		return nil
	}
	size := p.m
	for len(p.sites) < len(c.Classes) {
		p.sites = append(p.sites, sum{make([]float64, len(r.Horizons)*size*size), make([]float64, len(r.Horizons)*size)})
	}
	sites := p.sites[:len(c.Classes)]
	for h, length := range r.Horizons {
		at := slices.Index(c.Horizons, length)
		for k := range sites {
			a, b := sites[k].a[h*size*size:(h+1)*size*size], sites[k].b[h*size:(h+1)*size]
			if at < 0 {
				clear(a)
				clear(b)
				continue
			}
			if !p.project(c, at, k, a, b) {
				return nil
			}
		}
	}
	return sites
}

// include adds sites to the sum of a class.
func include(sums map[string]*sum, name string, sites sum) {
	if total := sums[name]; total != nil {
		dense.Axpy(1, sites.a, total.a)
		dense.Axpy(1, sites.b, total.b)
	} else {
		sums[name] = &sum{slices.Clone(sites.a), slices.Clone(sites.b)}
	}
}

// test tests a member by own labels: its sites, which add adds, and its forest. Without a trial the
// sites were tested before. A forest is sure of what noisy labels have taught it, so that it may answer
// worse than the frequencies where there is something to learn: it is no proof against a member whose
// forest and sites both go with own labels, the sites beyond chance. It is one where the forest of
// another member shows that there is more to learn, unless own labels trust the sites.
func (r *Receiver) test(v *Member, c *Contribution, f *candidate, t *trial, add func(class string, a, b []float64)) Reason {
	if t != nil {
		var err error
		if v.Trust, err = t.trust(add); err != nil {
			return NotFactored
		}
		if v.Tested = true; v.Trust < r.least(c, f) {
			return Distrusted
		}
	}
	if f.outdone(r.Trust) && v.Trust < r.Trust+2*allowance {
		return Misleading
	}
	if !f.misleads(r.Trust) {
		return None
	}
	if t != nil && f.skill > 0 {
		if skill, err := t.skill(add); err != nil {
			return NotFactored
		} else if skill >= minSkill {
			return None
		}
	}
	return Misleading
}

// set stores the sums, rounded.
func (m *Merge) set(sums map[string]*sum) error {
	size := m.Params.M
	m.Classes = slices.Sorted(maps.Keys(sums))
	for h := range m.Horizons {
		for _, name := range m.Classes {
			a, b := sums[name].a[h*size*size:(h+1)*size*size], sums[name].b[h*size:(h+1)*size]
			allowRounding(a, size)
			for i := range size {
				for _, v := range a[i*size : i*size+i+1] {
					m.A = append(m.A, float32(v))
				}
				m.B = append(m.B, float32(b[i]))
			}
			if !factors(a, size) {
				return fmt.Errorf("fleet: sum of class %.40q: %w", name, model.ErrFactor)
			}
		}
	}
	return nil
}

// allowRounding makes room for the rounding of A, the lower triangle of a sum of matrices each of which
// factors: if A does not, its diagonal grows by a part of its trace, which is above the errors of 32
// bits.
func allowRounding(a []float64, m int) {
	var trace float64
	for i := range m {
		trace += a[i*m+i]
	}
	if trace <= maxRounding || factors(slices.Clone(a), m) {
		return
	}
	for i := range m {
		a[i*m+i] += trace / maxRounding
	}
}

// factors reports whether ½I + A is positive definite once A, a lower triangle, is
// rounded to 32 bits: I + A and any posterior with it are then far from singular. It
// overwrites A.
func factors(a []float64, m int) bool {
	for i := range m {
		for j := range i + 1 {
			a[i*m+j] = float64(float32(a[i*m+j]))
		}
		a[i*m+i] += 0.5
	}
	return dense.Cholesky(m, a, m)
}
