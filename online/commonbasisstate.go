package online

import (
	"edge/online/fleet"
	"edge/online/wire"
)

// encodeCommon appends the learner's part in a common basis; nothing if it has none.
func (l *Learner) encodeCommon(e *wire.Encoder) {
	c := &l.common
	if c.Number == 0 {
		return
	}
	fleet.EncodeBirth(e, &c.Birth)
	e.Int(c.members)
	e.Uint(c.at)
	e.Bool(c.begun)
	c.start.EncodeStart(e) // it was decoded
}

// decodeCommon reads the values that encodeCommon wrote.
func (l *Learner) decodeCommon(d *wire.Decoder) {
	c := &l.common
	c.Birth = fleet.DecodeBirth(d)
	c.members, c.at, c.begun = d.Int(fleet.MaxMembers+1, "number of members"), d.Uint(), d.Bool()
	if c.start = fleet.DecodeStart(d); c.start != nil {
		if err := l.canShare(&fleet.Sharing{Start: c.start}); err != nil {
			d.Abort(err)
			return
		}
	}
	if d.Err() == nil && (c.start != nil) == l.warmup.done {
		d.Fail("basis %d, and a warm-up that is over: %v", c.Number, l.warmup.done)
	}
}
