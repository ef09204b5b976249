package online

import (
	"edge/online/conformal"
	"edge/online/wire"
)

// section is a part of a learner's state outside the model itself, with a name
// of its own in the encoded state:
//
//	name, length in bytes, content
//
// so that parts can be added without a new version. An empty section is left out,
// and a section that a state does not have stays as in a new learner. A name that is
// not in sections is refused: its content would stand still while the stream
// continues, and recovery would not be exact any more.
type section struct {
	name   string
	encode func(l *Learner, e *wire.Encoder)
	decode func(l *Learner, d *wire.Decoder) // the model has been restored; must read all
}

// sections are written in this order. Names never change; a content that has
// to change its form gets a new name, and the old one stays readable.
var sections = [...]section{
	{"scores", func(l *Learner, e *wire.Encoder) { l.judge.Encode(e) }, func(l *Learner, d *wire.Decoder) { l.judge.Decode(d) }},
	{"classes", func(l *Learner, e *wire.Encoder) { l.classes.encode(e) }, (*Learner).decodeClasses},
	{"corrections", (*Learner).encodeCorrections, (*Learner).decodeCorrections},
	{"conformal", func(*Learner, *wire.Encoder) {}, func(_ *Learner, d *wire.Decoder) { conformal.DecodeLogOdds(d) }}, // not written any more
	{"weights", (*Learner).encodeWeights, (*Learner).decodeWeights},
	{"drift", func(l *Learner, e *wire.Encoder) { l.drift.Encode(e) }, func(l *Learner, d *wire.Decoder) { l.drift.Decode(d) }},
	{"filtered", func(l *Learner, e *wire.Encoder) { l.bank.EncodeFiltered(e) }, func(l *Learner, d *wire.Decoder) { l.bank.DecodeFiltered(d) }},
	{"waiting", func(l *Learner, e *wire.Encoder) { l.bank.EncodeWaiting(e) }, func(l *Learner, d *wire.Decoder) { l.bank.DecodeWaiting(d) }},
	{"basis", (*Learner).encodeCommon, (*Learner).decodeCommon},
	{"fleet", (*Learner).encodeFleet, (*Learner).decodeFleet},                                                                         // before the blends, which it has experts of
	{"unseen", (*Learner).encodeUnseen, (*Learner).decodeUnseen},                                                                      // after the fleet
	{"unseen exponent", func(l *Learner, e *wire.Encoder) { l.mix.EncodeUnseen(e) }, (*Learner).decodeUnseenExponent},                 // likewise
	{"fleet forests", (*Learner).encodeForests, (*Learner).decodeForests},                                                             // likewise
	{"stack", func(*Learner, *wire.Encoder) {}, func(l *Learner, d *wire.Decoder) { l.mix.DecodeStack(d) }},                           // not written any more
	{"blends", func(*Learner, *wire.Encoder) {}, func(l *Learner, d *wire.Decoder) { l.mix.DecodeFormer(d, false) }},                  // nor this
	{"experts", func(*Learner, *wire.Encoder) {}, func(l *Learner, d *wire.Decoder) { l.decodeExperts(d, true, l.mix.DecodeFormer) }}, // nor this
	{"exponents", func(l *Learner, e *wire.Encoder) { l.mix.EncodeBlends(e) }, func(l *Learner, d *wire.Decoder) { l.decodeExperts(d, d.Bool(), l.mix.DecodeBlends) }},
	{"joint", func(l *Learner, e *wire.Encoder) { l.mix.EncodeJoint(e) }, func(l *Learner, d *wire.Decoder) { l.mix.DecodeJoint(d) }},
	{"regression", func(*Learner, *wire.Encoder) {}, func(l *Learner, d *wire.Decoder) { l.mix.DecodeFormerRegression(d) }}, // not written any more
	{"linear", func(l *Learner, e *wire.Encoder) { l.mix.EncodeRegression(e) }, func(l *Learner, d *wire.Decoder) { l.mix.DecodeRegression(d) }},
	{"sets", func(l *Learner, e *wire.Encoder) { l.sets.Encode(e) }, func(l *Learner, d *wire.Decoder) { l.sets.Decode(d, maxBatch) }},
	{"forest", func(l *Learner, e *wire.Encoder) { l.forest.Encode(e) }, (*Learner).decodeForest},
	{"ranks", func(l *Learner, e *wire.Encoder) { l.bank.EncodeRanks(e) }, func(l *Learner, d *wire.Decoder) { l.bank.DecodeRanks(d) }},
	{"frequencies", func(l *Learner, e *wire.Encoder) { l.mix.EncodeFrequencies(e) }, func(l *Learner, d *wire.Decoder) { l.mix.DecodeFrequencies(d) }},
	{"own answer", func(l *Learner, e *wire.Encoder) { l.mix.EncodeOwn(e) }, (*Learner).decodeOwn},                                    // after the blends, which it begins with
	{"noise", func(l *Learner, e *wire.Encoder) { l.mix.EncodeNoise(e) }, func(l *Learner, d *wire.Decoder) { l.mix.DecodeNoise(d) }}, // after the own answer
	{"order", func(l *Learner, e *wire.Encoder) { l.mix.EncodeOrder(e) }, func(l *Learner, d *wire.Decoder) { l.mix.DecodeOrder(d) }},
	{"calibration", (*Learner).encodeCalibration, (*Learner).decodeCalibration},
	{"errors", func(l *Learner, e *wire.Encoder) { l.batch.encodeErrors(e) }, func(l *Learner, d *wire.Decoder) { l.batch.decodeErrors(d) }},
	{"pairs", func(l *Learner, e *wire.Encoder) { l.bank.EncodePairs(e) }, func(l *Learner, d *wire.Decoder) { l.bank.DecodePairs(d) }},
}

// SectionSize is the size of one part of an encoded state.
type SectionSize struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"` // without its frame
}

// StateSize returns the sizes of the parts of the encoded state: of the model
// itself, named "model", and of the sections that are not empty.
func (l *Learner) StateSize() []SectionSize {
	var e wire.Encoder
	l.encodeCore(&e)
	sizes := []SectionSize{{"model", len(e.Buf)}}
	for _, s := range sections {
		e.Buf = e.Buf[:0]
		if s.encode(l, &e); len(e.Buf) > 0 {
			sizes = append(sizes, SectionSize{s.name, len(e.Buf)})
		}
	}
	return sizes
}

// encodeSections appends the sections; an empty name ends them.
func (l *Learner) encodeSections(e *wire.Encoder) {
	for _, s := range sections {
		e.Section(s.name, func(e *wire.Encoder) { s.encode(l, e) })
	}
	e.String("")
}

// decodeSections reads the sections that encodeSections wrote.
func (l *Learner) decodeSections(d *wire.Decoder) {
	at := 0
	for {
		name := d.String(d.Len())
		if name == "" || d.Err() != nil {
			return
		}
		body, next := d.Block(d.Len(), "section"), at
		for next < len(sections) && sections[next].name != name {
			next++
		}
		if next == len(sections) {
			d.FailAs(ErrNewer, "section %.40q is unknown or out of order", name)
			return
		}
		part := d.Part(body, "section "+name+": ")
		sections[next].decode(l, part)
		part.End()
		d.Join(part)
		at = next + 1
	}
}
