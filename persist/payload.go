package persist

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"edge/online/conformal"
	"edge/online/wire"
)

// Bounds of the stored values. Encoding and decoding return an error beyond them,
// decoding before it allocates.
const (
	maxFeatures = 10_000
	maxClasses  = 1_000
	maxParts    = 64 * maxClasses // 64 rows of one value a class
	maxLabel    = 256
	maxName     = 64
	maxDevice   = 256
	maxBucket   = 1 << 9    // bytes, also of keys
	maxShape    = 4 << 20   // bytes; 10,000 feature names of 400 bytes
	maxState    = 128 << 20 // bytes; bbolt's limit on 32-bit ARM is 256 MiB
	maxDedupe   = 1 << 20   // keys
	maxPending  = 1 << 20   // samples per model
	maxAhead    = 1 << 30   // labels
)

var (
	errEncoding = errors.New("malformed")
	errTooLarge = errors.New("too large")
)

// decoder reads a payload. Each of its errors is errEncoding.
type decoder struct{ *wire.Decoder }

func newDecoder(payload []byte) decoder { return decoder{wire.NewDecoder(payload, "", errEncoding)} }

// floats reads n numbers; nil if there are none.
func (d decoder) floats(n int) []float64 {
	if n == 0 || d.Err() != nil {
		return nil
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = d.Float()
	}
	return v
}

// optionalFloats reads the numbers that appendOptionalFloats wrote.
func (d decoder) optionalFloats() []float64 {
	n := d.Int(maxClasses+1, "number of elements") - 1
	if n < 0 {
		return nil
	}
	if n > d.Len()/8 {
		d.Fail("truncated elements")
		return nil
	}
	if n == 0 {
		return []float64{}
	}
	return d.floats(n)
}

// parts reads the parts of a prediction; nil if there are none.
func (d decoder) parts() []float32 {
	n := d.Count(maxParts, 4, "number of parts")
	if n == 0 || d.Err() != nil {
		return nil
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(d.Float32("part"))
	}
	return v
}

func appendString(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

func appendFloats(dst []byte, v []float64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(v)))
	return appendBits(dst, v)
}

// appendOptionalFloats keeps nil and empty apart: 0 is nil, n+1 is n numbers.
func appendOptionalFloats(dst []byte, v []float64) []byte {
	if v == nil {
		return append(dst, 0)
	}
	dst = binary.AppendUvarint(dst, uint64(len(v))+1)
	return appendBits(dst, v)
}

func appendBits(dst []byte, v []float64) []byte {
	for _, x := range v {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x))
	}
	return dst
}

// extras are what few records and pending samples have. Each that is not zero
// stands at the end of a payload behind a tag; the tags rise. Payloads of
// format version 1 have none.
type extras struct {
	weight   float64
	epoch    uint64
	name     string
	by       uint64
	state    []byte
	clock    time.Duration
	meta     conformal.PredictionMeta
	identity uint64
	parts    []float32
	known    bool
	device   string
	from, to int64
}

const (
	tagWeight byte = 1 + iota
	tagChain       // a place in the order of the labels, of earlier programs: it is read and not written
	tagEpoch
	tagName
	tagBy
	tagState
	tagClock
	tagMeta // flags and threshold
	tagIdentity
	tagParts // of the prediction
	tagKnown // nothing follows
	tagDevice
	tagWindow // its beginning and end
	tagLast   // the last label that the prediction knew, counted from 1
	tagLearnt // the labels that the model of the prediction had learnt
	lastTag   = tagLearnt

	ofRecords = 1<<tagWeight | 1<<tagChain | 1<<tagEpoch | 1<<tagName | 1<<tagState | 1<<tagMeta | 1<<tagParts | 1<<tagKnown | 1<<tagLast | 1<<tagLearnt
	ofPending = 1<<tagChain | 1<<tagEpoch | 1<<tagName | 1<<tagBy | 1<<tagClock | 1<<tagMeta | 1<<tagIdentity | 1<<tagParts | 1<<tagDevice | 1<<tagWindow | 1<<tagLast | 1<<tagLearnt
)

// Flags of tagMeta.
const (
	metaRuled byte = 1 << iota
	metaAbstained
	metaOldSet // a set of an earlier program, whose threshold had another unit: it is not judged
	metaSet
	metaNeverEmpty
	metaAll = metaRuled | metaAbstained | metaOldSet | metaSet | metaNeverEmpty
)

func appendExtras(dst []byte, e extras) []byte {
	if e.weight != 0 {
		dst = binary.LittleEndian.AppendUint64(append(dst, tagWeight), math.Float64bits(e.weight))
	}
	if e.epoch != 0 {
		dst = binary.AppendUvarint(append(dst, tagEpoch), e.epoch)
	}
	if e.name != "" {
		dst = appendString(append(dst, tagName), e.name)
	}
	if e.by != 0 {
		dst = binary.LittleEndian.AppendUint64(append(dst, tagBy), e.by)
	}
	if len(e.state) > 0 {
		dst = binary.AppendUvarint(append(dst, tagState), uint64(len(e.state)))
		dst = append(dst, e.state...)
	}
	if e.clock != 0 {
		dst = binary.AppendUvarint(append(dst, tagClock), uint64(e.clock))
	}
	last, learnt := e.meta.Last, e.meta.Version
	if e.meta.Last, e.meta.Version = 0, 0; e.meta != (conformal.PredictionMeta{}) {
		var flags byte
		for bit, set := range []bool{e.meta.Ruled, e.meta.Abstained, false, e.meta.Sets, e.meta.NeverEmpty} {
			if set {
				flags |= 1 << bit
			}
		}
		dst = binary.LittleEndian.AppendUint64(append(dst, tagMeta, flags), math.Float64bits(e.meta.Threshold))
	}
	if e.identity != 0 {
		dst = binary.LittleEndian.AppendUint64(append(dst, tagIdentity), e.identity)
	}
	if len(e.parts) > 0 {
		dst = binary.AppendUvarint(append(dst, tagParts), uint64(len(e.parts)))
		for _, v := range e.parts {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
		}
	}
	if e.known {
		dst = append(dst, tagKnown)
	}
	if e.device != "" {
		dst = appendString(append(dst, tagDevice), e.device)
	}
	if e.to != 0 {
		dst = binary.LittleEndian.AppendUint64(append(dst, tagWindow), uint64(e.from))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(e.to))
	}
	if last != 0 {
		dst = binary.AppendUvarint(append(dst, tagLast), uint64(last))
	}
	if learnt != 0 {
		dst = binary.AppendUvarint(append(dst, tagLearnt), learnt)
	}
	return dst
}

// extras reads the rest of a payload; allowed are the tags' bits.
func (d decoder) extras(allowed uint) (e extras) {
	for before := byte(0); d.Len() > 0; {
		tag := d.Byte()
		if tag <= before || tag > lastTag || allowed>>tag&1 == 0 {
			d.Fail("tag %d", tag)
			return extras{}
		}
		before = tag
		switch tag {
		case tagWeight:
			e.weight = math.Float64frombits(d.Uint64())
		case tagChain:
			d.Int(maxAhead, "number")
			d.Int(maxClasses, "number")
		case tagEpoch:
			e.epoch = d.Uint()
		case tagName:
			e.name = d.String(maxLabel)
		case tagBy:
			e.by = d.Uint64()
		case tagState:
			e.state = append([]byte(nil), d.Block(maxState, "state")...) // nil if it is empty
		case tagClock:
			e.clock = time.Duration(d.Uint())
		case tagMeta:
			flags := d.Byte()
			e.meta = conformal.PredictionMeta{
				Ruled: flags&metaRuled != 0, Abstained: flags&metaAbstained != 0, Sets: flags&metaSet != 0, NeverEmpty: flags&metaNeverEmpty != 0,
				Threshold: math.Float64frombits(d.Uint64()),
			}
			if flags&metaOldSet != 0 {
				e.meta.Threshold = 0
			}
			if flags > metaAll || math.IsNaN(e.meta.Threshold) {
				d.Fail("metadata of the prediction: flags %d, threshold %g", flags, e.meta.Threshold)
			}
		case tagIdentity:
			e.identity = d.Uint64()
		case tagParts:
			e.parts = d.parts()
		case tagKnown:
			e.known = true
		case tagDevice:
			e.device = d.String(maxDevice)
		case tagWindow:
			if e.from, e.to = int64(d.Uint64()), int64(d.Uint64()); e.to == 0 {
				d.Fail("a window without an end")
			}
		case tagLast:
			e.meta.Last = d.Int(maxClasses, "class")
		case tagLearnt:
			e.meta.Version = d.Uint()
		}
	}
	return e
}
