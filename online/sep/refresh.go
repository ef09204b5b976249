package sep

import (
	"fmt"

	"edge/model/dense"
)

// Refresh recomputes the window's features in the current basis and every
// posterior. The result is a function of the state alone, so that a restored bank
// holds the same numbers, to the last bit: filtered samples are included one by
// one here as well. The error is model.ErrFactor or model.ErrNotFinite.
func (b *Bank) Refresh() error {
	b.ownForStep()
	b.updateFeatures()
	return b.refreshAll()
}

func (b *Bank) updateFeatures() {
	b.makeWork()
	swept := len(b.winY) - b.filtered
	for g := range b.bases {
		b.featuresTogether(g, 0, swept, someRows)
		for at := swept; at < len(b.winY); at++ {
			b.featuresOf(g, at, 1)
		}
	}
	b.work.features.current = true
}

// The least number of window points whose features are a task, unless all are fewer: more
// than dense.Few, so that they have the bits that they have among all.
const (
	someRows = 24
	newRows  = 8 // of new points
)

// featuresTogether computes the features in basis g of the window points from from to to,
// in tasks of so many points.
func (b *Bank) featuresTogether(g, from, to, points int) {
	t, n, m := &b.work.tasks, to-from, b.cfg.Inducing
	t.place, t.from, t.to, t.step = g, from, to, points
	_ = b.team.run(max(n/points, 1), float64(min(n, points)*m*(m+2*b.cfg.Features)/2), t.window)
}

// windowFeatures is task i of featuresTogether; the last one also has the points that are
// left over.
func (b *Bank) windowFeatures(_, i int) error {
	t := &b.work.tasks
	at, n := t.from+i*t.step, t.step
	if at+2*n > t.to {
		n = t.to - at
	}
	b.featuresOf(t.place, at, n)
	return nil
}

// renewFeatures makes the window's features, but for the first out points that leave it,
// those of updateFeatures afterwards, to the last bit, in a step that keeps the basis. n of
// the recent samples are new, the others were filtered before. Rows that were computed at
// most dense.Few at a time have other bits than they have among more; they are computed
// again, with dense.Few rows beside them.
func (b *Bank) renewFeatures(n, recent, out int) {
	at := max(out, len(b.winY)-recent-dense.Few)
	if at > out && n == recent && n > dense.Few {
		return
	}
	for g := range b.bases {
		b.featuresOf(g, at, len(b.winY)-at)
	}
}

// featuresOf computes the features in basis g of the n window points from at on.
func (b *Bank) featuresOf(g, at, n int) {
	f, m, d := &b.work.features, b.cfg.Inducing, b.cfg.Features
	b.bases[g].FeaturesTo(f.kx[g][at*m:], f.w[g][at*m:], f.q[g][at:], n, b.winX[at*d:(at+n)*d], f.xs[at*d:], f.xx[at:])
}

func (b *Bank) refreshAll() error {
	swept := len(b.winY) - b.filtered
	if err := b.refresh(0, len(b.sites), 0, swept); err != nil {
		return err
	}
	b.refreshForeign()
	for h := range b.sites {
		for at := swept; at < len(b.winY); at++ {
			b.project(h, at)
			if err := b.include(h, at); err != nil {
				return err
			}
			b.includeJoined(h, at)
		}
	}
	return nil
}

// factors is the mean number of factorisations in the refresh of a posterior, with those
// of a fleet that join it.
func (b *Bank) factors() float64 { return 1 + float64(len(b.joined))/float64(len(b.sites)) }

// refresh recomputes the posteriors of the horizons from first to end from their
// absorbed sites and those of the window points, whose features are rows from to to.
func (b *Bank) refresh(first, end, from, to int) error {
	t, m, classes := &b.work.tasks, b.cfg.Inducing, len(b.view.Latent)
	t.horizon, t.from, t.to = first, from, to
	return b.team.run((end-first)*classes, float64(m*m)*(b.factors()*float64(m)/3+float64(to-from)/2), t.refresh)
}

// refreshPosterior recomputes the posterior of task i of refresh, and those of a fleet that
// join it.
func (b *Bank) refreshPosterior(worker, i int) error {
	w, m, classes := &b.work, b.cfg.Inducing, len(b.view.Latent)
	t := &w.tasks
	h, k, keep := t.horizon+i/classes, i%classes, t.to-t.from
	z, g, bt := &b.sites[h], &b.view.Bank[h], w.bt[worker*m:(worker+1)*m]
	wk := w.features.w[b.basis(k)][t.from*m : t.to*m]
	u := g.U[k*m*m : (k+1)*m*m]
	b.precision(h, k).load(u)
	dense.WeightedGram(keep, m, z.s1[k*b.capacity:], 1, wk, m, u, m)
	copy(bt, z.b[k*m:(k+1)*m])
	dense.Gemv(true, keep, m, 1, wk, m, z.s2[k*b.capacity:k*b.capacity+keep], 1, bt)
	b.addJoined(h, k, u, bt)
	y := w.y[worker*m : (worker+1)*m]
	if err := g.Factor(k, bt, y); err != nil {
		return fmt.Errorf("online: horizon %g: %w", z.length, err)
	}
	b.refreshJoined(h, k, y)
	return nil
}
