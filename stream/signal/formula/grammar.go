package formula

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"unicode/utf8"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

const (
	maxText     = 4096 // bytes of a formula
	maxBrackets = 32   // open at one place
)

// identifier is a name that needs no backquotes. A part after a dot may begin with a digit.
const identifier = `[\pL_][\pL\pN_]*(?:\.[\pL\pN_]+)*`

// The types below are the grammar, the operators that bind least first. A chain of
// operators is a list, so that the parser recurses at brackets and powers alone.
type (
	disjunction struct {
		Terms []*conjunction `parser:"@@ ('||' @@)*"`
	}
	conjunction struct {
		Terms []*comparison `parser:"@@ ('&&' @@)*"`
	}
	comparison struct {
		Left     *sum   `parser:"@@"`
		Operator string `parser:"(@('<=' | '>=' | '==' | '!=' | '<' | '>')"`
		Right    *sum   `parser:"@@)?"`
	}
	sum struct {
		First *product  `parser:"@@"`
		Rest  []*addend `parser:"@@*"`
	}
	addend struct {
		Operator string   `parser:"@('+' | '-')"`
		Term     *product `parser:"@@"`
	}
	product struct {
		First *signed   `parser:"@@"`
		Rest  []*factor `parser:"@@*"`
	}
	factor struct {
		Operator string  `parser:"@('*' | '/')"`
		Term     *signed `parser:"@@"`
	}
	signed struct {
		Operators []string `parser:"@('-' | '!')*"`
		Power     *power   `parser:"@@"`
	}
	power struct {
		Base     *operand `parser:"@@"`
		Exponent *signed  `parser:"('^' @@)?"`
	}
	operand struct {
		Pos      lexer.Position
		Number   string         `parser:"  @Number"`
		Duration string         `parser:"| @Duration"`
		Name     string         `parser:"| @(Name | Quoted)"`
		Call     bool           `parser:"  (@'('"`
		Args     []*disjunction `parser:"  (@@ (',' @@)*)? ')')?"`
		Inner    *disjunction   `parser:"| '(' @@ ')'"`
	}
)

// single returns the operand that is the whole expression, brackets aside; nil if there
// is none.
func (d *disjunction) single() *operand {
	if len(d.Terms) > 1 || len(d.Terms[0].Terms) > 1 {
		return nil
	}
	c := d.Terms[0].Terms[0]
	if c.Right != nil || len(c.Left.Rest) > 0 || len(c.Left.First.Rest) > 0 {
		return nil
	}
	s := c.Left.First.First
	if len(s.Operators) > 0 || s.Power.Exponent != nil {
		return nil
	}
	if s.Power.Base.Inner != nil {
		return s.Power.Base.Inner.single()
	}
	return s.Power.Base
}

// syntax reads formulas.
type syntax struct {
	parser *participle.Parser[disjunction]
	plain  *regexp.Regexp // a name that needs no backquotes
}

func newSyntax() syntax {
	tokens := lexer.MustSimple([]lexer.SimpleRule{
		{Name: "Space", Pattern: `\s+`},
		{Name: "Duration", Pattern: `(?:\d+(?:\.\d+)?(?:ms|s|m|h))+\b`},
		{Name: "Number", Pattern: `(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?`},
		{Name: "Name", Pattern: identifier},
		{Name: "Quoted", Pattern: "`[^`\n]+`"},
		{Name: "Operator", Pattern: `<=|>=|==|!=|&&|\|\||[-+*/^(),<>!]`},
	})
	return syntax{
		parser: participle.MustBuild[disjunction](participle.Lexer(tokens), participle.Elide("Space")),
		plain:  regexp.MustCompile(`^` + identifier + `$`),
	}
}

// parse returns the tree of a formula, or an error that begins with line:column.
func (s syntax) parse(text string) (*disjunction, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("1:1: %d bytes are too long; the limit is %d", len(text), maxText)
	}
	if i := tooDeep(text); i >= 0 {
		at := lexer.Position{Line: 1, Column: 1}
		at.Advance(text[:i])
		return nil, fault(at, "more than %d open brackets", maxBrackets)
	}
	tree, err := s.parser.ParseString("", text)
	var unexpected *participle.UnexpectedTokenError
	var invalid *lexer.Error
	switch {
	case errors.As(err, &unexpected) && unexpected.Unexpected.EOF():
		return nil, fault(unexpected.Position(), "the formula ends too early")
	case errors.As(err, &unexpected):
		return nil, fault(unexpected.Position(), "unexpected %s", quoted(unexpected.Unexpected.Value))
	case errors.As(err, &invalid):
		r, _ := utf8.DecodeRuneInString(text[invalid.Pos.Offset:])
		return nil, fault(invalid.Pos, "unexpected character %q", r)
	case err != nil:
		return nil, fmt.Errorf("1:1: %w", err)
	}
	return tree, nil
}

// tooDeep returns the index of the first bracket that is one too many, or -1.
func tooDeep(text string) int {
	open := 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			if open++; open > maxBrackets {
				return i
			}
		case ')':
			open--
		}
	}
	return -1
}

// written returns a name as a formula has it: in backquotes if it needs them.
func (s syntax) written(name string) string {
	if s.plain.MatchString(name) {
		return name
	}
	return "`" + name + "`"
}

// fault returns an error that begins with line:column.
func fault(at lexer.Position, format string, args ...any) error {
	return fmt.Errorf("%d:%d: %s", at.Line, at.Column, fmt.Sprintf(format, args...))
}

// quoted returns a short piece of a formula in quotation marks.
func quoted(word string) string {
	if runes := []rune(word); len(runes) > 40 {
		word = string(runes[:40]) + "…"
	}
	return strconv.Quote(word)
}
