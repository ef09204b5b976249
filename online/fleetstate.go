package online

import (
	"math"

	"edge/online/fleet"
	"edge/online/wire"
)

// encodeFleet appends the learner's part in a fleet; nothing if it has none. During the
// warm-up that is the latest merge, of which the guest is made again; afterwards the
// sums, which fade and move with the basis.
func (l *Learner) encodeFleet(e *wire.Encoder) {
	f := &l.fleet
	if f.guest == nil && len(f.own)+len(l.classes.imported) == 0 {
		return
	}
	imported := l.importedNames()
	e.Int(len(imported))
	for _, name := range imported {
		e.String(name)
	}
	e.Bool(f.guest != nil)
	if f.guest != nil {
		data, _ := f.guest.merge.AppendBinary(nil)
		e.Block(data)
		l.mix.EncodeGuest(e)
		return
	}
	e.Int(f.members)
	e.Int(len(f.own))
	e.Ints(f.own)
	e.Int(len(f.foreign))
	for _, name := range f.foreign {
		e.String(name)
	}
	if len(f.own) > 0 {
		l.bank.EncodeJoined(e)
		l.mix.EncodeFleet(e)
		e.Floats(l.batch.joined)
	}
}

// decodeFleet reads the values that encodeFleet wrote.
func (l *Learner) decodeFleet(d *wire.Decoder) {
	for range d.Int(maxClasses, "number of classes") {
		l.classes.imported[d.String(MaxLabel)] = true
	}
	if d.Bool() {
		m, err := fleet.DecodeMerge(d.Block(d.Len(), "merge"))
		if err == nil && (m.Params.D != len(l.cfg.Features) || l.warmup.done) {
			d.Fail("merge of %d features in the warm-up", m.Params.D)
		}
		if err == nil && d.Err() == nil {
			err = l.join(m, 0)
		}
		if err != nil {
			d.Abort(err)
		}
		l.mix.DecodeGuest(d)
		l.publishFleet()
		return
	}
	members := d.Int(math.MaxInt32, "number of members")
	own := d.Ints(d.Int(len(l.cfg.Horizons), "number of horizons"), len(l.cfg.Horizons), "horizon")
	foreign := make([]string, d.Count(maxClasses, 1, "number of classes"))
	for x := range foreign {
		foreign[x] = d.String(MaxLabel)
	}
	if d.Err() != nil || len(own) == 0 {
		return
	}
	if !l.view.Built() {
		d.Fail("sums without a model")
		return
	}
	m := int64(l.cfg.Inducing)
	if need := 8 * int64(len(own)*(len(l.view.Latent)+len(foreign))) * (m*(m+1)/2 + m); int64(d.Len()) < need {
		d.Fail("%d bytes of sums, %d are announced", d.Len(), need)
		return
	}
	l.startFleet(members, own, foreign, 0)
	l.bank.DecodeJoined(d)
	l.mix.DecodeFleet(d)
	l.batch.joined = d.Floats(l.batch.len()*len(own), "minibatch")
	l.publishFleet()
}

// encodeUnseen appends the sums that answer for classes with few own labels; nothing if there
// are none.
func (l *Learner) encodeUnseen(e *wire.Encoder) {
	if u := l.fleet.unseen; u != nil {
		data, _ := u.merge.AppendBinary(nil)
		e.Block(data)
	}
}

// decodeUnseen reads the values that encodeUnseen wrote.
func (l *Learner) decodeUnseen(d *wire.Decoder) {
	m, err := fleet.DecodeMerge(d.Block(d.Len(), "sums"))
	if err != nil {
		d.Abort(err)
		return
	}
	if m.Params.D != len(l.cfg.Features) || len(l.fleet.own) == 0 {
		d.Fail("sums of %d features without a fleet of such", m.Params.D)
		return
	}
	if err := l.answerUnseen(m); err != nil {
		d.Abort(err)
		return
	}
	l.publishFleet()
}

// decodeUnseenExponent reads the exponent of the answer for classes with few own labels.
func (l *Learner) decodeUnseenExponent(d *wire.Decoder) {
	l.mix.DecodeUnseen(d)
	l.publishShares()
}
