package formula

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestErrors(t *testing.T) {
	signals := []string{"power", "voltage", "front-door", "mode.heat"}
	sum := func(terms int) string { return strings.TrimSuffix(strings.Repeat("1+", terms), "+") }
	for _, c := range []struct{ text, want string }{
		{"", "derive.y 1:1: the formula ends too early"},
		{"1 +", "derive.y 1:4: the formula ends too early"},
		{"(power", "derive.y 1:7: the formula ends too early"},
		{"power)", `derive.y 1:6: unexpected ")"`},
		{"1 2", `derive.y 1:3: unexpected "2"`},
		{"1 < 2 == 1", `derive.y 1:7: unexpected "=="`},
		{"* 2", `derive.y 1:1: unexpected "*"`},
		{"power = 2", "derive.y 1:7: unexpected character '='"},
		{"1 + € 2", "derive.y 1:5: unexpected character '€'"},
		{"`power", "derive.y 1:1: unexpected character '`'"},
		{"30sec", `derive.y 1:3: unexpected "sec"`},
		{"0x10", `derive.y 1:2: unexpected "x10"`},
		{"1e999", "derive.y 1:1: 1e999 is out of range"},
		{"1 + 99999999999h", "derive.y 1:5: 99999999999h is out of range"},
		{"1 +\n  powr", `derive.y 2:3: unknown name "powr"; did you mean power?`},
		{"größe", `derive.y 1:1: unknown name "größe"; the names are power, voltage, ` + "`front-door`, mode.heat, above"},
		{"mode.heta", `derive.y 1:1: unknown name "mode.heta"; did you mean mode.heat?`},
		{"2*front-door", `derive.y 1:3: unknown name "front"; a name with other characters than letters, digits, _ and . needs backquotes: ` + "`front-door`"},
		{"y + 1", "derive.y 1:1: y uses itself"},
		{"lag(y, 1)", "derive.y 1:5: y uses itself"},
		{"above + below", `derive.y 1:9: "below" is defined below; a formula can use those above it`},
		{"sqr(1)", `derive.y 1:1: unknown function "sqr"; did you mean sqrt?`},
		{"power(1)", `derive.y 1:1: unknown function "power"; the functions are abs, age, clamp, cos, diff, ewma, exp, hypot, if, lag, log, log10, max, min, rate, sin, since, sqrt`},
		{"sqrt()", "derive.y 1:1: sqrt has 0 arguments; want 1 argument"},
		{"1 + if(1, 2)", "derive.y 1:5: if has 2 arguments; want 3 arguments"},
		{"min(1)", "derive.y 1:1: min has 1 argument; want 2 arguments or more"},
		{"age(above)", "derive.y 1:1: the argument of age is the name of a signal that is not derived"},
		{"age(power + 1)", "derive.y 1:1: the argument of age is the name of a signal that is not derived"},
		{"ewma(power, 0s)", "derive.y 1:1: the second argument of ewma is its time constant: a duration above 0, such as 30s"},
		{"ewma(power, voltage)", "derive.y 1:1: the second argument of ewma is its time constant: a duration above 0, such as 30s"},
		{sum(129), "derive.y 1:1: 257 numbers, names, operators and functions are too many; the limit is 256: split the formula"},
		{strings.Repeat("(", 33) + "1" + strings.Repeat(")", 33), "derive.y 1:33: more than 32 open brackets"},
		{strings.Repeat(" ", 4096) + "1", "derive.y 1:1: 4097 bytes are too long; the limit is 4096"},
	} {
		_, err := Compile([]Definition{{"above", "1"}, {"y", c.text}, {"below", "2"}}, signals, nil, nil)
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("Compile(%q): %s\nwant %s", c.text, got, c.want)
		}
	}
	for _, n := range []string{"0", "1001", "2.5", "1e9", "voltage", "30s", "-1"} {
		const want = "derive.y 1:1: the second argument of lag is the number of rows: a whole number from 1 to 1000"
		if _, err := Compile([]Definition{{"y", "lag(power, " + n + ")"}}, signals, nil, nil); fmt.Sprint(err) != want {
			t.Errorf("lag(power, %s): %v, want %s", n, err, want)
		}
	}
}

// What is at a limit is allowed.
func TestLimits(t *testing.T) {
	defs := []Definition{
		{"long", strings.TrimSuffix(strings.Repeat("-x+", 85), "+")}, // 85 names, 85 signs, 84 sums
		{"deep", strings.Repeat("(", maxBrackets) + "1" + strings.Repeat(")", maxBrackets)},
		{"lags", strings.TrimSuffix(strings.Repeat("lag(x,1000)+", 16), "+") + "+lag(x,384)"},
	}
	for len(defs) < maxFormulas {
		defs = append(defs, Definition{fmt.Sprint("y", len(defs)), defs[len(defs)-1].Name})
	}
	p, err := Compile(defs, []string{"x"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := size(p.NewMemory()); got < 8*maxLags || got > 8*maxLags+2000 {
		t.Errorf("Bytes() = %d, want little more than %d", got, 8*maxLags)
	}
	if _, err := Compile(append(defs, Definition{"one", "1"}), []string{"x"}, nil, nil); fmt.Sprint(err) != "derive: 65 formulas are too many; the limit is 64" {
		t.Error(err)
	}
	defs[3].Text = "1 + lag(x, 1)"
	if _, err := Compile(defs, []string{"x"}, nil, nil); fmt.Sprint(err) != "derive.y3 1:5: the lags have 16385 rows in all up to here; the limit is 16384" {
		t.Error(err)
	}
}

// All errors of all parts come at once.
func TestAllErrors(t *testing.T) {
	_, err := Compile([]Definition{{"a", "zzzzz + qqqqq"}, {"x", "1"}, {"a", "2"}, {"", "3"}, {"b", "1 +"}, {"hour.sin", "a"}},
		[]string{"x"}, []string{"hour", "hours", "day", "hour"}, nil)
	want := `derive.a 1:1: unknown name "zzzzz"; the names are x
derive.a 1:9: unknown name "qqqqq"; the names are x
derive.x: a signal has this name; choose another
derive.a: defined twice
derive: name "": want one without backquotes and line ends, and not empty
derive.b 1:4: the formula ends too early
calendar "hour": a signal has the name hour.sin; choose another
calendar "hours": did you mean hour?
calendar "day": want hour, weekday or yearday
calendar "hour": listed twice`
	if got := fmt.Sprint(err); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestNamesAndUses(t *testing.T) {
	p, err := Compile([]Definition{{"p", "log10(1 + power)"}, {"q", "p + since(`front-door`) + ewma(lag(b, 2), 3s) + if(0, c, 1)"}},
		[]string{"power", "front-door", "a", "b", "c"}, []string{"yearday", "hour"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.Names(), []string{"p", "q", "yearday.sin", "yearday.cos", "hour.sin", "hour.cos"}; !slices.Equal(got, want) {
		t.Errorf("Names() = %q, want %q", got, want)
	}
	for name, want := range map[string]bool{"power": true, "front-door": true, "a": false, "b": true, "c": true, "p": true, "q": false, "hour.sin": false, "no": false} {
		if got := p.Uses(name); got != want {
			t.Errorf("Uses(%q) = %v, want %v", name, got, want)
		}
	}
}

// The examples of the document for users have the values that it gives, and its
// configuration compiles.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/formulas.md")
	if err != nil {
		t.Fatal(err)
	}
	signals, x := []string{"power", "voltage", "current", "x", "y", "none", "high", "low", "word"}, []float64{1234.5, 231.2, 5.25, -3, 4, missing, 1, 34464, 65531}
	_, examples, _ := strings.Cut(string(text), "## Examples")
	examples, _, _ = strings.Cut(examples, "## Calendar")
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\S+) \\|$").FindAllStringSubmatch(examples, -1)
	if len(rows) < 10 {
		t.Fatalf("%d examples found", len(rows))
	}
	for _, row := range rows {
		want, err := strconv.ParseFloat(strings.Replace(row[2], "missing", "NaN", 1), 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := one(t, row[1], signals, x); !near(got, want) {
			t.Errorf("%s = %v, the document has %v", row[1], got, want)
		}
	}
	_, block, _ := strings.Cut(string(text), "derive:")
	block, _, _ = strings.Cut(block, "calendar:")
	var defs []Definition
	for _, line := range regexp.MustCompile(`(?m)^ {6}(\w+): "?(.*?)"?(?: +#.*)?$`).FindAllStringSubmatch(block, -1) {
		defs = append(defs, Definition{line[1], line[2]})
	}
	if len(defs) != 8 {
		t.Errorf("formulas %q, want 8", defs)
	}
	if _, err := Compile(defs, []string{"power", "voltage", "current", "temperature", "motion", "front-door"}, nil, nil); err != nil {
		t.Error(err)
	}
}

// Without definitions a program has no values.
func TestEmpty(t *testing.T) {
	p, err := Compile(nil, []string{"x"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Append([]float64{7}, p.NewMemory(), &Row{X: []float64{1}}); len(p.Names()) != 0 || !slices.Equal(got, []float64{7}) {
		t.Errorf("Names() = %q, Append gave %v", p.Names(), got)
	}
}

// The mistakes of a program panic with their cause.
func TestMisuse(t *testing.T) {
	p, _ := Compile(nil, []string{"x"}, nil, nil)
	other, _ := Compile(nil, []string{"x"}, nil, nil)
	for want, call := range map[string]func(){
		"formula: the memory is of another program":      func() { p.Append(nil, other.NewMemory(), &Row{X: []float64{1}}) },
		"formula: a row of 2 signals for a program of 1": func() { p.Append(nil, p.NewMemory(), &Row{X: []float64{1, 2}}) },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("panic %v, want %v", got, want)
				}
			}()
			call()
		}()
	}
}

// size returns the bytes of a memory, without the struct.
func size(m *Memory) int {
	return 8 * (len(m.values) + len(m.times) + len(m.remembered) + len(m.derived))
}
