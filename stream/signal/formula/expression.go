package formula

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// expression returns the value of a part of a formula for the row that m has. A value is
// finite, or NaN: missing.
type expression func(m *Memory) float64

// missing is the value of an unknown number.
var missing = math.NaN()

// finite returns v, and NaN in place of an infinite v: ∞ − ∞ is NaN, v − v is else 0. The
// conversion rounds v first: some processors would fuse a product with the difference.
func finite(v float64) float64 {
	v = float64(v)
	return v - (v - v)
}

// isMissing reports whether v is NaN.
func isMissing(v float64) bool { return v != v }

// truth is 1 or 0.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// constant is the expression of a number.
func constant(v float64) expression { return func(*Memory) float64 { return v } }

func (d *disjunction) compile(c *compiler) expression {
	value := d.Terms[0].compile(c)
	for _, t := range d.Terms[1:] {
		value = c.binary("||", value, t.compile(c))
	}
	return value
}

func (t *conjunction) compile(c *compiler) expression {
	value := t.Terms[0].compile(c)
	for _, t := range t.Terms[1:] {
		value = c.binary("&&", value, t.compile(c))
	}
	return value
}

func (t *comparison) compile(c *compiler) expression {
	value := t.Left.compile(c)
	if t.Right == nil {
		return value
	}
	return c.binary(t.Operator, value, t.Right.compile(c))
}

func (s *sum) compile(c *compiler) expression {
	value := s.First.compile(c)
	for _, r := range s.Rest {
		value = c.binary(r.Operator, value, r.Term.compile(c))
	}
	return value
}

func (p *product) compile(c *compiler) expression {
	value := p.First.compile(c)
	for _, r := range p.Rest {
		value = c.binary(r.Operator, value, r.Term.compile(c))
	}
	return value
}

func (s *signed) compile(c *compiler) expression {
	value := s.Power.compile(c)
	for _, operator := range slices.Backward(s.Operators) {
		value = c.unary(operator, value)
	}
	return value
}

func (p *power) compile(c *compiler) expression {
	value := p.Base.compile(c)
	if p.Exponent == nil {
		return value
	}
	return c.binary("^", value, p.Exponent.compile(c))
}

func (o *operand) compile(c *compiler) expression {
	if o.Inner != nil {
		return o.Inner.compile(c)
	}
	c.nodes++
	switch {
	case o.Call:
		return c.call(o)
	case o.Name != "":
		return c.name(o.Pos, o.Name)
	}
	v, err := o.number()
	if err != nil {
		return c.fail(o.Pos, "%s%s is out of range", o.Number, o.Duration)
	}
	return constant(v)
}

// number returns the value of a number, or of a duration in seconds.
func (o *operand) number() (float64, error) {
	if o.Duration != "" {
		d, err := time.ParseDuration(o.Duration)
		return d.Seconds(), err
	}
	return strconv.ParseFloat(o.Number, 64)
}

// unary returns -a, or !a: 1 if a is 0, else 0.
func (c *compiler) unary(operator string, a expression) expression {
	c.nodes++
	if operator == "-" {
		return func(m *Memory) float64 { return -a(m) }
	}
	return func(m *Memory) float64 {
		x := a(m)
		if isMissing(x) {
			return missing
		}
		return truth(x == 0)
	}
}

// binary returns the expression of two operands.
func (c *compiler) binary(operator string, a, b expression) expression {
	c.nodes++
	switch operator {
	case "+":
		return func(m *Memory) float64 { return finite(a(m) + b(m)) }
	case "-":
		return func(m *Memory) float64 { return finite(a(m) - b(m)) }
	case "*":
		return func(m *Memory) float64 { return finite(a(m) * b(m)) }
	case "/":
		return func(m *Memory) float64 { return finite(a(m) / b(m)) }
	case "^":
		return known2(a, b, func(x, y float64) float64 { return finite(math.Pow(x, y)) })
	case "<":
		return known2(a, b, func(x, y float64) float64 { return truth(x < y) })
	case "<=":
		return known2(a, b, func(x, y float64) float64 { return truth(x <= y) })
	case ">":
		return known2(a, b, func(x, y float64) float64 { return truth(x > y) })
	case ">=":
		return known2(a, b, func(x, y float64) float64 { return truth(x >= y) })
	case "==":
		return known2(a, b, func(x, y float64) float64 { return truth(x == y) })
	case "!=":
		return known2(a, b, func(x, y float64) float64 { return truth(x != y) })
	case "&&":
		return known2(a, b, func(x, y float64) float64 { return truth(x != 0 && y != 0) })
	case "||":
		return known2(a, b, func(x, y float64) float64 { return truth(x != 0 || y != 0) })
	}
	panic("formula: operator " + operator)
}

// known2 returns f of two operands, missing if one of them is.
func known2(a, b expression, f func(x, y float64) float64) expression {
	return func(m *Memory) float64 {
		x, y := a(m), b(m)
		if isMissing(x) || isMissing(y) {
			return missing
		}
		return f(x, y)
	}
}
