package formula

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// one returns the value of a formula over signals at one row.
func one(t testing.TB, text string, signals []string, x []float64) float64 {
	t.Helper()
	p, err := Compile([]Definition{{"result", text}}, signals, nil, nil)
	if err != nil {
		t.Fatalf("Compile(%q): %v", text, err)
	}
	return p.Append(nil, p.NewMemory(), &Row{Time: 1e18, X: x})[0]
}

// near reports whether a is b to a relative 1e-13, or both are missing.
func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-13*math.Abs(b) || math.IsNaN(a) && math.IsNaN(b)
}

// The digits are from Python 3 (math, float) by the same formulas, ^ written as **.
func TestExpressions(t *testing.T) {
	signals := []string{"power", "voltage", "current", "mode.heat", "front-door", "pm2.5", "x", "y", "none", "größe"}
	x := []float64{1234.5, 231.2, 5.25, 1, 0, 8.5, -3, 4, missing, 2}
	for _, c := range []struct {
		text string
		want float64
	}{
		// numbers and names
		{"1", 1}, {"1.5", 1.5}, {".5", 0.5}, {"2.", 2}, {"1e3", 1000}, {"1.5E-3", 0.0015}, {"power", 1234.5},
		{"mode.heat", 1}, {"pm2.5", 8.5}, {"`front-door` + 3", 3}, {"`power`", 1234.5}, {"größe", 2}, {" \n\t 1 \n", 1},
		{"30s", 30}, {"250ms", 0.25}, {"5m", 300}, {"1h30m", 5400}, {"1.5h", 5400}, {"2 * 5m", 600},
		// precedence and association
		{"1 + 2 * 3", 7}, {"(1 + 2) * 3", 9}, {"10 - 4 - 3", 3}, {"100 / 10 / 2", 5}, {"100 / (10 / 2)", 20}, {"2 * 3 ^ 2", 18},
		{"2 ^ 3 ^ 2", 512}, {"(2 ^ 3) ^ 2", 64}, {"-2 ^ 2", -4}, {"(-2) ^ 2", 4}, {"2 ^ -1", 0.5}, {"2 ^ -2 ^ 2", 0.0625}, {"--3", 3}, {"1 - -1", 2}, {"-x", 3},
		{"1 + 2 < 4", 1}, {"!x == 0", 1}, {"!(x == 0)", 1}, {"!0", 1}, {"!!5", 1}, {"-!0", -1},
		{"1 || 0 && 0", 1}, {"(1 || 0) && 0", 0}, {"x < 0 && y > 3", 1}, {"x < 0 && y > 4 || power > 1e3", 1},
		// comparisons
		{"x < y", 1}, {"y < x", 0}, {"y <= 4", 1}, {"y >= 4", 1}, {"y > 4", 0}, {"y == 4", 1}, {"y != 4", 0}, {"0 == -0", 1},
		// functions
		{"log10(1 + power)", 3.091842749738098}, {"power / (voltage * current + 1)", 1.0162166611787948},
		{"abs(x)", 3}, {"sqrt(2)", 1.4142135623730951}, {"exp(1)", 2.718281828459045}, {"log(10)", 2.302585092994046},
		{"sin(1)", 0.8414709848078965}, {"cos(1)", 0.5403023058681398}, {"min(x, y)", -3}, {"min(3, 1, 2)", 1}, {"max(x, y)", 4}, {"max(1, 3, 2)", 3},
		{"clamp(x, -1, 1)", -1}, {"clamp(y, -1, 1)", 1}, {"clamp(0.5, -1, 1)", 0.5}, {"clamp(x, 2, 1)", missing},
		{"hypot(x, y)", 5}, {"hypot(2, 3, 6)", 7}, {"hypot(1e200, 1e200)", 1.4142135623730951e200},
		{"if(x < 0, y, power)", 4}, {"if(x > 0, y, power)", 1234.5}, {"if(-0.1, 1, 2)", 1}, {"if(0, 1, if(1, 2, 3))", 2},
		{"power ^ 0.25", 5.927516527309032}, {"0 ^ 0", 1}, {"2 ^ 0.5 * 2", 2.8284271247461903},
		{"age(power)", 0}, {"since(power)", 0},
		// missing: not finite at any place, or an argument that is
		{"none", missing}, {"none + 1", missing}, {"-none", missing}, {"!none", missing}, {"none * 0", missing}, {"none ^ 0", missing}, {"1 ^ none", missing},
		{"none < 1", missing}, {"none == none", missing}, {"none != 1", missing}, {"none || 1", missing}, {"0 && none", missing},
		{"min(none, 1)", missing}, {"max(1, none)", missing}, {"hypot(none, 1)", missing}, {"clamp(none, 0, 1)", missing}, {"clamp(1, none, 2)", missing}, {"clamp(1, 0, none)", missing},
		{"if(none, 1, 2)", missing}, {"if(1, 2, none)", 2}, {"if(0, none, 3)", 3}, {"if(1, none, 3)", missing},
		{"1 / 0", missing}, {"0 / 0", missing}, {"1 / (1 / 0)", missing}, {"exp(-1 / 0)", missing}, {"exp(1000)", missing}, {"log(0)", missing}, {"log10(-1)", missing},
		{"sqrt(x)", missing}, {"x ^ 0.5", missing}, {"1e308 * 10", missing}, {"1e308 + 1e308", missing}, {"-1e308 - 1e308", missing}, {"10 ^ 400", missing}, {"0 ^ -1", missing}, {"hypot(1.5e308, 1.5e308)", missing},
		{"abs(none)", missing}, {"age(none)", missing}, {"since(none)", missing}, {"lag(power, 1)", missing}, {"diff(power)", missing}, {"rate(power)", missing},
		{"ewma(power, 30s)", 1234.5}, {"ewma(none, 30s)", missing},
	} {
		if got := one(t, c.text, signals, x); !near(got, c.want) {
			t.Errorf("%q = %v, want %v", c.text, got, c.want)
		}
	}
}

// An infinite value of a row is missing, too.
func TestInfiniteSignal(t *testing.T) {
	for _, text := range []string{"x", "1 / x", "if(x, 1, 2)", "x > 0", "exp(-x)"} {
		if got := one(t, text, []string{"x"}, []float64{math.Inf(1)}); !math.IsNaN(got) {
			t.Errorf("%q of an infinite x = %v, want NaN", text, got)
		}
	}
}

// A missing value has the same bits wherever it is from, as digests of samples have them.
func TestMissingBits(t *testing.T) {
	x := []float64{math.Float64frombits(0xfff8000000000123)}
	for _, text := range []string{"x", "-x", "1 / 0", "0 / 0 - 1 / 0", "sqrt(-1)", "log(-1)", "lag(x, 1)", "x + 1"} {
		if got := one(t, text, []string{"x"}, x); math.Float64bits(got) != math.Float64bits(math.NaN()) {
			t.Errorf("%q has the bits %x, want those of NaN, %x", text, math.Float64bits(got), math.Float64bits(math.NaN()))
		}
	}
}

// tree is a random expression that computes itself.
type tree struct {
	operator string // "" for a leaf
	leaf     string
	value    float64
	args     []*tree
}

// binding strength of the operators, by the table of docs/reference/formulas.md.
var strength = map[string]int{"||": 1, "&&": 2, "<": 3, ">=": 3, "==": 3, "+": 4, "-": 4, "*": 5, "/": 5, "neg": 6, "not": 6, "^": 7, "": 9}

func randomTree(r *rand.Rand, depth int, signals []string, x []float64) *tree {
	if depth == 0 || r.IntN(6) == 0 {
		if r.IntN(2) == 0 {
			i := r.IntN(len(signals))
			return &tree{leaf: signals[i], value: x[i]}
		}
		v := float64(r.IntN(5))
		return &tree{leaf: strconv.FormatFloat(v, 'g', -1, 64), value: v}
	}
	operators := []string{"||", "&&", "<", ">=", "==", "+", "-", "*", "/", "neg", "not", "^"}
	n := &tree{operator: operators[r.IntN(len(operators))]}
	n.args = append(n.args, randomTree(r, depth-1, signals, x))
	if n.operator != "neg" && n.operator != "not" {
		n.args = append(n.args, randomTree(r, depth-1, signals, x))
	}
	return n
}

// text writes the tree with the brackets that it needs, and no others.
func (n *tree) text() string {
	own := strength[n.operator]
	in := func(a *tree, least int) string {
		if strength[a.operator] < least {
			return "(" + a.text() + ")"
		}
		return a.text()
	}
	switch n.operator {
	case "":
		return n.leaf
	case "neg":
		return "-" + in(n.args[0], own)
	case "not":
		return "!" + in(n.args[0], own)
	case "^": // from the right; a sign may follow
		return in(n.args[0], own+1) + "^" + in(n.args[1], strength["neg"])
	case "<", ">=", "==": // do not chain
		return in(n.args[0], own+1) + n.operator + in(n.args[1], own+1)
	}
	return in(n.args[0], own) + n.operator + in(n.args[1], own+1)
}

func (n *tree) eval() float64 {
	if n.operator == "" {
		return n.value
	}
	a := n.args[0].eval()
	b := 0.0
	if len(n.args) > 1 {
		b = n.args[1].eval()
	}
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.NaN()
	}
	var v float64
	is := false
	switch n.operator {
	case "||":
		is = a != 0 || b != 0
	case "&&":
		is = a != 0 && b != 0
	case "<":
		is = a < b
	case ">=":
		is = a >= b
	case "==":
		is = a == b
	case "not":
		is = a == 0
	case "neg":
		v = -a
	case "+":
		v = a + b
	case "-":
		v = a - b
	case "*":
		v = a * b
	case "/":
		v = a / b
	case "^":
		v = math.Pow(a, b)
	}
	if is {
		v = 1
	}
	if math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}

// A formula has the value of its tree, whatever brackets its precedence saves.
func TestPrecedence(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	signals := []string{"a", "b.c", "none"}
	defined := 0
	for range 25 {
		x := []float64{r.NormFloat64(), 10 * r.NormFloat64(), missing}
		var defs []Definition
		var want []float64
		for len(defs) < maxFormulas {
			n := randomTree(r, 5, signals[:2+r.IntN(2)], x)
			if strings.Count(n.text(), "(") > maxBrackets {
				continue
			}
			defs = append(defs, Definition{"y" + strconv.Itoa(len(defs)), n.text()})
			want = append(want, n.eval())
		}
		p, err := Compile(defs, signals, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range p.Append(nil, p.NewMemory(), &Row{X: x}) {
			if got != want[i] && !(math.IsNaN(got) && math.IsNaN(want[i])) {
				t.Errorf("%s = %v at %v, want %v", defs[i].Text, got, x, want[i])
			}
			if !math.IsNaN(got) {
				defined++
			}
		}
	}
	if defined < 400 {
		t.Errorf("%d of the random formulas had a value: too few to test anything", defined)
	}
}
