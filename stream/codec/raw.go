package codec

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
)

// rawCodec reads little-endian IEEE 754 numbers: D features, or several times D for
// several samples.
type rawCodec struct {
	*schema
	size int // bytes of a number: 4 or 8
}

func (c rawCodec) decode(payload []byte) ([]Reading, *Refusal) {
	d := len(c.names)
	if kind := asText(payload); kind != "" {
		return nil, Refuse(Malformed, "text of %s digits: want the bytes themselves", kind)
	}
	if len(payload)%(d*c.size) != 0 {
		text := ""
		if bytes.IndexFunc(payload, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' && r != '\n' || r > '~' }) < 0 {
			text = "; is it a text, which format: json, csv or value reads?"
		}
		return nil, Refuse(WrongDimension, "%d bytes, want %d, or a multiple of it%s", len(payload), d*c.size, text)
	}
	n := len(payload) / (d * c.size)
	if n > c.maxBatch {
		return nil, c.tooMany()
	}
	if c.signals != nil {
		return c.rows(payload, n)
	}
	x := make([]float64, n*d)
	for i := range x {
		x[i] = c.number(payload, i)
		switch nan := math.IsNaN(x[i]); {
		case nan && c.lenient:
			x[i] = math.NaN() // with one bit pattern for all NaN
		case nan || math.IsInf(x[i], 0):
			return nil, Refuse(NotANumber, "entry %d: feature %.40q is %v", i/d, c.names[i%d], x[i])
		}
		if at := i - d + 1; i%d == d-1 && !slices.ContainsFunc(x[at:i+1], func(v float64) bool { return v == v }) {
			return nil, Refuse(MissingFeature, "entry %d: no feature has a value", i/d)
		}
	}
	readings := make([]Reading, n)
	for i := range readings {
		readings[i].X = x[i*d : (i+1)*d : (i+1)*d]
	}
	return readings, nil
}

// asText returns the digits of which a payload consists that are those of bytes, or of numbers, in a text, "" for
// others. Raw numbers are such a text with a probability below 1e-10.
func asText(payload []byte) string {
	hex, base64, decimal := true, true, true
	for _, c := range payload {
		digit, letter := c-'0' <= 9, (c|0x20)-'a'
		hex = hex && (digit || letter <= 'f'-'a')
		base64 = base64 && (digit || letter <= 'z'-'a' || c == '+' || c == '/' || c == '=')
		decimal = decimal && (digit || strings.IndexByte("+-.,; \t\r\neE", c) >= 0)
		if !hex && !base64 && !decimal {
			return ""
		}
	}
	switch n := len(payload); {
	case hex && n >= 16:
		return "hexadecimal"
	case base64 && n >= 24:
		return "base64"
	case decimal && n >= 12:
		return "decimal"
	}
	return ""
}

// number returns number i of a payload.
func (c rawCodec) number(payload []byte, i int) float64 {
	at := payload[i*c.size:]
	if c.size == 4 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(at)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(at))
}

// rows reads k rows of signals. A NaN is missing.
func (c rawCodec) rows(payload []byte, k int) ([]Reading, *Refusal) {
	d, size := len(c.names), len(c.signals.names)
	readings, x, have := make([]Reading, k), c.signals.newX(k), allTrue(d)
	for i := range readings {
		row := x[i*size : (i+1)*size : (i+1)*size]
		for j := range d {
			v := c.number(payload, i*d+j)
			if math.IsInf(v, 0) {
				return nil, Refuse(NotANumber, "entry %d: signal %.40q is %v", i, c.names[j], v)
			}
			if math.IsNaN(v) {
				continue
			}
			if err := c.signals.rules[j].set(row, v); err != nil {
				return nil, within(err, i)
			}
		}
		if err := c.finish(&readings[i], row, have, none); err != nil {
			return nil, within(err, i)
		}
	}
	return readings, c.spreadLines(readings)
}
