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
	e.Uint(c.Number)
	e.String(c.Author)
	e.Uint64(c.Tag)
	e.Int(c.members)
	e.Uint(c.at)
	e.Bool(c.begun)
	e.Bool(c.start != nil)
	if c.start != nil {
		data, _ := c.start.AppendBinary(nil) // it was decoded
		e.Block(data)
	}
}

// decodeCommon reads the values that encodeCommon wrote.
func (l *Learner) decodeCommon(d *wire.Decoder) {
	c := &l.common
	c.Birth = fleet.Birth{Number: d.Uint(), Author: d.String(MaxLabel), Tag: d.Uint64()}
	c.members, c.at, c.begun = d.Int(fleet.MaxMembers+1, "number of members"), d.Uint(), d.Bool()
	if d.Bool() {
		start, err := fleet.DecodeCommon(d.Block(d.Len(), "basis"))
		if err == nil {
			err = l.canShare(&fleet.Sharing{Start: start})
		}
		if err != nil {
			d.Abort(err)
			return
		}
		c.start = start
	}
	if d.Err() == nil && (c.start != nil) == l.warmup.done {
		d.Fail("basis %d, and a warm-up that is over: %v", c.Number, l.warmup.done)
	}
}
