package sep

import (
	"math"

	"edge/model/dense"
)

// sweeps learns the n new samples of work.batch, under every horizon: it refines sites,
// fades the absorbed ones, and absorbs those of the points that leave the window. The
// recent samples are the new ones and those that were filtered before them. It leaves
// the posteriors as they were, and in work.grad the gradient with respect to the
// features of that many of the latest samples, points; if points is 0, the parameters
// stay and the posteriors are new as well.
func (b *Bank) sweeps(n, points int) error {
	w, m, d := &b.work, b.cfg.Inducing, b.cfg.Features
	f := &w.features
	if !f.current {
		b.updateFeatures()
	}
	old, recent := len(b.winY), b.filtered+n
	b.winX, b.winY, b.winW = append(b.winX, w.batch.x[:n*d]...), append(b.winY, w.batch.latents[:n]...), append(b.winW, w.batch.weights[:n]...)
	total := old + n
	out := max(0, total-max(b.cfg.Window, recent))
	for g := range b.bases {
		b.featuresTogether(g, old, total, newRows)
		w.grad.ev[g].Resize(points, m, d)
	}

	first := b.firstRefined(out, recent, points)
	for s := range b.cfg.Sweeps {
		if err := b.sweep(sweeping{s: s, first: first, n: n, points: points}); err != nil {
			return err
		}
	}
	if points == 0 {
		b.renewFeatures(n, recent, out)
	}
	if err := b.absorb(out, recent, points == 0); err != nil {
		return err
	}
	b.winX, b.winY, b.winW = append(b.winX[:0], b.winX[out*d:]...), append(b.winY[:0], b.winY[out:]...), append(b.winW[:0], b.winW[out:]...)
	for g := range b.bases {
		copy(f.kx[g], f.kx[g][out*m:total*m])
		copy(f.w[g], f.w[g][out*m:total*m])
		copy(f.q[g], f.q[g][out:total])
	}
	b.filtered = 0
	return nil
}

// firstRefined is the first of the window points whose sites a step of so many recent
// samples refines. The first out points leave the window, and the gradient follows so many
// of the latest points, which have to be among the refined ones. While the model warms up,
// and parameters and posterior change much, all are refined; later those of the latest
// refinedSteps steps.
func (b *Bank) firstRefined(out, recent, points int) int {
	if !b.live {
		return out
	}
	return max(out, len(b.winY)-max(refinedSteps*recent, points))
}

// damping is that of the update of window point i after the first sweep, where the last n
// points are new. A new site was matched to the product of its C−1 pairs at once, which
// is the less exact the more of them there are: after the warm-up, where a site is refined a
// few times only, 2/C of what another one keeps is kept of it.
func (b *Bank) damping(i, n int) float64 {
	if !b.live || i < len(b.winY)-n-b.filtered {
		return b.cfg.Damping
	}
	return 1 - 2*(1-b.cfg.Damping)/float64(len(b.view.Latent))
}

// absorb fades the absorbed sites by the recent samples, and absorbs those of the out
// oldest points, which it removes from the sites of the window. If refresh is true, it
// also recomputes the posteriors, in the same basis.
func (b *Bank) absorb(out, recent int, refresh bool) error {
	t, m, total := &b.work.tasks, float64(b.cfg.Inducing), len(b.winY)
	t.out, t.recent = out, recent
	for h := range b.sites {
		if gamma := b.fading(h, recent); gamma < 1 {
			b.fadeJoined(h, gamma)
		}
	}
	cost, task := m*m*(4+float64(out)/2), t.absorb
	if refresh {
		t.horizon, t.from, t.to = 0, out, total
		cost, task = cost+m*m*(b.factors()*m/3+float64(total-out)/2), t.renew
	}
	if err := b.team.run(len(b.sites)*len(b.view.Latent), cost, task); err != nil {
		return err
	}
	if refresh {
		b.refreshForeign()
	}
	return nil
}

// renewPosterior is task i of absorb with refresh.
func (b *Bank) renewPosterior(worker, i int) error {
	if err := b.absorbSites(worker, i); err != nil {
		return err
	}
	return b.refreshPosterior(worker, i)
}

// fading is the factor of the sites of horizon h after that many samples.
func (b *Bank) fading(h, samples int) float64 {
	length := min(b.sites[h].length, b.reach)
	if math.IsInf(length, 1) {
		return 1
	}
	return 1 - float64(samples)/max(length, float64(samples))
}

// absorbSites is task i of absorb.
func (b *Bank) absorbSites(worker, i int) error {
	t, m, total := &b.work.tasks, b.cfg.Inducing, len(b.winY)
	h, k, out := i/len(b.view.Latent), i%len(b.view.Latent), t.out
	z, a := &b.sites[h], b.precision(h, k)
	sum := z.b[k*m : (k+1)*m]
	if gamma := b.fading(h, t.recent); gamma < 1 {
		a.fade(gamma)
		Scale(gamma, sum)
	}
	if out == 0 {
		return nil
	}
	leaving, square := b.work.features.w[b.basis(k)][:out*m], b.work.project.workers[worker].square
	s1, s2 := z.s1[k*b.capacity:(k+1)*b.capacity], z.s2[k*b.capacity:(k+1)*b.capacity]
	a.load(square)
	dense.WeightedGram(out, m, s1, 1, leaving, m, square, m)
	a.store(square)
	dense.Gemv(true, out, m, 1, leaving, m, s2[:out], 1, sum)
	for _, sites := range z.window() {
		row := (*sites)[k*b.capacity : k*b.capacity+total]
		copy(row, row[out:])
		clear(row[total-out:])
	}
	return nil
}

// sweeping is one sweep over the window, for all horizons.
type sweeping struct {
	s, first, n, points int // number of the sweep; first point; new points; latest points of the gradient
	last                bool
}

// chunk is the number of window points whose sites a task updates.
const chunk = 8

// Multiplications as long as a point's share of a sweep, of each horizon and latent
// function.
const siteCost = 3000

// sweep updates the sites of the window points from first on in parallel; all
// sweeps but the last one update those of the n new points alone. The gradient is taken
// of the last points ones, in the last sweep. In the first sweep a new point's cavity is the
// posterior before it (assumed-density filtering), its site is taken whole, and
// its label is believed; later sweeps are damped and weigh the label noise.
//
// The likelihood of a sample of weight w is taken to the power w: its site is
// that of one copy to the power w, and the cavity of a copy leaves out that copy
// alone, as if it had been learnt w times at once. A sample of a weight below 1
// has a cavity without it.
func (b *Bank) sweep(s sweeping) error {
	t, m, total := &b.work.tasks, float64(b.cfg.Inducing), len(b.winY)
	if s.last = s.s == b.cfg.Sweeps-1; !s.last {
		s.first = total - s.n
	}
	t.sweeping = s
	points, posteriors := total-s.first, len(b.sites)*len(b.view.Latent)
	if err := b.team.run(posteriors, float64(points)*m*(m/2+float64(2*s.n)), t.marginals); err != nil {
		return err
	}
	b.backup.sitesKept = true
	if err := b.team.run((points+chunk-1)/chunk, float64(chunk*posteriors)*siteCost, t.refine); err != nil {
		return err
	}
	if !s.last || s.points == 0 {
		return nil
	}
	b.sumNoise(s.points)
	if err := b.team.run(posteriors, float64(s.points)*m*m/2, t.features); err != nil {
		return err
	}
	b.addFeatureGradient(s.points)
	return nil
}

// follows reports whether a sweep takes the gradient under horizon h.
func (b *Bank) follows(s *sweeping, h int) bool {
	return s.last && s.points > 0 && b.weight(h) > minWeight
}

// marginalsOf is task i of a sweep's first part.
func (b *Bank) marginalsOf(worker, i int) error {
	s := &b.work.tasks.sweeping
	h, k := i/len(b.view.Latent), i%len(b.view.Latent)
	if !b.backup.sitesKept {
		b.keep(h, k)
		if i == 0 {
			b.keepPoints()
		}
	}
	b.marginals(worker, h, k)
	if s.s > 0 && s.n > 0 {
		b.addNew(worker, h, k)
	}
	if b.follows(s, h) {
		b.keepRows(worker, h, k)
	}
	return nil
}

// refineChunk is task i of a sweep's second part: it updates the sites of some points
// under every horizon.
func (b *Bank) refineChunk(worker, i int) error {
	s := &b.work.tasks.sweeping
	from := s.first + i*chunk
	for h := range b.sites {
		for at := from; at < min(from+chunk, len(b.winY)); at++ {
			b.refine(worker, h, at)
		}
	}
	return nil
}

// refine updates the site of window point i under horizon h.
func (b *Bank) refine(worker, h, i int) {
	w, s, capacity, total := &b.work, &b.work.tasks.sweeping, b.capacity, len(b.winY)
	z, st, classes, eps := &b.sites[h], &w.sites[worker], len(b.view.Latent), b.bases[0].Eps
	mean, variance := w.moments(h, classes*capacity)
	whole, fresh := s.s == 0 && i >= total-s.n, s.last && i >= total-s.points
	y, power := b.winY[i], b.winW[i]
	copies := max(power, 1)
	for k := range classes {
		at := k*capacity + i
		a, v, _ := Cavity(mean[at], variance[at], z.s1[at]/copies, z.s2[at]/copies)
		st.A[k], st.V[k], st.T[k] = a, v, w.features.q[b.basis(k)][i]+v
	}
	label, qy := y*capacity+i, w.features.q[b.basis(y)][i]
	for k := range classes {
		at := k*capacity + i
		a, v, _ := Cavity(mean[label], variance[label], z.p1[at]/copies, z.p2[at]/copies)
		st.LA[k], st.LV[k], st.LT[k] = a, v, qy+v
	}
	robust, py := eps, 1.0
	if whole {
		robust = 0
	}
	if eps > 0 && (robust > 0 || fresh) {
		py = st.Probability(y)
	}
	st.Update(y, whole, robust, py)
	if fresh {
		b.noteGradient(worker, h, i, py)
	}
	rho := b.damping(i, s.n)
	if whole {
		rho = 1
	}
	for k := range classes {
		at := k*capacity + i
		z.s1[at] += rho * (power*st.S1[k] - z.s1[at])
		z.s2[at] += rho * (power*st.S2[k] - z.s2[at])
		z.p1[at] += rho * (power*st.P1[k] - z.p1[at])
		z.p2[at] += rho * (power*st.P2[k] - z.p2[at])
	}
}

// weight is the weight of horizon h in the gradient.
func (b *Bank) weight(h int) float64 {
	if b.OwnWeights != nil {
		return b.OwnWeights[h]
	}
	return b.view.Weights[h]
}

// Scale multiplies x by f.
func Scale(f float64, x []float64) {
	for i := range x {
		x[i] *= f
	}
}
