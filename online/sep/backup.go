package sep

import "slices"

// backup is a copy of the state before a step, for Undo.
type backup struct {
	state                  // without the absorbed sites' precisions
	A          [][]float64 // of each horizon, C×M(M+1)/2: these
	window     int         // points of the window
	sitesKept  bool        // sites and points were copied since the last save
	paramsKept bool        // parameters and optimiser were
}

// newBackup makes room for a copy of s.
func newBackup(s *state) backup {
	b := backup{state: state{
		params: s.params, opt: s.opt, scale: s.scale, sites: slices.Clone(s.sites),
		winX: make([]float64, 0, cap(s.winX)), winY: make([]int, 0, cap(s.winY)), winW: make([]float64, 0, cap(s.winW)),
	}}
	b.params.Theta = slices.Clone(s.params.Theta)
	b.opt.M, b.opt.V = slices.Clone(s.opt.M), slices.Clone(s.opt.V)
	b.scale.Mu, b.scale.Sd = slices.Clone(s.scale.Mu), slices.Clone(s.scale.Sd)
	for h := range b.sites {
		to, from := &b.sites[h], &s.sites[h]
		to.diagonal, to.b = nil, slices.Clone(from.b)
		for i, sites := range from.window() {
			*to.window()[i] = slices.Clone(*sites)
		}
		b.A = append(b.A, make([]float64, len(from.b)/s.params.M*packed(s.params.M)))
	}
	return b
}

// save begins a copy of the bank's state, which has its shape. It copies little: a step
// copies the rest before it changes that.
func (b *Bank) save() {
	to := &b.backup
	copy(to.scale.Mu, b.scale.Mu)
	copy(to.scale.Sd, b.scale.Sd)
	to.filtered, to.waiting = b.filtered, b.waiting
	to.window, to.sitesKept, to.paramsKept = len(b.winY), false, false
}

// keepParams copies the parameters to work.theta0, and with the optimiser to the backup,
// unless that was done since the last save. It comes before each change of them.
func (b *Bank) keepParams() {
	copy(b.work.theta0, b.params.Theta)
	if to := &b.backup; !to.paramsKept {
		to.paramsKept = true
		copy(to.params.Theta, b.params.Theta)
		to.opt.copyFrom(&b.opt)
	}
}

// keepSites copies sites and points, unless that was done since the last save. It comes
// before each change of them, but for points that are added behind the others. The first
// sweep of a step does it for each posterior as it begins with that.
func (b *Bank) keepSites() {
	if b.backup.sitesKept {
		return
	}
	b.keepPoints()
	for h := range b.sites {
		for k := range b.view.Latent {
			b.keep(h, k)
		}
	}
	b.backup.sitesKept = true
}

// keepPoints copies the window's points.
func (b *Bank) keepPoints() {
	to := &b.backup
	to.winX = append(to.winX[:0], b.winX[:to.window*b.cfg.Features]...)
	to.winY, to.winW = append(to.winY[:0], b.winY[:to.window]...), append(to.winW[:0], b.winW[:to.window]...)
}

// keep copies the sites of latent function k under horizon h.
func (b *Bank) keep(h, k int) {
	to, m := &b.backup, b.cfg.Inducing
	b.precision(h, k).pack(to.A[h][k*packed(m):])
	copy(to.sites[h].b[k*m:(k+1)*m], b.sites[h].b[k*m:])
	for i, sites := range b.sites[h].window() {
		copy((*to.sites[h].window()[i])[k*b.capacity:][:to.window], (*sites)[k*b.capacity:])
	}
}

// restore copies the backup to the bank's state.
func (b *Bank) restore() {
	from, m, d := &b.backup, b.cfg.Inducing, b.cfg.Features
	copy(b.scale.Mu, from.scale.Mu)
	copy(b.scale.Sd, from.scale.Sd)
	b.filtered, b.waiting = from.filtered, from.waiting
	if from.paramsKept {
		copy(b.params.Theta, from.params.Theta)
		b.opt.copyFrom(&from.opt)
	}
	if from.sitesKept {
		b.winX, b.winY, b.winW = append(b.winX[:0], from.winX...), append(b.winY[:0], from.winY...), append(b.winW[:0], from.winW...)
	} else {
		b.winX, b.winY, b.winW = b.winX[:from.window*d], b.winY[:from.window], b.winW[:from.window]
	}
	for h := range b.sites {
		for k := range b.view.Latent {
			if from.sitesKept {
				b.precision(h, k).unpack(from.A[h][k*packed(m):])
				copy(b.sites[h].b[k*m:(k+1)*m], from.sites[h].b[k*m:])
			}
			for i, sites := range b.sites[h].window() {
				row := (*sites)[k*b.capacity : (k+1)*b.capacity]
				if from.sitesKept {
					copy(row[:from.window], (*from.sites[h].window()[i])[k*b.capacity:])
				}
				clear(row[from.window:]) // as it was before points were added
			}
		}
	}
}
