package fleet

import (
	"slices"

	"edge/model"
	"edge/online/natural"
	"edge/online/wire"
)

// mergeMagic opens an encoded Merge, sectionsMagic one that ends with sections: a name and
// a block for each. The last digit is the version of the format.
const (
	mergeMagic    = "EFM1"
	sectionsMagic = "EFM2"
	sharingName   = "basis"
	keptName      = "kept forests"
	unseenName    = "unseen"
)

// MaxMembers bounds the members of a merge.
const MaxMembers = 1024

// Member is the result of a merge for one contribution.
type Member struct {
	Name string
	Version
	N       uint64  // labels it has learnt
	Trust   float64 // mean of the gain in log probability of own labels, in its standard errors
	Tested  bool    // Trust is known
	Refused Reason  // None: its sites are in the sums
}

// Reason is why a merge leaves a contribution out.
type Reason string

// Reasons of a merge. Their texts are published.
const (
	None         Reason = ""
	Own          Reason = "own"       // it is the receiver's
	OtherInputs  Reason = "features"  // it is of other features
	OtherShape   Reason = "shape"     // it shares no horizon with the receiver
	TooSure      Reason = "precision" // it claims more than labels can teach
	Distrusted   Reason = "trust"     // own labels contradict it
	Misleading   Reason = "forest"    // own labels contradict its forest, which has no skill
	Contradicted Reason = "others"    // the other members contradict it, and there are no own labels to decide
	NotFactored  Reason = "numbers"   // its projection or its product does not factor
	TooManyNames Reason = "classes"   // the fleet has more classes than a model may have
)

// Merge is the sum of the contributions of a set on one basis, in the form in which it
// is journalled: the same merge leads to the same bytes of a learner's state. A merge
// without members ends the fleet.
type Merge struct {
	Basis              // in which the sums are written
	Horizons []float64 // lengths of the receiver's horizons that a sum is for
	Weights  []float64 // of these in the answers of the members, the mean by labels
	Classes  []string
	Members  []Member
	Trust    float64 // of all the sums together, as of a Member
	Tested   bool    // Trust is known
	Comparison
	Sharing  *Sharing // the change of the receiver's basis; nil: the receiver shares none
	Announce *Common  // to be published once the merge is durable; nil: nothing. Not encoded
	Unfit    Reason   // of the common basis that is not adopted; None: there is none. Not encoded
	// A and B are E and e, for each horizon and class: M(M+1)/2 numbers, the rows of the
	// lower triangle, and M. They are rounded to 32 bits.
	A, B []float32
	// Forests are those of the members that are taken, of at most MaxForests. One that the receiver
	// has of the merge before may be nil: it is not encoded, and stays.
	Forests []Forest
	// Exponents are the products of the taken members' factors of the exponents of blends, as
	// the receiver has them; nil: there are none.
	Exponents *natural.Exponents
	// Unseen are sums of the receiver and the taken members on a basis of all, under the longest
	// horizon, for classes of which the receiver has few labels; nil: there are none. It has
	// neither members nor forests.
	Unseen *Merge
}

// packed is M(M+1)/2.
func (m *Merge) packed() int { return m.Params.M * (m.Params.M + 1) / 2 }

// Taken is the number of members whose sites are in the sums.
func (m *Merge) Taken() (n int) {
	for _, member := range m.Members {
		if member.Refused == None {
			n++
		}
	}
	return n
}

// Sum adds the sums of horizon h and class k to a, an M×M lower triangle, and b.
func (m *Merge) Sum(h, k int, a, b []float64) {
	size, at := m.Params.M, h*len(m.Classes)+k
	packed := m.A[at*m.packed() : (at+1)*m.packed()]
	for i := range size {
		for j := range i + 1 {
			a[i*size+j] += float64(packed[j])
		}
		packed = packed[i+1:]
		b[i] += float64(m.B[at*size+i])
	}
}

// AppendBinary appends the encoded merge. The error is always nil.
func (m *Merge) AppendBinary(dst []byte) ([]byte, error) {
	start := len(dst)
	magic := mergeMagic
	if m.Sharing != nil || len(m.Forests) > 0 || m.Exponents != nil || m.Unseen != nil {
		magic = sectionsMagic
	}
	e := &wire.Encoder{Buf: append(slices.Grow(dst, m.room()), magic...)}
	e.Int(len(m.Members))
	for _, v := range m.Members {
		e.String(v.Name)
		e.Uint64(v.Epoch)
		e.Uint64(v.Sequence)
		e.Uint(v.N)
		e.Bool(v.Tested)
		e.Float(v.Trust)
		e.String(string(v.Refused))
	}
	e.Bool(m.Tested)
	e.Float(m.Trust)
	e.Int(len(m.Horizons))
	e.Floats(m.Horizons)
	e.Floats(m.Weights)
	e.Int(len(m.Classes))
	for _, name := range m.Classes {
		e.String(name)
	}
	e.Int(m.Params.M)
	e.Int(m.Params.D)
	if m.Params.M > 0 {
		m.Basis.encode(e)
	}
	e.Floats32(m.A)
	e.Floats32(m.B)
	if m.Sharing != nil {
		e.Section(sharingName, m.Sharing.encode)
	}
	forests, kept := split(m.Forests)
	if len(forests) > 0 {
		e.Section(forestsName, func(e *wire.Encoder) { EncodeForests(e, forests) })
	}
	if len(kept) > 0 {
		e.Section(keptName, func(e *wire.Encoder) { encodeKept(e, kept) })
	}
	if m.Exponents != nil {
		e.Section(exponentsName, m.Exponents.Encode)
	}
	if m.Unseen != nil {
		e.Section(unseenName, m.Unseen.encodeUnseen)
	}
	return wire.AppendChecksum(e.Buf, start), nil
}

// room is about the size of the encoded merge: of its sums, forests and parameters.
func (m *Merge) room() int {
	n := 4*(len(m.A)+len(m.B)) + 8*len(m.Params.Theta) + 64*(1+len(m.Members))
	for i := range m.Forests {
		n += 64 + len(m.Forests[i].data)
	}
	if m.Unseen != nil {
		n += m.Unseen.room()
	}
	return n
}

// DecodeMerge returns the merge that AppendBinary encoded. Every length is checked
// against that of data before memory is made; the error is ErrMerge.
func DecodeMerge(data []byte) (*Merge, error) { return DecodeMergeWith(data, nil) }

// DecodeMergeWith is DecodeMerge for a caller that has the forests of the encoded merge:
// their section is not read again. Nil: it is read. The error is ErrMerge.
func DecodeMergeWith(data []byte, forests []Forest) (*Merge, error) {
	magic := mergeMagic
	if len(data) > len(magic) && string(data[:len(magic)]) == sectionsMagic {
		magic = sectionsMagic
	}
	d, err := newDecoder(data, magic, "merge", ErrMerge)
	if err != nil {
		return nil, err
	}
	m := &Merge{Forests: withoutData(forests)}
	for range d.Count(MaxMembers, 20, "number of members") {
		v := Member{Name: d.String(MaxName), Version: Version{d.Uint64(), d.Uint64()}, N: d.Uint(), Tested: d.Bool(), Trust: d.Number("trust")}
		v.Refused = Reason(d.String(MaxName))
		m.Members = append(m.Members, v)
	}
	m.Tested, m.Trust = d.Bool(), d.Number("trust")
	m.Horizons = decodeHorizons(d)
	m.Weights = d.Floats(len(m.Horizons), "weights")
	for _, v := range m.Weights {
		if !(v >= 0 && v <= 1) {
			d.Fail("weight of a horizon %g", v)
		}
	}
	for range d.Count(model.MaxClasses, 1, "number of classes") {
		name := d.String(MaxName)
		if d.Err() == nil && (name == "" || slices.Contains(m.Classes, name)) {
			d.Fail("a class has no name, or that of another")
		}
		m.Classes = append(m.Classes, name)
	}
	size, features := d.Int(maxInducing, "inducing points"), d.Int(maxFeatures, "features")
	if size > 0 {
		m.Basis.decode(d, size, features)
	}
	sites := len(m.Horizons) * len(m.Classes)
	if want := 4 * int64(sites) * int64(m.packed()+size); d.Err() == nil && int64(d.Len()) != want && (magic == mergeMagic || int64(d.Len()) < want) {
		d.Fail("%d bytes of sums, %d are announced", d.Len(), want)
	}
	if d.Err() == nil {
		m.A, m.B = make([]float32, sites*m.packed()), make([]float32, sites*size)
		d.Fill32(m.A, "sums")
		d.Fill32(m.B, "sums")
	}
	for _, all := range [][]float32{m.A, m.B} {
		if slices.ContainsFunc(all, func(v float32) bool { return v-v != 0 }) {
			d.Fail("a sum is not finite")
		}
	}
	for magic == sectionsMagic && d.Err() == nil && d.Len() > 0 {
		m.decodeSection(d, forests != nil)
	}
	return m, d.End()
}

// decodeSection reads one section, or passes over the forests if they are known.
func (m *Merge) decodeSection(d *wire.Decoder, known bool) {
	name := d.String(MaxName)
	part := d.Part(d.Block(d.Len(), "section"), "fleet: merge: section "+name+": ")
	switch {
	case known && (name == forestsName || name == keptName):
		return
	case name == sharingName && m.Sharing == nil:
		m.Sharing = decodeSharing(part)
	case name == forestsName && m.Forests == nil:
		m.Forests = DecodeForests(part, m.Params.D)
	case name == keptName && !m.hasKept():
		m.Forests = decodeKept(part, m.Forests)
	case name == exponentsName && m.Exponents == nil:
		m.Exponents = natural.Decode(part)
	case name == unseenName && m.Unseen == nil:
		m.Unseen = decodeUnseen(part)
	default:
		d.Fail("section %.40q is unknown, or occurs twice; a newer program may have written it: use that one", name)
		return
	}
	part.End()
	d.Join(part)
}

// hasKept reports whether a forest is not encoded.
func (m *Merge) hasKept() bool {
	return slices.ContainsFunc(m.Forests, func(f Forest) bool { return f.Forest == nil })
}

// WithoutForests returns a merge that has none of the forests, and shares the rest.
func (m *Merge) WithoutForests() *Merge {
	c := *m
	c.Forests = nil
	return &c
}
