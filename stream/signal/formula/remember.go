package formula

import "math"

// A function with memory is computed at every row, before the formula that has it, so
// that it remembers rows whose branch of an if is not taken. The formula reads its value.
//
// Each has its places in the values and times of a Memory, from indices that reserve
// gives out. A value is NaN until there is one.

// reserve returns the first index of so many values and times.
func (c *compiler) reserve(values, times int) (value, time int) {
	p := c.program
	value, time = p.values, p.times
	p.values += values
	p.times += times
	return value, time
}

// remember adds a computation to those of every row and returns the expression of its
// value.
func (c *compiler) remember(compute expression) expression {
	p := c.program
	i := len(p.remember)
	p.remember = append(p.remember, compute)
	return func(m *Memory) float64 { return m.remembered[i] }
}

// lag is the value of x, n rows before.
func lag(c *compiler, o *operand, args []expression) expression {
	x, rows := args[0], 0
	if n := o.Args[1].single(); n != nil && n.Number != "" {
		if v, err := n.number(); err == nil && v == math.Trunc(v) && v >= 1 && v <= maxLag {
			rows = int(v)
		}
	}
	if rows == 0 {
		return c.fail(o.Pos, "the second argument of lag is the number of rows: a whole number from 1 to %d", maxLag)
	}
	if c.lags += rows; c.lags > maxLags {
		return c.fail(o.Pos, "the lags have %d rows in all up to here; the limit is %d", c.lags, maxLags)
	}
	at, _ := c.reserve(rows, 0)
	return c.remember(func(m *Memory) float64 {
		slot := &m.values[at+int(m.rows%uint64(rows))]
		before := *slot
		*slot = x(m)
		return before
	})
}

// diff is x less its value at the row before.
func diff(c *compiler, _ *operand, args []expression) expression {
	x := args[0]
	at, _ := c.reserve(1, 0)
	return c.remember(func(m *Memory) float64 {
		before := m.values[at]
		m.values[at] = x(m)
		return finite(m.values[at] - before)
	})
}

// rate is diff over the seconds since the row before; missing if there are none.
func rate(c *compiler, _ *operand, args []expression) expression {
	x := args[0]
	at, _ := c.reserve(1, 0)
	return c.remember(func(m *Memory) float64 {
		before := m.values[at]
		m.values[at] = x(m)
		return finite((m.values[at] - before) / seconds(m.last, m.row.Time))
	})
}

// ewma is the exponentially weighted mean of x with the time constant tau, in seconds:
// the first value, then y + w·(x − y) with w = 1 − exp(−Δt/tau), Δt the time since the
// row that had the last value.
func ewma(c *compiler, o *operand, args []expression) expression {
	x, tau := args[0], 0.0
	if n := o.Args[1].single(); n != nil && n.Name == "" {
		tau, _ = n.number()
	}
	if !(tau > 0) || math.IsInf(tau, 1) {
		return c.fail(o.Pos, "the second argument of ewma is its time constant: a duration above 0, such as 30s")
	}
	at, since := c.reserve(1, 1)
	return c.remember(func(m *Memory) float64 {
		x, y := x(m), m.values[at]
		if isMissing(x) {
			return missing
		}
		if !isMissing(y) {
			w := -math.Expm1(-seconds(m.times[since], m.row.Time) / tau)
			x = finite(y + float64(w*(x-y)))
		}
		m.values[at], m.times[since] = x, m.row.Time
		return x
	})
}

// since is the time in seconds since x changed: for a signal since the change
// that the row names, if it does, else since the first row with the present value.
func since(c *compiler, o *operand, args []expression) expression {
	x := args[0]
	signal := c.signal(o.Args[0])
	at, changed := c.reserve(1, 1)
	return c.remember(func(m *Memory) float64 {
		x := x(m)
		if isMissing(x) {
			return missing
		}
		if x != m.values[at] {
			m.values[at], m.times[changed] = x, m.row.Time
		}
		if signal >= 0 && m.row.Changed != nil {
			return seconds(m.row.Changed[signal], m.row.Time)
		}
		return seconds(m.times[changed], m.row.Time)
	})
}

// age is the time in seconds since a signal came: 0 if the row has no time of it.
func age(c *compiler, o *operand, args []expression) expression {
	x, signal := args[0], c.signal(o.Args[0])
	if signal < 0 {
		return c.fail(o.Pos, "the argument of age is the name of a signal that is not derived")
	}
	return func(m *Memory) float64 {
		switch {
		case isMissing(x(m)):
			return missing
		case m.row.Came == nil:
			return 0
		}
		return seconds(m.row.Came[signal], m.row.Time)
	}
}

// signal returns the index of the signal that an argument names, or -1.
func (c *compiler) signal(arg *disjunction) int {
	if o := arg.single(); o != nil && o.Name != "" && !o.Call {
		if i, ok := c.signals[unquoted(o.Name)]; ok {
			return i
		}
	}
	return -1
}

// seconds returns the time between two moments in ns; 0 if the second is the earlier one.
func seconds(from, to int64) float64 {
	return max(0, float64(to-from)/1e9)
}
