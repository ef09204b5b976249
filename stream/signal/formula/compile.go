package formula

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/participle/v2/lexer"

	"edge/stream/field"
)

const (
	maxFormulas = 64
	maxNodes    = 256   // numbers, names, operators and calls of a formula
	maxLag      = 1000  // rows of one lag
	maxLags     = 16384 // rows of all lags of a program
)

// Definition is a derived signal: its name and its formula.
type Definition struct{ Name, Text string }

// Compile returns the program of the definitions, in their order, and of the calendar
// features: hour, weekday, yearday. A formula may use the signals and the definitions
// above it. The zone is that of the calendar; nil: the host's.
//
// The error joins all errors. Each begins with its key, such as derive.p, and those of a
// formula have line:column in it.
func Compile(defs []Definition, signals, calendar []string, zone *time.Location) (*Program, error) {
	if zone == nil {
		zone = time.Local
	}
	p := &Program{signals: len(signals), zone: zone, used: map[string]bool{}}
	c := &compiler{
		functions: functions(), program: p, defs: defs,
		signals: map[string]int{}, derived: map[string]int{},
	}
	if len(defs) > 0 {
		c.syntax = newSyntax()
	}
	for i, name := range signals {
		c.signals[name] = i
		c.known = append(c.known, name)
	}
	if len(defs) > maxFormulas {
		return nil, fmt.Errorf("derive: %d formulas are too many; the limit is %d", len(defs), maxFormulas)
	}
	for i, d := range defs {
		c.define(i, d)
	}
	c.calendar(calendar)
	if err := field.Join(c.errs...); err != nil {
		return nil, err
	}
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%q %q", signals, defs)
	p.identity = hash.Sum64()
	return p, nil
}

// compiler makes a program of definitions.
type compiler struct {
	syntax    syntax
	functions map[string]function
	program   *Program
	signals   map[string]int // index in a row
	derived   map[string]int // index among the definitions above
	known     []string       // signals and the definitions above
	defs      []Definition
	errs      []error
	index     int // of the definition
	explained int // the offset in its formula up to which errors have been explained
	nodes     int // of its formula
	lags      int // rows of all lags
}

// define compiles definition i.
func (c *compiler) define(i int, d Definition) {
	c.index, c.nodes, c.explained = i, 0, 0
	_, signal := c.signals[d.Name]
	_, twice := c.derived[d.Name]
	switch {
	case d.Name == "" || strings.ContainsAny(d.Name, "`\n"):
		c.errs = append(c.errs, fmt.Errorf("derive: name %q: want one without backquotes and line ends, and not empty", d.Name))
		return
	case signal:
		c.errs = append(c.errs, fmt.Errorf("derive.%s: a signal has this name; choose another", d.Name))
		return
	case twice:
		c.errs = append(c.errs, fmt.Errorf("derive.%s: defined twice", d.Name))
		return
	}
	p := c.program
	tree, err := c.syntax.parse(d.Text)
	if err != nil {
		c.errs = append(c.errs, fmt.Errorf("derive.%s %w", d.Name, err))
	} else {
		value := tree.compile(c)
		if c.nodes > maxNodes {
			c.fail(lexer.Position{Line: 1, Column: 1}, "%d numbers, names, operators and functions are too many; the limit is %d: split the formula", c.nodes, maxNodes)
		}
		p.formulas = append(p.formulas, step{value: value, remembered: len(p.remember)})
	}
	c.derived[d.Name] = i
	c.known = append(c.known, d.Name)
	p.names = append(p.names, d.Name)
}

// fail records an error of the present formula and returns an expression in its place.
func (c *compiler) fail(at lexer.Position, format string, args ...any) expression {
	c.errs = append(c.errs, fmt.Errorf("derive.%s %w", c.defs[c.index].Name, fault(at, format, args...)))
	return constant(missing)
}

// name returns the expression of a signal or a derived signal.
func (c *compiler) name(at lexer.Position, word string) expression {
	name := unquoted(word)
	if i, ok := c.signals[name]; ok {
		c.program.used[name] = true
		return func(m *Memory) float64 { return finite(m.row.X[i]) }
	}
	if i, ok := c.derived[name]; ok {
		c.program.used[name] = true
		return func(m *Memory) float64 { return m.derived[i] }
	}
	if name == c.defs[c.index].Name {
		return c.fail(at, "%s uses itself", name)
	}
	if slices.ContainsFunc(c.defs[c.index:], func(d Definition) bool { return d.Name == name }) {
		return c.fail(at, "%s is defined below; a formula can use those above it", quoted(name))
	}
	if at.Offset < c.explained {
		return constant(missing)
	}
	if near := c.dashed(at); near != "" {
		c.explained = at.Offset + len(near)
		return c.fail(at, "unknown name %s; a name with other characters than letters, digits, _ and . needs backquotes: %s", quoted(name), c.syntax.written(near))
	}
	if near := field.Nearest(name, c.known); near != "" {
		return c.fail(at, "unknown name %s; did you mean %s?", quoted(name), c.syntax.written(near))
	}
	return c.fail(at, "unknown name %s; the names are %s", quoted(name), c.list())
}

// dashed returns the longest known name that the formula has at a place and that needs
// backquotes, such as front-door, or "".
func (c *compiler) dashed(at lexer.Position) string {
	rest, longest := c.defs[c.index].Text[at.Offset:], ""
	for _, name := range c.known {
		if strings.HasPrefix(rest, name) && len(name) > len(longest) {
			longest = name
		}
	}
	return longest
}

// list returns the known names.
func (c *compiler) list() string {
	words := make([]string, len(c.known))
	for i, name := range c.known {
		words[i] = c.syntax.written(name)
	}
	return join(words)
}

// join returns the first words, with commas.
func join(words []string) string {
	const most = 20
	switch {
	case len(words) == 0:
		return "none"
	case len(words) > most:
		return strings.Join(words[:most], ", ") + ", …"
	}
	return strings.Join(words, ", ")
}

// plural returns a number of arguments.
func plural(n int) string {
	if n == 1 {
		return "1 argument"
	}
	return fmt.Sprintf("%d arguments", n)
}

// unquoted returns a name without its backquotes.
func unquoted(word string) string { return strings.Trim(word, "`") }
