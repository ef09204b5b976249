package sep

import "edge/online/wire"

// EncodeJoined appends the sums of the fleet: of E the lower triangles alone.
func (b *Bank) EncodeJoined(e *wire.Encoder) {
	m := b.cfg.Inducing
	for f := range b.joined {
		z := &b.joined[f]
		for row := 0; row < len(z.b); row++ {
			e.Floats(z.A[row*m : row*m+row%m+1])
		}
		e.Floats(z.b)
	}
}

// DecodeJoined reads the values that EncodeJoined wrote, after Join, and computes the
// posteriors.
func (b *Bank) DecodeJoined(d *wire.Decoder) {
	m := b.cfg.Inducing
	for f := range b.joined {
		z := &b.joined[f]
		for row := 0; row < len(z.b); row++ {
			d.Fill(z.A[row*m:row*m+row%m+1], "fleet's sums")
		}
		d.Fill(z.b, "fleet's sums")
	}
	if d.Err() != nil {
		return
	}
	if err := b.Refresh(); err != nil {
		d.Abort(err)
	}
}
