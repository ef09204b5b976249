package sep

import (
	"slices"

	"edge/model"
	"edge/online/wire"
)

// EncodeScale appends the feature scaling, and once the warm-up is over the
// standard deviations at its end.
func (b *Bank) EncodeScale(e *wire.Encoder, warm bool) {
	e.Floats(b.view.Scale.Mu)
	e.Floats(b.view.Scale.Sd)
	if warm {
		e.Floats(b.sd0)
	}
}

// DecodeScale reads the values that EncodeScale wrote.
func (b *Bank) DecodeScale(d *wire.Decoder, warm bool) {
	d.Numbers(b.view.Scale.Mu, "scale")
	d.Numbers(b.view.Scale.Sd, "scale")
	if warm {
		b.sd0 = make([]float64, b.cfg.Features)
		d.Numbers(b.sd0, "scale")
	}
	for _, sd := range slices.Concat(b.view.Scale.Sd, b.sd0) {
		if sd <= 0 {
			d.Fail("a standard deviation is not positive")
		}
	}
}

// EncodeRanks appends the ranks of the feature scaling; nothing where it has none.
func (b *Bank) EncodeRanks(e *wire.Encoder) { e.Floats(b.view.Scale.Ranks) }

// DecodeRanks reads the values that EncodeRanks wrote.
func (b *Bank) DecodeRanks(d *wire.Decoder) {
	ranks := d.Floats(b.cfg.Features*model.RankPoints, "ranks")
	for i, v := range ranks {
		if v-v != 0 || i%model.RankPoints > 0 && v < ranks[i-1] {
			d.Fail("the ranks of a feature do not rise, or are not finite")
			return
		}
	}
	if d.Err() == nil {
		b.scale.Ranks, b.view.Scale.Ranks = ranks, ranks
	}
}

// EncodeParams appends the sizes of the model, its parameters and the optimiser.
func (b *Bank) EncodeParams(e *wire.Encoder) {
	e.Int(len(b.winY))
	e.Int(len(b.view.Latent))
	e.Ints(b.view.Latent)
	e.Floats(b.params.Theta)
	e.Floats(b.opt.M)
	e.Floats(b.opt.V)
	e.Uint(b.opt.Steps)
}

// DecodeParams reads the values that EncodeParams wrote, and returns the size of
// the window for DecodeSites.
//
//	classes  the number of classes
//	window   the largest possible window
//	pending  samples in the minibatch that is filling: as many have to fit
func (b *Bank) DecodeParams(d *wire.Decoder, classes, window, pending int) (n int) {
	scale := b.view.Scale
	n = d.Int(window+Replay, "window")
	// Minibatch and window of a larger minibatch size still fit.
	b.makeRoom(max(b.cfg.Batch, pending+1), n)
	b.allocate()
	copy(b.view.Scale.Mu, scale.Mu)
	copy(b.view.Scale.Sd, scale.Sd)
	c := d.Int(classes, "latent functions")
	b.reserve(c)
	seen := make([]bool, classes)
	for _, k := range d.Ints(c, classes, "class of a latent function") {
		if d.Err() != nil {
			return 0
		}
		if seen[k] {
			d.Fail("two latent functions of one class")
			return 0
		}
		seen[k] = true
		b.Grow(k)
	}
	d.Fill(b.params.Theta, "parameters")
	d.Numbers(b.opt.M, "optimiser")
	d.Numbers(b.opt.V, "optimiser")
	for _, v := range b.opt.V {
		if v < 0 {
			d.Fail("a squared gradient is negative")
		}
	}
	b.opt.Steps = d.Uint()
	return n
}

// EncodeSites appends the window and the sites of every horizon: of A the lower
// triangles alone.
func (b *Bank) EncodeSites(e *wire.Encoder) {
	m := b.cfg.Inducing
	e.Floats(b.winX)
	e.Ints(b.winY)
	for h := range b.sites {
		z := &b.sites[h]
		for k := range b.view.Latent {
			a := b.precision(h, k)
			for i := range m {
				e.Floats(a.row(i))
				e.Float(a.diagonal[i])
			}
			at := k * b.capacity
			e.Floats(z.s1[at : at+len(b.winY)])
			e.Floats(z.s2[at : at+len(b.winY)])
		}
		e.Floats(z.b)
	}
}

// DecodeSites reads the values that EncodeSites wrote, with a window of n points
// of weight 1, and computes the posteriors.
func (b *Bank) DecodeSites(d *wire.Decoder, n int) {
	m, c := b.cfg.Inducing, len(b.view.Latent)
	b.winX = append(b.winX[:0], d.Floats(n*b.cfg.Features, "window")...)
	b.winY = append(b.winY[:0], d.Ints(n, c, "label")...)
	b.winW = b.winW[:0]
	for range n {
		b.winW = append(b.winW, 1)
	}
	for h := range b.sites {
		z := &b.sites[h]
		for k := range c {
			a := b.precision(h, k)
			for i := range m {
				d.Fill(a.row(i), "absorbed sites")
				d.Fill(a.diagonal[i:i+1], "absorbed sites")
			}
			at := k * b.capacity
			d.Fill(z.s1[at:at+n], "sites")
			d.Fill(z.s2[at:at+n], "sites")
		}
		d.Fill(z.b, "absorbed sites")
	}
	if d.Err() != nil {
		return
	}
	b.sharePairs()
	err := b.setBases()
	if err == nil {
		err = b.Refresh()
	}
	if err != nil {
		d.Abort(err)
	}
}

// EncodePairs appends the label's side of every pair of the window; nothing for two
// classes, whose one pair is the label's site.
func (b *Bank) EncodePairs(e *wire.Encoder) {
	if len(b.view.Latent) == 2 {
		return
	}
	for h := range b.sites {
		z := &b.sites[h]
		for i, y := range b.winY {
			for k := range b.view.Latent {
				if k != y {
					e.Float(z.p1[k*b.capacity+i])
					e.Float(z.p2[k*b.capacity+i])
				}
			}
		}
	}
}

// DecodePairs reads the values that EncodePairs wrote.
func (b *Bank) DecodePairs(d *wire.Decoder) {
	for h := range b.sites {
		z := &b.sites[h]
		for i, y := range b.winY {
			for k := range b.view.Latent {
				if at := k*b.capacity + i; k != y {
					z.p1[at], z.p2[at] = d.Number("pairs"), d.Number("pairs")
				}
			}
		}
	}
}

// sharePairs shares the site of each label in the window out among its pairs, in
// proportion to the precisions of the other classes' sites: for two classes exactly,
// and for states of programs that kept the label's site alone.
func (b *Bank) sharePairs() {
	for h := range b.sites {
		z := &b.sites[h]
		for i, y := range b.winY {
			var total float64
			for k := range b.view.Latent {
				if k != y {
					total += z.s1[k*b.capacity+i]
				}
			}
			own := y*b.capacity + i
			for k := range b.view.Latent {
				if at := k*b.capacity + i; k != y {
					share := 1 / float64(len(b.view.Latent)-1)
					if total > 0 {
						share = z.s1[at] / total
					}
					z.p1[at], z.p2[at] = share*z.s1[own], share*z.s2[own]
				}
			}
		}
	}
}

// EncodeFiltered appends the number of filtered samples; nothing for none.
func (b *Bank) EncodeFiltered(e *wire.Encoder) {
	if b.filtered > 0 {
		e.Int(b.filtered)
	}
}

// DecodeFiltered reads the value that EncodeFiltered wrote, and computes the
// posteriors again.
func (b *Bank) DecodeFiltered(d *wire.Decoder) {
	b.filtered = d.Int(min(Replay-1, len(b.winY)), "number of filtered samples")
	if d.Err() != nil {
		return
	}
	if err := b.Refresh(); err != nil {
		d.Abort(err)
	}
}

// EncodeWaiting appends the number of samples whose evidence the gradient has not
// followed; nothing for none.
func (b *Bank) EncodeWaiting(e *wire.Encoder) {
	if b.waiting > 0 {
		e.Int(b.waiting)
	}
}

// DecodeWaiting reads the value that EncodeWaiting wrote.
func (b *Bank) DecodeWaiting(d *wire.Decoder) {
	b.waiting = d.Int(maxRecent, "number of waiting samples")
}
