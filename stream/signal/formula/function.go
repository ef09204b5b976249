package formula

import (
	"math"

	"edge/stream/field"
)

// function is a function of the language.
type function struct {
	least, most int // arguments; most 0: no limit but that of the formula
	compile     func(c *compiler, o *operand, args []expression) expression
}

// functions returns the functions by name.
func functions() map[string]function {
	return map[string]function{
		"abs":   of(math.Abs),
		"sqrt":  of(math.Sqrt),
		"exp":   of(math.Exp),
		"log":   of(math.Log),
		"log10": of(math.Log10),
		"sin":   of(math.Sin),
		"cos":   of(math.Cos),
		"min":   ofMany(func(x, y float64) float64 { return min(x, y) }),
		"max":   ofMany(func(x, y float64) float64 { return max(x, y) }),
		"hypot": ofMany(math.Hypot),
		"clamp": {least: 3, most: 3, compile: clamp},
		"if":    {least: 3, most: 3, compile: branch},
		"lag":   {least: 2, most: 2, compile: lag},
		"diff":  {least: 1, most: 1, compile: diff},
		"rate":  {least: 1, most: 1, compile: rate},
		"ewma":  {least: 2, most: 2, compile: ewma},
		"since": {least: 1, most: 1, compile: since},
		"age":   {least: 1, most: 1, compile: age},
	}
}

// call compiles a call. An unknown function, or a wrong number of arguments, is an error.
func (c *compiler) call(o *operand) expression {
	f, ok := c.functions[o.Name]
	if !ok {
		names := field.Names(c.functions)
		if near := field.Nearest(o.Name, names); near != "" {
			return c.fail(o.Pos, "unknown function %s; did you mean %s?", quoted(o.Name), near)
		}
		return c.fail(o.Pos, "unknown function %s; the functions are %s", quoted(o.Name), join(names))
	}
	if n := len(o.Args); n < f.least || f.most > 0 && n > f.most {
		want := "want " + plural(f.least)
		if f.most == 0 {
			want += " or more"
		}
		return c.fail(o.Pos, "%s has %s; %s", o.Name, plural(n), want)
	}
	args := make([]expression, len(o.Args))
	for i, a := range o.Args {
		args[i] = a.compile(c)
	}
	return f.compile(c, o, args)
}

// of is a function of one number.
func of(f func(float64) float64) function {
	return function{least: 1, most: 1, compile: func(_ *compiler, _ *operand, args []expression) expression {
		a := args[0]
		return func(m *Memory) float64 { return finite(f(a(m))) }
	}}
}

// ofMany is a function of two numbers or more: f of the first two, then of that and the
// next.
func ofMany(f func(x, y float64) float64) function {
	f2 := func(x, y float64) float64 { return finite(f(x, y)) }
	return function{least: 2, compile: func(_ *compiler, _ *operand, args []expression) expression {
		value := args[0]
		for _, a := range args[1:] {
			value = known2(value, a, f2)
		}
		return value
	}}
}

// clamp is x, at least low and at most high; missing if low is above high.
func clamp(_ *compiler, _ *operand, args []expression) expression {
	x, low, high := args[0], args[1], args[2]
	return func(m *Memory) float64 {
		x, low, high := x(m), low(m), high(m)
		if isMissing(x) || !(low <= high) {
			return missing
		}
		return min(max(x, low), high)
	}
}

// branch is a if the condition is not 0, else b. The value of the other one makes no difference.
func branch(_ *compiler, _ *operand, args []expression) expression {
	condition, a, b := args[0], args[1], args[2]
	return func(m *Memory) float64 {
		switch x := condition(m); {
		case isMissing(x):
			return missing
		case x != 0:
			return a(m)
		}
		return b(m)
	}
}
