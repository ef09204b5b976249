package codec

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"edge/online"
	"edge/stream/field"
)

// LabelMap maps the labels in payloads to names of classes, or to "" where a word is no label.
// Nil maps every text, whole number and boolean to itself.
type LabelMap map[string]string

// NewLabelMap returns the map of a configuration. A number among its keys stands for
// all its spellings.
func NewLabelMap(of map[string]string) LabelMap {
	if len(of) == 0 {
		return nil
	}
	m := LabelMap(maps.Clone(of))
	for _, name := range of { // edge replay and people send the names of classes
		if _, taken := m[name]; !taken && name != "" {
			m[name] = name
		}
	}
	for key, name := range of {
		if number, _, ok := plainNumber(key); ok {
			if _, taken := of[number]; !taken {
				m[number] = name
			}
		}
	}
	return m
}

// checkLabelMap returns an error for each invalid key and name. none allows words that are no label.
func checkLabelMap(key string, of map[string]string, none bool) error {
	var errs []error
	for _, value := range field.Names(of) {
		name := of[value]
		errs = append(errs, field.Check(value != "" && len(value) <= online.MaxLabel, key, fmt.Sprintf("%.40q", value), fmt.Sprintf("values of 1 to %d bytes", online.MaxLabel)))
		if why := CheckLabel(name); why != nil && (name != "" || !none) {
			errs = append(errs, fmt.Errorf("%s.%s: the class %w", key, value, why))
		}
		if number, _, ok := plainNumber(value); ok && number != value {
			other, twice := of[number]
			errs = append(errs, field.Check(!twice || other == name, key, value, "one class for one number: "+number+" is a key as well"))
		}
	}
	return field.Join(errs...)
}

// class returns the class of a text, "" for one that is no label.
func (m LabelMap) class(text string) (string, bool) {
	if m == nil {
		return text, true
	}
	if name, ok := m[text]; ok {
		return name, true
	}
	number, _, ok := plainNumber(text)
	if !ok {
		return "", false
	}
	name, ok := m[number]
	return name, ok
}

// Class returns the class of a text, "" for one that is no label. The error is that of a text
// which the map does not have.
func (m LabelMap) Class(text string) (string, error) {
	name, ok := m.class(text)
	if !ok {
		return "", fmt.Errorf("the label %.40q is not in the map of labels, which has %s", text, field.Listed(field.Names(m)))
	}
	return name, nil
}

// CheckLabel returns an error unless a text may be the name of a class.
func CheckLabel(text string) error {
	switch {
	case text == "" || len(text) > online.MaxLabel:
		return fmt.Errorf("has %d bytes: want 1 to %d", len(text), online.MaxLabel)
	case HasControl(text):
		return errors.New("has a control character")
	}
	return nil
}

// HasControl reports whether a text has a control character, which no label may have.
func HasControl(text string) bool {
	return strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f })
}

// CheckText returns an error for a text of JSON with half of a surrogate pair, which gjson reads as
// U+FFFD: several texts would be one.
func CheckText(v gjson.Result) error {
	const unread = "\ufffd"
	if strings.Contains(v.Str, unread) && !strings.Contains(v.Raw, unread) {
		return fmt.Errorf("is %.60s, which has half of a surrogate pair without the other half", v.Raw)
	}
	return nil
}

// setLabel sets the label of a reading from a text. One that the map has for no label is as null.
func (s *schema) setLabel(r *Reading, text string) *Refusal {
	err, blank := CheckLabel(text), strings.TrimSpace(text) == ""
	if _, mapped := s.labels[text]; err == nil && blank && !mapped { // as of a text of fixed length
		err = errors.New("has spaces alone")
	}
	if err != nil {
		remedy := ""
		if blank && len(s.names) > 0 { // a sample may have none
			remedy = "; send null, or no " + s.label + ", for a sample without a label"
		}
		return Refuse(BadLabel, "%s %w%s", s.label, err, remedy)
	}
	name, ok := s.labels.class(text)
	if !ok {
		return Refuse(BadLabel, "%s is %.40q, which the map of labels does not have; it has %s", s.label, text, field.Listed(field.Names(s.labels)))
	}
	r.Label, r.Null = strings.Clone(name), name == "" && s.signals != nil
	return nil
}

// setLabelNumber sets the label of a reading from a number. A whole number is the name
// of a class, such as 1; a fraction needs a map, because computed fractions are rarely
// equal.
func (s *schema) setLabelNumber(r *Reading, text string) *Refusal {
	number, whole, ok := plainNumber(text)
	if !ok {
		return Refuse(BadLabel, "%s is the number %.40s, which is out of range", s.label, text)
	}
	if _, mapped := s.labels[number]; !whole && !mapped {
		return Refuse(BadLabel, "%s is the number %.40s: want a text, a whole number, true or false; or a map of labels that has it", s.label, text)
	}
	return s.setLabel(r, number)
}

// plainNumber returns one spelling for each number: 1, 1.0, 1e0 and 01 are 1.
func plainNumber(text string) (number string, whole, ok bool) {
	v, err := decimal(text)
	if err != nil {
		return "", false, false
	}
	const exact = 1 << 53
	if v == math.Trunc(v) && math.Abs(v) < exact {
		return strconv.FormatInt(int64(v), 10), true, true
	}
	if digits := strings.TrimPrefix(text, "-"); strings.Trim(digits, "0123456789") == "" { // more digits than a float64 holds
		return text, true, true
	}
	return strconv.FormatFloat(v, 'g', -1, 64), v == math.Trunc(v), true
}
