package codec

import (
	"bytes"
	"math"
	"slices"
)

// maxSkipped is the number of keys beside the signals up to which the scanner reads an
// object: it compares them one by one.
const maxSkipped = 32

// scannable reports whether the scanner may read the rows: every signal takes numbers, and
// the payload has no rate.
func (g *signals) scannable() bool {
	return g.rate.Path == "" && !slices.ContainsFunc(g.rules, func(r rule) bool { return !r.numeric() })
}

// row reads a payload that is one row of numbers: an object that has all signals, whose
// other members are words or numbers, or an array of several signals.
func (s *scanner) row(of *schema, r *Reading) (ok bool) {
	size := len(of.signals.names)
	x := slices.Grow(s.x[:0], size)[:size]
	for i := range x {
		x[i] = math.NaN()
	}
	switch s.next() {
	case '[':
		ok = len(of.names) > 1 && s.rowArray(of, x)
	case '{':
		ok = s.rowObject(of, x, r)
	}
	r.X, r.Absent = x, of.signals.absent
	return ok
}

func (s *scanner) rowArray(of *schema, x []float64) bool {
	n := 0
	ok := s.list('[', ']', func() bool {
		v, ok := s.number()
		ok = ok && n < len(of.names) && of.signals.rules[n].set(x, v) == nil
		n++
		return ok
	})
	return ok && n == len(of.names)
}

func (s *scanner) rowObject(of *schema, x []float64, r *Reading) bool {
	var (
		have        seen
		n, others   int
		skipped     [maxSkipped][]byte
		label, when []byte
	)
	ok := s.list('{', '}', func() bool {
		key, ok := s.key()
		if !ok {
			return false
		}
		i := n
		if i >= len(of.names) || string(key) != of.names[i] { // most senders use the configured order
			i, ok = of.index[string(key)]
		}
		switch {
		case ok:
			v, ok := s.number()
			n++
			return ok && have.add(i) && of.signals.rules[i].set(x, v) == nil
		case string(key) == "features" || string(key) == "batch":
			return false
		case of.time != "" && string(key) == of.time:
			if when != nil {
				return false
			}
			when, ok = s.when()
			return ok
		case of.label != "" && string(key) == of.label:
			if label != nil {
				return false
			}
			label, ok = s.plain()
			return ok
		case others == maxSkipped || slices.ContainsFunc(skipped[:others], func(k []byte) bool { return bytes.Equal(k, key) }):
			return false
		}
		skipped[others] = key
		others++
		return s.skipWord()
	})
	if !ok || n != len(of.names) {
		return false
	}
	if label != nil && of.setLabel(r, string(label[1:len(label)-1])) != nil {
		return false
	}
	r.RawTime = string(when)
	return len(when) <= maxTime
}

// skipWord moves past a text, a number, true, false or null.
func (s *scanner) skipWord() bool {
	switch c := s.next(); {
	case c == '"':
		_, ok := s.plain()
		return ok
	case c == '-' || c-'0' <= 9:
		_, ok := s.number()
		return ok
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(s.text[s.at:], []byte(word)) {
			s.at += len(word)
			return true
		}
	}
	return false
}
