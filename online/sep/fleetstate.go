package sep

import "edge/online/wire"

// EncodeJoined appends the sums of the fleet: of E the lower triangles alone.
func (b *Bank) EncodeJoined(e *wire.Encoder) {
	for f := range b.joined {
		z := &b.joined[f]
		e.Floats(z.A)
		e.Floats(z.b)
	}
}

// DecodeJoined reads the values that EncodeJoined wrote, after Join, and computes the
// posteriors.
func (b *Bank) DecodeJoined(d *wire.Decoder) {
	for f := range b.joined {
		z := &b.joined[f]
		d.Fill(z.A, "fleet's sums")
		d.Fill(z.b, "fleet's sums")
	}
	if d.Err() != nil {
		return
	}
	if err := b.Refresh(); err != nil {
		d.Abort(err)
	}
}
