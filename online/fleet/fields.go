package fleet

import (
	"encoding/binary"
	"math"

	"edge/online/wire"
)

// A message has a forest by its fields, one behind the other: the leaves of all trees, the
// leaves that are split, the features, the thresholds byte by byte, the weights as whole
// numbers of units. Each field has Huffman codes of its own, which make it short. In
// encodeForest the fields of a split alternate, and the weights begin at odd bytes in every
// second tree.

// unit is that of the weights in a message.
const unit = 1. / 64

// step is that to which weights are rounded: 50 trees move a logit by 0.06 thereby, in the root
// mean square.
const step = 2 * unit

// appendFields appends the fields of a forest as encodeForest has written it. It reports false,
// with e as it was, if a weight is not a whole number of units, as those of earlier programs.
func appendFields(e *wire.Encoder, forest []byte, classes int) bool {
	d := wire.NewDecoder(forest, "", ErrContribution) // which has been checked
	var leaves, splits, features, weights wire.Encoder
	var thresholds []byte
	trees, room := d.Int(maxTrees, ""), d.Int(maxLeaves, "")
	exact := appendUnits(&weights, d.Bytes(2*classes, ""))
	for range trees {
		used := d.Int(room, "")
		leaves.Int(used)
		for range used - 1 {
			splits.Int(d.Int(maxLeaves, ""))
			features.Int(d.Int(maxFeatures, ""))
			thresholds = append(thresholds, d.Bytes(4, "")...)
		}
		exact = appendUnits(&weights, d.Bytes(2*used*classes, "")) && exact
	}
	if d.Err() != nil || !exact {
		return false
	}
	sizes, bytewise, n := wire.Encoder{}, planes(thresholds, 4), len(thresholds)/4
	sizes.Int(trees)
	sizes.Int(room)
	e.Int(len(sizes.Buf) + len(leaves.Buf) + len(splits.Buf) + len(features.Buf) + len(thresholds) + len(weights.Buf))
	e.Buf = deflate(e.Buf, append(sizes.Buf, leaves.Buf...), splits.Buf, features.Buf, bytewise[:n], bytewise[n:2*n], bytewise[2*n:3*n], bytewise[3*n:], weights.Buf)
	return true
}

// appendUnits appends weights as numbers of units, the sign in the last bit. It reports false if
// one is not a whole number.
func appendUnits(e *wire.Encoder, weights []byte) (exact bool) {
	exact = true
	for ; len(weights) > 0; weights = weights[2:] {
		v := float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(weights)) << 16))
		n := int64(v / unit)
		exact = exact && float64(n)*unit == v && (n != 0 || !math.Signbit(v))
		e.Uint(uint64(n<<1) ^ uint64(n>>63))
	}
	return exact
}

// readFields returns the forest of fields that appendFields wrote, as encodeForest writes it.
// Bounds that follow from the classes and the features are left to checkForest.
func readFields(d *wire.Decoder, classes int) []byte {
	plain := inflate(d, d.Int(MaxBytes, "bytes"))
	part := d.Part(plain, "")
	forest := readPlainFields(part, classes)
	part.End()
	d.Join(part)
	return forest
}

// readPlainFields is readFields for fields that are not packed.
func readPlainFields(d *wire.Decoder, classes int) []byte {
	trees, room := d.Int(maxTrees, "trees"), d.Int(maxLeaves, "leaves")
	leaves, splits := make([]int, trees), 0
	sum := 0
	for t := range leaves {
		leaves[t] = d.Int(room, "leaves")
		splits, sum = splits+max(leaves[t]-1, 0), sum+leaves[t]
	}
	split, feature := d.Ints(splits, maxLeaves, "leaf"), d.Ints(splits, maxFeatures, "feature")
	thresholds := join(d.Bytes(4*splits, "thresholds"), 4)
	if d.Err() == nil && (sum+1)*classes > d.Len() {
		d.Fail("%d bytes of %d weights", d.Len(), (sum+1)*classes)
	}
	if d.Err() != nil {
		return nil
	}
	var e wire.Encoder
	e.Int(trees)
	e.Int(room)
	readUnits(d, &e, classes)
	at := 0
	for _, used := range leaves {
		e.Int(used)
		for range used - 1 {
			e.Int(split[at])
			e.Int(feature[at])
			e.Buf = append(e.Buf, thresholds[4*at:4*at+4]...)
			at++
		}
		readUnits(d, &e, used*classes)
	}
	return e.Buf
}

// readUnits appends n weights that appendUnits wrote, as encodeWeights does.
func readUnits(d *wire.Decoder, e *wire.Encoder, n int) {
	for range n {
		u := d.Uint()
		v := float64(int64(u>>1)^-int64(u&1)) * unit
		bits := math.Float32bits(float32(v))
		if uint16(bits) != 0 || math.Abs(v) > maxWeight {
			d.Fail("weight %g of a leaf", v)
			return
		}
		e.Buf = binary.LittleEndian.AppendUint16(e.Buf, uint16(bits>>16))
	}
}
