package online

import "fmt"

// section is a part of a learner's state beside the model itself, with a name
// of its own in the encoded state:
//
//	name, length in bytes, content
//
// so that parts can be added without a new version. A section that writes
// nothing is left out, and one that a state does not have stays as a new learner
// has it. A name that is not in sections is refused: what it holds would stand
// still while the stream goes on, and recovery would no longer be exact.
type section struct {
	name   string
	encode func(l *Learner, e *encoder)
	decode func(l *Learner, d *decoder) // the model has been restored; must read all
}

// sections are written in this order. Names stay for good; a content that has
// to change its form gets a new name, and the old one stays readable.
var sections = [...]section{
	{"scores", func(l *Learner, e *encoder) { l.judge.encode(e) }, func(l *Learner, d *decoder) { l.judge.decode(d) }},
	{"classes", (*Learner).encodeRoster, (*Learner).decodeRoster},
	{"corrections", (*Learner).encodeCorrections, (*Learner).decodeCorrections},
	{"conformal", func(l *Learner, e *encoder) { l.conformal.encode(e) }, func(l *Learner, d *decoder) { l.conformal.decode(d) }},
	{"weights", (*Learner).encodeWeights, (*Learner).decodeWeights},
	{"drift", (*Learner).encodeDrift, (*Learner).decodeDrift},
	{"filtered", (*Learner).encodeFiltered, (*Learner).decodeFiltered},
	{"stack", func(*Learner, *encoder) {}, (*Learner).decodeStack}, // written no more
	{"blends", (*Learner).encodeBlends, (*Learner).decodeBlends},
	{"regression", (*Learner).encodeRegression, (*Learner).decodeRegression},
}

// SectionSize is the size of one part of an encoded state.
type SectionSize struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"` // without its frame
}

// StateSize returns the sizes of the parts of the encoded state: of the model
// itself, named "model", and of what stands beside it, if anything does.
func (l *Learner) StateSize() []SectionSize {
	var e encoder
	l.encodeCore(&e)
	sizes := []SectionSize{{"model", len(e.buf)}}
	for _, s := range sections {
		e.buf = e.buf[:0]
		if s.encode(l, &e); len(e.buf) > 0 {
			sizes = append(sizes, SectionSize{s.name, len(e.buf)})
		}
	}
	return sizes
}

// encodeSections appends the sections; an empty name ends them.
func (l *Learner) encodeSections(e *encoder) {
	var body encoder
	for _, s := range sections {
		body.buf = body.buf[:0]
		if s.encode(l, &body); len(body.buf) > 0 {
			e.string(s.name)
			e.bytes(body.buf)
		}
	}
	e.string("")
}

// decodeSections reads what encodeSections wrote.
func (l *Learner) decodeSections(d *decoder) {
	at := 0
	for {
		name := d.string()
		if name == "" || d.err != nil {
			return
		}
		body, next := d.bytes("section"), at
		for next < len(sections) && sections[next].name != name {
			next++
		}
		if next == len(sections) {
			d.fail(fmt.Sprintf("section %.40q is unknown or out of order; a newer program may have written it: use that one", name))
			return
		}
		part := decoder{buf: body, err: d.err, section: name}
		sections[next].decode(l, &part)
		if part.err == nil && len(part.buf) > 0 {
			part.fail(fmt.Sprintf("%d bytes too many", len(part.buf)))
		}
		d.err, at = part.err, next+1
	}
}
