package codec

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"edge/stream/field"
)

// rule turns the values of one signal into numbers of a row.
type rule struct {
	name  string
	at    int                // index in Reading.X of the first number
	words map[string]float64 // numbers of words; nil: those that every signal knows
	hot   []string           // words of a one-hot signal
	unit  string
	other Other

	scale, offset float64
}

// newRule returns the rule of a signal whose numbers begin at index at.
func newRule(name string, at int, v Value) rule {
	r := rule{name: name, at: at, hot: v.OneHot, unit: oneSpelling(v.Unit), other: v.Other, scale: v.Scale, offset: v.Offset}
	if len(v.Map) > 0 {
		r.words = make(map[string]float64, len(v.Map))
		for word, to := range v.Map {
			r.words[word] = to
			if number, _, ok := plainNumber(word); ok { // which stands for all its spellings
				r.words[number] = to
			}
		}
	}
	return r
}

// numeric reports whether the signal takes numbers as they are.
func (r *rule) numeric() bool { return r.words == nil && len(r.hot) == 0 }

// width returns the number of numbers.
func (r *rule) width() int { return max(1, len(r.hot)) }

// missing sets the numbers of a value that is missing.
func (r *rule) missing(x []float64) {
	for i := range r.width() {
		x[r.at+i] = math.NaN()
	}
}

// isMissing reports whether the value in a row is missing.
func (r *rule) isMissing(x []float64) bool { return x[r.at] != x[r.at] }

// set sets the number of a value that is one.
func (r *rule) set(x []float64, v float64) *Refusal {
	if v = float64(v*r.scale) + r.offset; math.IsInf(v, 0) {
		return Refuse(NotANumber, "signal %.40q: the value is beyond the range of a float64 after scale and offset", r.name)
	}
	x[r.at] = v
	return nil
}

// setHot sets the numbers of a one-hot value; −1 is none of the words.
func (r *rule) setHot(x []float64, word int) {
	for i := range r.hot {
		x[r.at+i] = 0
	}
	if word >= 0 {
		x[r.at+word] = 1
	}
}

// json sets a JSON value.
func (r *rule) json(x []float64, v gjson.Result) *Refusal {
	switch v.Type {
	case gjson.Null:
		r.missing(x)
		return nil
	case gjson.String:
		return r.text(x, v.Str)
	case gjson.True, gjson.False:
		return r.boolean(x, v.Type == gjson.True)
	case gjson.Number:
		return r.number(x, v.Raw)
	}
	return Refuse(NotANumber, "signal %.40q is %s: want a number, a text, true or false; give the path of one in fields", r.name, kind(v))
}

// boolean sets true or false.
func (r *rule) boolean(x []float64, v bool) *Refusal {
	word, number := "false", 0.0
	if v {
		word, number = "true", 1
	}
	switch {
	case r.known(x, word):
		return nil
	case r.numeric() && r.unit == "":
		return r.set(x, number)
	}
	return r.unknown(x, word)
}

// number sets a decimal number.
func (r *rule) number(x []float64, text string) *Refusal {
	if !r.numeric() {
		if r.known(x, text) {
			return nil
		}
		return r.unknown(x, text)
	}
	v, err := decimal(text)
	return r.decimal(x, v, err)
}

// decimal sets the result of the function decimal.
func (r *rule) decimal(x []float64, v float64, err error) *Refusal {
	if err != nil {
		return Refuse(NotANumber, "signal %.40q: %w", r.name, err)
	}
	return r.set(x, v)
}

// text sets a value that is a text: a word that the rule has, a number, a number with
// the unit, or a word that every signal knows.
func (r *rule) text(x []float64, text string) *Refusal {
	text = strings.TrimSpace(text)
	switch {
	case r.known(x, text):
		return nil
	case isMissingWord(text):
		r.missing(x)
		return nil
	case !r.numeric():
		return r.unknown(x, text)
	}
	plain := oneSpelling(text)
	v, ok, err := asDecimal(plain)
	if number, has := strings.CutSuffix(plain, r.unit); !ok && has && r.unit != "" {
		v, ok, err = asDecimal(strings.TrimSpace(number))
	}
	switch {
	case ok:
		return r.decimal(x, v, err)
	case r.unit != "":
		return r.unknown(x, text)
	}
	if v, ok := commonWord(text); ok {
		return r.set(x, v)
	}
	return r.unknown(x, text)
}

// known sets a word of the rule's own, and reports false for another one.
func (r *rule) known(x []float64, text string) bool {
	if r.numeric() {
		return false
	}
	number, _, isNumber := plainNumber(text)
	if len(r.hot) > 0 {
		i := slices.Index(r.hot, text)
		if i < 0 && isNumber {
			i = slices.Index(r.hot, number)
		}
		if i >= 0 {
			r.setHot(x, i)
		}
		return i >= 0
	}
	v, ok := r.words[text]
	if !ok && isNumber {
		v, ok = r.words[number]
	}
	return ok && r.set(x, v) == nil
}

// unknown sets a word that the rule does not know.
func (r *rule) unknown(x []float64, text string) *Refusal {
	switch {
	case r.other.Missing:
		r.missing(x)
		return nil
	case r.other.Numeric && len(r.hot) > 0:
		r.setHot(x, -1)
		return nil
	case r.other.Numeric:
		return r.set(x, r.other.Number)
	}
	want, words := "one of ", r.hot
	plain := oneSpelling(text)
	switch number := strings.TrimSpace(strings.TrimSuffix(plain, r.unit)); {
	case r.words != nil:
		words = field.Names(r.words)
	case len(r.hot) == 0 && hasSeparators(number):
		return Refuse(NotANumber, "signal %.40q is %.40q: want a number with a decimal point and no other separator", r.name, text)
	case r.unit != "":
		return Refuse(NotANumber, "signal %.40q is %.40q: want a number, or one with the unit %s; values.%.40s can have another unit, or other: missing", r.name, text, r.unit, r.name)
	case len(r.hot) == 0 && isHex(text):
		return Refuse(NotANumber, "signal %.40q is %.40q: want a decimal number; hexadecimal digits are not read", r.name, text)
	case len(r.hot) == 0 && unitOf(plain) != "":
		return Refuse(NotANumber, "signal %.40q is %.40q: want a number; values.%.40s can have unit: %.40q", r.name, text, r.name, unitOf(plain))
	case len(r.hot) == 0 && holdsJSON(text):
		return Refuse(NotANumber, "signal %.40q is JSON in a text: %s", r.name, goOn)
	case len(r.hot) == 0:
		want = "a number, or one of "
		for _, w := range commonWords {
			words = append(words, w.word)
		}
	}
	return Refuse(NotANumber, "signal %.40q is %.40q: want %s%s%s; values.%.40s can map it, or have other: missing", r.name, text, want, joinWords(words), didYouMean(text, words), r.name)
}

// spellings are characters for which numbers and units have others of the same meaning.
var spellings = strings.NewReplacer("℃", "°C", "℉", "°F", "º", "°", "−", "-", "μ", "µ", "\u2126", "Ω")

// oneSpelling replaces those characters of a text for which there are others of the same meaning.
func oneSpelling(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return text
	}
	return spellings.Replace(text)
}

// goOn is the remedy for JSON in a text.
const goOn = "a path in fields that goes on in it finds a value, such as KEY.KEY"

// hasSeparators reports whether a text is a number with a decimal comma, or with marks between thousands.
func hasSeparators(text string) bool {
	return strings.Contains(text, ",") && isDecimal(strings.Map(func(c rune) rune {
		if strings.ContainsRune(",. '", c) {
			return -1
		}
		return c
	}, text))
}

// isHex reports whether a text is of hexadecimal digits, and no number with a unit such as 12A.
func isHex(text string) bool {
	digits := text
	if len(text) > 2 && strings.EqualFold(text[:2], "0x") {
		digits = text[2:]
	}
	letters := strings.TrimLeft(digits, "0123456789")
	return strings.Trim(letters, "0123456789abcdefABCDEF") == "" &&
		(strings.HasPrefix(text, "0") || len(letters) < len(digits) && strings.ContainsAny(letters, "0123456789"))
}

// unitOf returns the unit after a number, "" where a text is something else.
func unitOf(text string) string {
	unit := strings.TrimLeft(text, "0123456789.+-")
	if strings.HasPrefix(text, "0x") || !isDecimal(strings.TrimSpace(strings.TrimSuffix(text, unit))) {
		return ""
	}
	unit = strings.TrimSpace(unit)
	if first, _ := utf8.DecodeRuneInString(unit); !unicode.IsLetter(first) && first != '°' && first != '%' {
		return ""
	}
	return unit
}

// commonWords are the words that signals without words of their own know, in any case.
var commonWords = []struct {
	word  string
	value float64
}{{"true", 1}, {"false", 0}, {"on", 1}, {"off", 0}, {"open", 1}, {"closed", 0}, {"online", 1}, {"offline", 0}}

// commonWord returns the number of a common word.
func commonWord(text string) (v float64, ok bool) {
	for _, w := range commonWords {
		if strings.EqualFold(text, w.word) {
			return w.value, true
		}
	}
	return 0, false
}

// IsCommonWord reports whether signals without words of their own know a word, such as ON.
func IsCommonWord(text string) bool {
	_, ok := commonWord(text)
	return ok
}

// unknownWords are the texts that systems send for a state, or a value, that is not known.
var unknownWords = []string{"", "null", "unknown", "unavailable", "none"}

// isUnknownWord reports whether a text is one of unknownWords, in any case.
func isUnknownWord(text string) bool {
	return slices.ContainsFunc(unknownWords, func(w string) bool { return strings.EqualFold(text, w) })
}

// isMissingWord reports whether a text stands for no value of a signal, in any case.
func isMissingWord(text string) bool { return isUnknownWord(text) || strings.EqualFold(text, "nan") }

// asDecimal returns the value of a decimal number, and false for another text. The error is
// that of a number beyond the range of a float64. Instruments write +2.15E+01, and meters 007.5.
func asDecimal(text string) (v float64, ok bool, err error) {
	if text == "" || !strings.Contains("0123456789.+-", text[:1]) {
		return 0, false, nil
	}
	v, err = decimal(text)
	return v, err == nil || errors.Is(err, errRange), err
}

// isDecimal reports whether a text is a decimal number.
func isDecimal(text string) bool {
	_, ok, _ := asDecimal(text)
	return ok
}

// joinWords lists words for an error, of bounded length.
func joinWords(words []string) string {
	const most = 100 // bytes
	n, at := 0, 0
	for ; at < len(words) && n+len(words[at]) <= most; at++ {
		n += len(words[at]) + 2
	}
	list := strings.Join(words[:at], ", ")
	if at < len(words) {
		list += fmt.Sprintf(" and %d more", len(words)-at)
	}
	return list
}
