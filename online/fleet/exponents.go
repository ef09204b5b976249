package fleet

import (
	"slices"

	"edge/online/natural"
	"edge/online/wire"
)

// SetExponents adds the factors of the exponents of the member's blends, with 32 bits for
// each number, or with nil removes those there are.
func (c *Contribution) SetExponents(x *natural.Exponents) {
	var e wire.Encoder
	if x != nil {
		x.Encode(&e)
	}
	c.exponents = e.Buf
}

// Exponents returns these factors; nil if there are none.
func (c *Contribution) Exponents() *natural.Exponents {
	if len(c.exponents) == 0 {
		return nil
	}
	return natural.Decode(wire.NewDecoder(c.exponents, "", ErrContribution)) // Decode has checked it
}

// checkExponents reads factors, and refuses those that are not sound.
func checkExponents(d *wire.Decoder) {
	if x := natural.Decode(d); d.Err() == nil && !x.Sound() {
		d.Fail("numbers that labels cannot teach")
	}
}

// addExponents multiplies the factors of the members that are taken and have the receiver's
// experts and horizons.
func (r *Receiver) addExponents(m *Merge, s *Set) {
	for i, c := range s.members {
		if m.Members[i].Refused != None || !slices.Equal(c.Horizons, r.Horizons) {
			continue
		}
		x := c.Exponents()
		if x == nil || x.Experts != r.Experts {
			continue
		}
		if m.Exponents == nil {
			m.Exponents = x
		} else {
			m.Exponents = m.Exponents.Add(x)
		}
	}
}
