package codec

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/tidwall/gjson"
	"github.com/x448/float16"
)

// cborCodec reads CBOR (RFC 8949) with the same members as JSON. It converts the
// payload to JSON, by the rules of RFC 8949, section 6.1, so that both formats accept
// the same: NaN becomes null, byte strings become base64url. Beyond those rules, whole
// numbers may be keys, large numbers are written in digits, infinite ones are beyond the
// range of a float64, a typed array (RFC 8746) is an array, and a decimal fraction
// or a bigfloat is its number.
type cborCodec struct {
	json jsonCodec
	mode cbor.DecMode
}

func newCBORCodec(s *schema) (*cborCodec, error) {
	mode, err := cbor.DecOptions{
		DupMapKey:       cbor.DupMapKeyEnforcedAPF,
		MaxNestedLevels: maxDepth,
		TimeTagToAny:    cbor.TimeTagToRFC3339Nano,
	}.DecMode()
	if err != nil {
		return nil, fmt.Errorf("cbor: %w", err)
	}
	return &cborCodec{jsonCodec{s}, mode}, nil
}

func (c *cborCodec) decode(payload []byte) ([]Reading, *Refusal) {
	var v any
	if err := c.mode.Unmarshal(payload, &v); err != nil {
		if again := (*cbor.DupMapKeyError)(nil); errors.As(err, &again) {
			return nil, Refuse(Repeated, "key %.40q occurs twice", fmt.Sprint(again.Key))
		}
		if other := otherFormat(payload); other != "" && other != isCBOR {
			return nil, Refuse(Malformed, "%w: it looks like %s", err, other)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, Refuse(Malformed, "%w%s", err, cutOff)
		}
		return nil, Refuse(Malformed, "%w", err)
	}
	text, err := c.appendAsJSON(make([]byte, 0, 2*len(payload)), v)
	if err != nil {
		return nil, Refuse(Malformed, "%w", err)
	}
	return c.json.decode(text)
}

// appendAsJSON appends a decoded CBOR value as JSON.
func (c *cborCodec) appendAsJSON(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil, cbor.SimpleValue:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case uint64:
		return strconv.AppendUint(dst, v, 10), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case big.Int:
		if v.BitLen() > mostBits {
			return appendNumber(dst, math.Inf(v.Sign())), nil
		}
		return v.Append(dst, 10), nil
	case float64:
		return appendNumber(dst, v), nil
	case string:
		return gjson.AppendJSONString(dst, v), nil
	case time.Time: // of a tag that the decoder does not convert to text
		return appendTimestamp(dst, v), nil
	case []byte:
		return gjson.AppendJSONString(dst, base64.RawURLEncoding.EncodeToString(v)), nil
	case cbor.Tag:
		switch {
		case v.Number == tagDecimal || v.Number == tagBigfloat:
			return appendFraction(dst, v)
		case v.Number == tagRational || v.Number == tagRowMajor || v.Number == tagColumnMajor: // whose arrays are no rows
			return nil, fmt.Errorf("tag %d, a fraction or an array of several dimensions, is not read: send numbers, or arrays of them", v.Number)
		case v.Number >= firstTypedArray && v.Number <= lastTypedArray:
			numbers, err := typedArray(v)
			if err != nil {
				return nil, err
			}
			return appendArray(dst, numbers, func(dst []byte, f float64) ([]byte, error) { return appendNumber(dst, f), nil })
		}
		return c.appendAsJSON(dst, v.Content)
	case []any:
		return appendArray(dst, v, c.appendAsJSON)
	case map[any]any:
		return c.appendObject(dst, v)
	}
	return nil, fmt.Errorf("a value of type %T", v)
}

func appendArray[T any](dst []byte, list []T, element func([]byte, T) ([]byte, error)) (_ []byte, err error) {
	dst = append(dst, '[')
	for i, e := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = element(dst, e); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

// appendObject appends a map with sorted keys, so that of several faults the same one
// is reported each time.
func (c *cborCodec) appendObject(dst []byte, m map[any]any) (_ []byte, err error) {
	type entry struct {
		key   string
		value any
	}
	entries := make([]entry, 0, len(m))
	for k, v := range m {
		switch k := k.(type) {
		case string:
			entries = append(entries, entry{k, v})
		case uint64, int64:
			entries = append(entries, entry{fmt.Sprint(k), v})
		default:
			return nil, fmt.Errorf("a key of type %T: want texts or whole numbers", k)
		}
	}
	order := make([]int, len(entries))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(entries[a].key, entries[b].key) })
	dst = append(dst, '{')
	for i, at := range order {
		e := &entries[at]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(gjson.AppendJSONString(dst, e.key), ':')
		if dst, err = c.appendAsJSON(dst, e.value); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// infinite stands for Infinity, for which JSON has no number: no float64 is as large, so that it is refused.
const infinite = "1e9999"

// appendNumber appends a number with all digits. NaN becomes null.
func appendNumber(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "null"...)
	case math.IsInf(f, -1):
		return append(dst, "-"+infinite...)
	case math.IsInf(f, 1):
		return append(dst, infinite...)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

// mostBits bounds the bits of a whole number that is written in digits, which takes a time that is
// not linear in them. The largest float64 has 1024.
const mostBits = 4096

// Tags of pairs [exponent, mantissa] (RFC 8949, section 3.4.4).
const (
	tagDecimal  = 4 // mantissa · 10^exponent
	tagBigfloat = 5 // mantissa · 2^exponent
)

// Tags of pairs that are not read: [numerator, denominator], and [dimensions, numbers] (RFC 8746, section 3.1).
const (
	tagRational    = 30
	tagRowMajor    = 40
	tagColumnMajor = 1040
)

// appendFraction appends the number of a decimal fraction or a bigfloat.
func appendFraction(dst []byte, t cbor.Tag) ([]byte, error) {
	pair, _ := t.Content.([]any)
	if len(pair) != 2 {
		return nil, fmt.Errorf("tag %d without an exponent and a mantissa", t.Number)
	}
	exponent, ok := wholeNumber(pair[0])
	mantissa, also := wholeNumber(pair[1])
	const most = 1 << 30 // far beyond a float64
	if !ok || !also || exponent.CmpAbs(big.NewInt(most)) > 0 || mantissa.BitLen() > mostBits {
		return nil, fmt.Errorf("tag %d: want a whole exponent of at most 30 bits and a whole mantissa of at most %d", t.Number, mostBits)
	}
	if t.Number == tagDecimal {
		return append(append(mantissa.Append(dst, 10), 'e'), exponent.String()...), nil
	}
	f := new(big.Float).SetInt(mantissa)
	v, _ := f.SetMantExp(f, int(exponent.Int64())).Float64()
	return appendNumber(dst, v), nil
}

// wholeNumber returns a whole number of CBOR.
func wholeNumber(v any) (*big.Int, bool) {
	switch v := v.(type) {
	case uint64:
		return new(big.Int).SetUint64(v), true
	case int64:
		return big.NewInt(v), true
	case big.Int:
		return &v, true
	}
	return nil, false
}

// Tags of typed arrays (RFC 8746, section 2.1).
const (
	firstTypedArray = 64
	lastTypedArray  = 87
)

// typedArray returns the numbers of a typed array. The bits of its tag are 010, whether they are floats, whether
// they are signed, whether the least significant byte comes first, and two for their size.
func typedArray(t cbor.Tag) ([]float64, error) {
	float, signed, little, size := t.Number&16 != 0, t.Number&8 != 0, t.Number&4 != 0, 1<<(t.Number&3)
	if float {
		size *= 2
	}
	if size > 8 || t.Number == 76 { // which is reserved
		return nil, fmt.Errorf("tag %d, a typed array of other numbers than floats of 16, 32 or 64 bits and whole numbers, is not read: send one of those", t.Number)
	}
	data, ok := t.Content.([]byte)
	if !ok || len(data)%size != 0 {
		return nil, fmt.Errorf("tag %d, a typed array: want a byte string of numbers of %d bytes each", t.Number, size)
	}
	numbers := make([]float64, len(data)/size)
	for i := range numbers {
		var bits uint64
		for j := range size {
			if little {
				j = size - 1 - j
			}
			bits = bits<<8 | uint64(data[i*size+j])
		}
		unused := 64 - 8*size
		switch {
		case float && size == 2:
			numbers[i] = float64(float16.Frombits(uint16(bits)).Float32())
		case float && size == 4:
			numbers[i] = float64(math.Float32frombits(uint32(bits)))
		case float:
			numbers[i] = math.Float64frombits(bits)
		case signed:
			numbers[i] = float64(int64(bits<<unused) >> unused)
		default:
			numbers[i] = float64(bits)
		}
	}
	return numbers, nil
}

// appendTimestamp appends a time as a JSON string, UTC, to the millisecond.
func appendTimestamp(dst []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(dst, `"2006-01-02T15:04:05.000Z"`)
}
