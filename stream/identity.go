package stream

import (
	"hash/fnv"
	"io"
	"math"
	"strconv"
)

// sampleKey identifies a sample by stream, levels and id. It is stable over restarts.
func sampleKey(stream string, levels []string, id string) uint64 {
	return hash(append([]string{stream, id}, levels...)...)
}

// exampleKey identifies a sample with an id, given its sampleKey, by its features as
// received, NaN for a missing one. It is stable over restarts and never 0. A device that
// sends one id with all samples sends another sample when the features differ.
func exampleKey(sample uint64, x []float64) uint64 {
	h := sample
	for _, v := range x {
		bits := math.Float64bits(v)
		if v != v {
			bits = math.Float64bits(math.NaN())
		}
		h = mix(h*0x9e3779b97f4a7c15 ^ bits)
	}
	return max(h, 1)
}

// messageKey identifies the first entry of a message without an id by topic and payload. It
// is never 0.
func messageKey(topic string, payload []byte) uint64 {
	return max(hash(topic, "0", string(payload)), 1)
}

// entryKey identifies an entry, given the messageKey. It is never 0. A message with many
// entries is hashed once.
func entryKey(message uint64, entry int) uint64 {
	if entry == 0 {
		return message
	}
	return max(mix(message+uint64(entry)*0x9e3779b97f4a7c15), 1)
}

// idBits is the number of bits in the key of a pending sample that depend on its id
// alone, so that a label without a device can find it, also after a restart; the other
// bits depend on stream and device. Among 5000 pending samples an id is mistaken for
// another with a probability of 5e-9.
const idBits = 40

// waitKey identifies a pending sample. It is never 0.
func waitKey(stream string, levels []string, id string) uint64 {
	const low = 1<<(64-idBits) - 1
	return max(hash(id)&^low|hash(append([]string{stream}, levels...)...)&low, 1)
}

// idPart returns the bits of a waitKey that depend on the id alone.
func idPart(key uint64) uint64 { return key >> (64 - idBits) }

// hash is FNV-1a over the parts, each preceded by its length, with the finaliser of
// MurmurHash3 so that every bit depends on every byte.
func hash(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		io.WriteString(h, strconv.Itoa(len(p))+":")
		io.WriteString(h, p)
	}
	return mix(h.Sum64())
}

// mix is the finaliser of MurmurHash3.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
