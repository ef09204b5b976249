package dataset

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// telling finds the features that are the label in other words: a number for each class, as tables have beside
// the names of the classes, and columns of 0 and 1 of which the label is one, as tables have in place of names.
type telling struct {
	classes []string
	codes   []code // of the features with one value for each class so far, and another one for another class
	begun   bool
	ones    []bool // of each feature: from it on to the label all are 0 or 1, and one of them is 1, in each row; nil: of none
}

// code has the values of a feature, by class.
type code struct {
	feature int
	values  []float64
}

// fewClasses is the number of classes, and of columns of 0 and 1, below which a sensor may well tell the label.
const fewClasses = 3

// add takes a row with the features x; without a label it says nothing.
func (t *telling) add(x []float64, label string) {
	if label == "" {
		return
	}
	if !t.begun {
		t.begun, t.codes, t.ones = true, make([]code, len(x)), slices.Repeat([]bool{true}, len(x))
		for j := range t.codes {
			t.codes[j].feature = j
		}
	}
	if len(t.codes) > 0 {
		class := slices.Index(t.classes, label)
		if class < 0 {
			class, t.classes = len(t.classes), append(t.classes, label)
		}
		if class == maxClasses {
			t.codes = nil // it is a number
		}
		t.codes = slices.DeleteFunc(t.codes, func(c code) bool { return class < len(c.values) && c.values[class] != x[c.feature] })
		for i := range t.codes {
			if c := &t.codes[i]; class == len(c.values) {
				c.values = append(c.values, x[c.feature])
			}
		}
		t.codes = slices.DeleteFunc(t.codes, func(c code) bool { return c.repeats() })
	}
	t.addOnes(x, label)
}

// repeats reports whether the latest class has the value of another one, or none.
func (c *code) repeats() bool {
	last := len(c.values) - 1
	return math.IsNaN(c.values[last]) || slices.Contains(c.values[:last], c.values[last])
}

// addOnes takes a row for the columns of 0 and 1.
func (t *telling) addOnes(x []float64, label string) {
	sum, found := 0.0, label == "0" || label == "1"
	if label == "1" {
		sum = 1
	}
	any := false
	for j := len(t.ones) - 1; j >= 0; j-- {
		sum, found = sum+x[j], found && (x[j] == 0 || x[j] == 1)
		t.ones[j] = t.ones[j] && found && sum == 1
		any = any || t.ones[j]
	}
	if !any {
		t.ones = nil
	}
}

// coded returns the features of so many that have one value for each class, and another one for another class;
// nil where all have, since none would be left.
func (t *telling) coded(of int) (features []int) {
	if len(t.classes) < fewClasses || len(t.codes) == of {
		return nil
	}
	for _, c := range t.codes {
		features = append(features, c.feature)
	}
	return features
}

// tellingWarning describes the features that are the label in other words; "" without one.
func (d *File) tellingWarning() string {
	if d.number < risingRows || d.wanted || d.raw != nil {
		return ""
	}
	coded := d.telling.coded(len(d.Features))
	var names, flags []string
	for i, role := range d.roles {
		if role >= 0 && slices.Contains(coded, role) {
			names, flags = append(names, d.column(i)), append(flags, d.flagWord(i))
		}
	}
	if names != nil {
		return fmt.Sprintf("each label has a value of its own in %s, as if that were the label in other words, and it counts as a feature: --ignore %s leaves it out", first(names), strings.Join(flags, ","))
	}
	return d.onesWarning()
}

// onesWarning describes columns of 0 and 1 at the end of the file of which each row has one 1; "" without them.
func (d *File) onesWarning() string {
	end, from := len(d.roles)-1, -1
	for j, one := range d.telling.ones {
		if one {
			from = j
		}
	}
	at := slices.Index(d.roles, from)
	if from < 0 || d.names == nil || d.roles[end] != label || end-at+1 < fewClasses || end-at != len(d.Features)-from {
		return ""
	}
	return fmt.Sprintf(`one of the columns %d-%d is 1 in each row, as if they were the classes of one label, and all but the last count as features: awk -F'%c' -v OFS='%[3]c' '{sub(/\r$/,"")} NR==1{split($0,n); l="label"} NR>1{for(i=%[1]d;i<=%[2]d;i++) if($i==1) l=n[i]} {NF=%[4]d; print $0,l}' FILE >FILE.csv makes one column of them`, at+1, end+1, d.csv.Comma, at)
}
