package fleet

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"strings"

	"edge/online/wire"
)

// commonMagic opens every encoded Common; its last digit is the version of the format.
const commonMagic = "EFB1"

// lastBirth is the highest number of a birth; 1 follows it.
const lastBirth = 1<<16 - 1

// Birth identifies a common basis.
type Birth struct {
	Number uint64 // 1 for the first of a fleet, the next one for each that replaces another, see afterBirth; 0: there is none
	Author string // member that proposed it
	Tag    uint64 // random
}

// afterBirth returns the number of the birth that replaces one of a number.
func afterBirth(number uint64) uint64 { return number%lastBirth + 1 }

// compareBirths orders numbers of births by the shorter way on the circle from 1 to lastBirth, so
// that each of them has one that replaces it; 0 comes before all. It is no order of three
// numbers that are far from each other; those of a fleet are not.
//
// Source: the serial numbers of RFC 1982, for an odd number of them.
func compareBirths(a, b uint64) int {
	switch ahead := (b + lastBirth - a) % lastBirth; {
	case a == b || a == 0 || b == 0:
		return cmp.Compare(a, b)
	case ahead <= lastBirth/2:
		return -1
	}
	return 1
}

// Before reports whether o replaces b: it has a later number, or of two that were
// proposed at once the smaller name.
func (b Birth) Before(o Birth) bool {
	return cmp.Or(compareBirths(b.Number, o.Number), -strings.Compare(b.Author, o.Author), cmp.Compare(b.Tag, o.Tag)) < 0
}

// ID is the Header.BasisEpoch of contributions of this basis: the number, and 48 bits of
// a digest. It is 0 for none.
func (b Birth) ID() uint64 {
	if b.Number == 0 {
		return 0
	}
	h, word := fnv.New64a(), binary.LittleEndian.AppendUint64(nil, b.Tag)
	h.Write(word)
	h.Write([]byte(b.Author))
	return b.Number<<48 | h.Sum64()>>16
}

// EncodeBirth appends a birth.
func EncodeBirth(e *wire.Encoder, b *Birth) {
	e.Uint(b.Number)
	e.String(b.Author)
	e.Uint64(b.Tag)
}

// DecodeBirth reads the birth that EncodeBirth appended.
func DecodeBirth(d *wire.Decoder) Birth {
	return Birth{Number: d.Uint(), Author: d.String(MaxName), Tag: d.Uint64()}
}

// Common is a common basis: where the members of a fleet begin, whose parameters are then
// averaged. It is immutable once it is in a Set.
type Common struct {
	Birth
	Features uint64   // see the function Features
	Classes  []string // that its author has learnt
	Counts   []uint64 // labels of each
	Basis
}

// newCommon returns a common basis, rounded to 32 bits.
func newCommon(b Birth, of *Header, basis *Basis) *Common {
	return &Common{Birth: b, Features: of.Features, Classes: of.Classes, Counts: of.Counts, Basis: basis.rounded()}
}

// AppendBinary appends the encoded basis. The error is ErrContribution for one that
// DecodeCommon would refuse.
func (c *Common) AppendBinary(dst []byte) ([]byte, error) {
	start := len(dst)
	e := &wire.Encoder{Buf: append(dst, commonMagic...)}
	EncodeBirth(e, &c.Birth)
	e.Uint64(c.Features)
	encodeCounts(e, c.Classes, c.Counts)
	e.Int(c.Params.M)
	e.Int(c.Params.D)
	c.Basis.encodeShort(e)
	e.Buf = wire.AppendChecksum(e.Buf, start)
	if _, err := DecodeCommon(e.Buf[start:]); err != nil {
		return dst, err
	}
	return e.Buf, nil
}

// DecodeCommon returns the basis that AppendBinary encoded. Every length is checked
// against that of data before memory is made, and every number is checked; the error is
// ErrContribution.
func DecodeCommon(data []byte) (*Common, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("fleet: %d bytes, at most %d: %w", len(data), MaxBytes, ErrContribution)
	}
	d, err := newDecoder(data, commonMagic, "common basis", ErrContribution)
	if err != nil {
		return nil, err
	}
	c := &Common{Birth: DecodeBirth(d), Features: d.Uint64()}
	c.Classes, c.Counts = decodeCounts(d)
	m, features := d.Int(maxInducing, "inducing points"), d.Int(maxFeatures, "features")
	if d.Err() == nil && (m < 1 || features < 1 || c.Number < 1 || c.Number > lastBirth || c.Author == "") {
		d.Fail("basis %d of %.40q with %d inducing points in %d dimensions", c.Number, c.Author, m, features)
	}
	c.Basis.decodeShort(d, m, features)
	if err := d.End(); err != nil {
		return nil, err
	}
	return c, c.Basis.check()
}

// EncodeStart appends a basis that has an encoding, or that there is none.
func (c *Common) EncodeStart(e *wire.Encoder) {
	e.Bool(c != nil)
	if c != nil {
		data, _ := c.AppendBinary(nil)
		e.Block(data)
	}
}

// DecodeStart reads the basis that EncodeStart appended; nil: there is none.
func DecodeStart(d *wire.Decoder) *Common {
	if !d.Bool() {
		return nil
	}
	c, err := DecodeCommon(d.Block(d.Len(), "basis"))
	if err != nil {
		d.Abort(err)
		return nil
	}
	return c
}

// minAlike is the least overlap of two members' classes at which they share a basis.
const minAlike = 0.7

// minShared is the number of labels from which on a member's parameters count in an
// average, and its classes decide with whom it shares a basis.
const minShared = 50

// overlap compares the frequencies of two members' classes:
//
//	Σ_k min(p_k, q_k),  1 for equal frequencies, 0 for different classes
func overlap(classes []string, counts []uint64, others []string, theirs []uint64) (sum float64) {
	total := func(counts []uint64) (n float64) {
		for _, v := range counts {
			n += float64(v)
		}
		return max(n, 1)
	}
	own, all := total(counts), total(theirs)
	of := map[string]float64{}
	for k, name := range others {
		of[name] = float64(theirs[k]) / all
	}
	for k, name := range classes {
		sum += math.Min(float64(counts[k])/own, of[name])
	}
	return sum
}

// Alike reports whether a member with these labels should share the basis: its classes
// have the frequencies of the author's, or it has too few labels to know.
func (c *Common) Alike(classes []string, counts []uint64) bool {
	return alike(classes, counts, c.Classes, c.Counts)
}

// Unfit returns the reason for which the member of a contribution cannot begin with the
// basis; None: it can.
func (c *Common) Unfit(o *Contribution) Reason {
	return c.unfit(o.Features, o.Params.D, o.Params.M, o.Classes, o.Counts)
}

// Proposal returns what Common.Unfit compares of the basis that the member of a contribution would propose.
//
//go:noinline
func (c *Contribution) Proposal() *Common {
	p := &Common{Features: c.Features, Classes: c.Classes, Counts: c.Counts}
	p.Params.M, p.Params.D = c.Params.M, c.Params.D
	return p
}

// unfit is Unfit of a model with these features, inputs, inducing points and labels.
func (c *Common) unfit(features uint64, inputs, inducing int, classes []string, counts []uint64) Reason {
	switch {
	case c.Features != features || c.Params.D != inputs:
		return OtherInputs
	case c.Params.M != inducing:
		return OtherInducing
	case !c.Alike(classes, counts):
		return OtherClasses
	}
	return None
}

// alike is Alike of two members' labels.
func alike(classes []string, counts []uint64, others []string, theirs []uint64) bool {
	var n uint64
	for _, v := range counts {
		n += v
	}
	return n < minShared || overlap(classes, counts, others, theirs) >= minAlike
}

// On returns the basis for a device whose D features have these means and standard
// deviations: in standard units its own scaling takes the place of the author's.
func (c *Common) On(u Units, mu, sd []float64) Basis {
	b := c.Basis.clone()
	if u == Standard {
		b.Scale = OnDevice(&c.Scale, mu, sd)
	}
	return b
}
