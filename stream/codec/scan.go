package codec

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// scanner reads the payloads of nearly all senders in one pass: an object with plain
// keys and its features in an array, in an object or beside the other members, or an
// array of numbers. It leaves every other payload, and every error, to the general
// decoder; a payload that it accepts has the same result in both (FuzzScan).
type scanner struct {
	text []byte
	at   int
	x    []float64 // reusable memory for features
}

// scannable reports whether the scanner may read payloads of this schema.
func (s *schema) scannable() bool {
	if len(s.names) == 0 || len(s.names) > maxScanned || s.paths != nil || s.marks != nil || s.batchPath != DefaultEntries().Batch {
		return false
	}
	seen := map[string]bool{"features": true, "batch": true}
	keys := []string{s.time, s.label, s.id}
	if s.signals == nil {
		seen[cellSource], seen[cellWeight] = true, true
	} else if !s.signals.scannable() {
		return false
	}
	for i, key := range keys {
		if key == "" && (i == 2 || s.signals != nil) {
			continue
		}
		if seen[key] || strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" || key == "" {
			return false
		}
		seen[key] = true
	}
	for _, name := range s.names {
		if seen[name] {
			return false
		}
	}
	return true
}

const maxScanned = 4096 // largest number of features

// seen is a set of features.
type seen [maxScanned / 64]uint64

// add adds i, and reports false if the set contained it.
func (s *seen) add(i int) bool {
	word, bit := &s[i/64], uint64(1)<<(i%64)
	added := *word&bit == 0
	*word |= bit
	return added
}

// scan reads a payload, or reports false if the general decoder must read it. The
// features are stored in x if it has room for them.
func (c jsonCodec) scan(payload []byte, x []float64) (r Reading, ok bool) {
	s := scanner{text: payload, x: x}
	if c.signals != nil {
		ok = s.row(c.schema, &r)
		return r, ok && s.next() == 0 && s.at == len(s.text)
	}
	switch s.next() {
	case '[':
		r.X, ok = s.array(c.schema)
	case '{':
		ok = s.object(c.schema, &r)
	}
	return r, ok && s.next() == 0 && s.at == len(s.text)
}

// next skips white space and returns the byte that follows, 0 at the end.
func (s *scanner) next() byte {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// skip moves past c, which must come next.
func (s *scanner) skip(c byte) bool {
	if s.next() != c {
		return false
	}
	s.at++
	return true
}

// list calls element for each of the elements up to the closing byte.
func (s *scanner) list(open, end byte, element func() bool) bool {
	if !s.skip(open) {
		return false
	}
	if s.skip(end) {
		return true
	}
	for {
		if !element() {
			return false
		}
		if s.skip(end) {
			return true
		}
		if !s.skip(',') {
			return false
		}
	}
}

// object reads the object that is a sample.
func (s *scanner) object(of *schema, r *Reading) bool {
	var (
		x       []float64
		beside  bool // features are beside the other members
		feature seen
		n       int
		have    [4]bool // id, time, label, features
		id      []byte  // with quotes
		label   []byte  // with quotes
		when    []byte
		first   = func(i int) bool { was := have[i]; have[i] = true; return !was }
	)
	ok := s.list('{', '}', func() bool {
		key, ok := s.key()
		switch {
		case !ok:
			return false
		case string(key) == "features":
			if !first(3) || beside {
				return false
			}
			if s.next() == '[' {
				x, ok = s.array(of)
			} else {
				x, ok = s.features(of)
			}
			return ok
		case of.id != "" && string(key) == of.id:
			id, ok = s.plain()
			return ok && first(0)
		case string(key) == of.time:
			when, ok = s.when()
			return ok && first(1)
		case string(key) == of.label:
			label, ok = s.plain()
			return ok && first(2)
		}
		if have[3] {
			return false
		}
		beside = true
		if x == nil {
			x = s.room(of)
		}
		ok = s.feature(of, key, n, x, &feature)
		n++
		return ok
	})
	if !ok || x == nil || beside && n != len(x) {
		return false
	}
	if have[0] {
		if n := len(id) - 2; n == 0 || n > maxID {
			return false
		}
		r.RawID = string(id)
		r.ID = r.RawID[1 : len(id)-1]
	}
	if have[2] && of.setLabel(r, string(label[1:len(label)-1])) != nil {
		return false
	}
	if len(when) <= maxTime {
		r.RawTime = string(when)
	}
	r.X = x
	return true
}

// room returns memory for all features.
func (s *scanner) room(of *schema) []float64 {
	return slices.Grow(s.x[:0], len(of.names))[:len(of.names)]
}

// features reads an object of all features.
func (s *scanner) features(of *schema) ([]float64, bool) {
	x := s.room(of)
	var have seen
	n := 0
	ok := s.list('{', '}', func() bool {
		key, ok := s.key()
		ok = ok && s.feature(of, key, n, x, &have)
		n++
		return ok
	})
	return x, ok && n == len(x)
}

// feature reads the value of the n-th feature of the payload.
func (s *scanner) feature(of *schema, key []byte, n int, x []float64, have *seen) bool {
	i, ok := n, true
	if n >= len(x) || string(key) != of.names[n] { // most senders use the configured order
		if i, ok = of.index[string(key)]; !ok {
			return false
		}
	}
	x[i], ok = s.number()
	return ok && have.add(i)
}

// array reads an array of all features.
func (s *scanner) array(of *schema) ([]float64, bool) {
	x, n := s.room(of), 0
	ok := s.list('[', ']', func() bool {
		v, ok := s.number()
		if ok = ok && n < len(x); ok {
			x[n] = v
			n++
		}
		return ok
	})
	return x, ok && n == len(x)
}

// key reads a plain key and the colon after it.
func (s *scanner) key() ([]byte, bool) {
	key, ok := s.plain()
	if !ok || !s.skip(':') {
		return nil, false
	}
	return key[1 : len(key)-1], true
}

// plain reads a text of ASCII without escapes, and returns it with its quotes.
func (s *scanner) plain() ([]byte, bool) {
	if !s.skip('"') {
		return nil, false
	}
	from := s.at - 1
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return s.text[from:s.at], true
		case c < ' ' || c == '\\' || c >= 0x7f:
			return nil, false
		}
	}
	return nil, false
}

// when reads a time, a text or a number, and returns it as it is.
func (s *scanner) when() ([]byte, bool) {
	if s.next() == '"' {
		return s.plain()
	}
	from := s.at
	_, ok := s.number()
	return s.text[from:s.at], ok
}

// exact are the powers of ten that a float64 represents exactly.
var exact = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// number reads a JSON number and returns the nearest float64. If the digits are below
// 2⁵³ and the power of ten is exact, one division rounds once (Clinger 1990).
func (s *scanner) number() (v float64, ok bool) {
	s.next()
	from := s.at
	negative := s.at < len(s.text) && s.text[s.at] == '-'
	if negative {
		s.at++
	}
	var (
		mantissa uint64
		digits   int // significant digits
		exponent int
	)
	run := func(fraction bool) int {
		begin := s.at
		for ; s.at < len(s.text); s.at++ {
			d := s.text[s.at] - '0'
			if d > 9 {
				break
			}
			if digits < 19 {
				mantissa = 10*mantissa + uint64(d)
				if mantissa > 0 {
					digits++
				}
				if fraction {
					exponent--
				}
			} else {
				digits = 20 // too many for the mantissa
			}
		}
		return s.at - begin
	}
	zero := s.at < len(s.text) && s.text[s.at] == '0'
	if n := run(false); n == 0 || zero && n > 1 {
		return 0, false
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		s.at++
		if run(true) == 0 {
			return 0, false
		}
	}
	if s.at < len(s.text) && s.text[s.at]|0x20 == 'e' {
		digits = 20 // rare: handled by strconv
		if !s.skipExponent() {
			return 0, false
		}
	}
	if digits < 19 && mantissa < 1<<53 && -exponent < len(exact) {
		v = float64(mantissa) / exact[-exponent]
		if negative {
			v = math.Copysign(v, -1)
		}
		return v, true
	}
	v, err := strconv.ParseFloat(string(s.text[from:s.at]), 64)
	return v, err == nil
}

// skipExponent moves past the exponent of a number, which begins with e.
func (s *scanner) skipExponent() bool {
	s.at++
	if s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
		s.at++
	}
	begin := s.at
	for s.at < len(s.text) && s.text[s.at]-'0' <= 9 {
		s.at++
	}
	return s.at > begin
}
