package fleet

import (
	"math"
	"slices"

	"edge/model"
)

// Units are the rule by which values of a feature are the same on two devices.
type Units uint8

const (
	// Raw: equal values. The devices measure alike.
	Raw Units = iota
	// Standard: values at the same distance from the mean of their device, in its
	// standard deviations. The devices differ by gain and offset.
	Standard
)

// other returns the other units.
func (u Units) other() Units { return Standard - u }

// same reports whether two scalings give equal values the same coordinates.
func (u Units) same(from, to *model.Scale) bool {
	if u == Standard {
		return (from.Ranks == nil) == (to.Ranks == nil)
	}
	return sameScale(from, to)
}

// sameScale reports whether two scalings are equal to the last bit.
func sameScale(a, b *model.Scale) bool {
	return slices.Equal(a.Mu, b.Mu) && slices.Equal(a.Sd, b.Sd) && slices.Equal(a.Ranks, b.Ranks)
}

// convert stores the inducing inputs of b in the coordinates of another scaling in z,
// M×D. Neither clips them. In standard units
//
//	x' = (x − Mu)/Sd·Sd' + Mu'
//
// is the value that x of the one device has on the other.
func (b *Basis) convert(z []float64, to *model.Scale, u Units) {
	copy(z, b.Params.Z())
	from, d := &b.Scale, b.Params.D
	if u.same(from, to) {
		return
	}
	for i := range z {
		j := i % d
		x := from.Raw(j, z[i])
		if u == Standard {
			x = float64((x-from.Mu[j])/from.Sd[j]*to.Sd[j]) + to.Mu[j]
		}
		z[i] = to.Unclipped(j, x)
	}
}

// OnDevice returns the scaling under which values of a device have the coordinates that
// their equals in standard units have under s. mu and sd are the device's means and
// standard deviations, D each. The ranks of s move with the values, and stay finite.
func OnDevice(s *model.Scale, mu, sd []float64) model.Scale {
	moved := model.Scale{Mu: slices.Clone(mu), Sd: slices.Clone(sd), Clip: s.Clip}
	for i, v := range s.Ranks {
		j := i / model.RankPoints
		v = float64((v-s.Mu[j])/s.Sd[j]*sd[j]) + mu[j]
		moved.Ranks = append(moved.Ranks, min(max(v, -model.MaxFeature), model.MaxFeature))
	}
	return moved
}

// moveThresholds replaces the thresholds of a forest, which are values on a device with one
// scaling, by their equals in standard units on a device with another one:
//
//	t' = (t − Mu)/Sd·Sd' + Mu'
func moveThresholds(f *model.Forest, from, to *model.Scale) {
	for t, used := range f.Used {
		nodes := f.Nodes[t*(f.Leaves-1):][:used-1]
		for i := range nodes {
			j := nodes[i].Feature
			v := float64((float64(nodes[i].Threshold)-from.Mu[j])/from.Sd[j]*to.Sd[j]) + to.Mu[j]
			nodes[i].Threshold = float32(min(max(v, -math.MaxFloat32), math.MaxFloat32))
		}
	}
}
