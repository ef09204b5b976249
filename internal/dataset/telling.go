package dataset

import (
	"fmt"
	"math"
	"slices"
)

// telling finds the features that are the label in other words: a number for each class, as tables have beside
// the names of the classes, and columns of 0 and 1 of which the label is one, as tables have in place of names.
type telling struct {
	classes []string
	codes   [][]float64 // of each feature: its value with each class; nil: of one class it had two, or of two the same
	others  bool        // a feature has no code
	ones    []bool      // of each feature: from it on to the label all are 0 or 1, and one of them is 1, in each row; nil: of none
}

// fewClasses is the number of classes, and of columns of 0 and 1, below which a sensor may well tell the label.
const fewClasses = 3

// add takes a row with the features x; without a label it says nothing.
func (t *telling) add(x []float64, label string) {
	if label == "" {
		return
	}
	if t.codes == nil {
		t.codes, t.ones = make([][]float64, len(x)), make([]bool, len(x))
		for j := range x {
			t.codes[j], t.ones[j] = []float64{}, true
		}
	}
	class := indexOf(t.classes, label)
	if class < 0 {
		if class = len(t.classes); class > maxClasses {
			return // it is a number
		}
		t.classes = append(t.classes, label)
	}
	for j, of := range t.codes {
		switch v := x[j]; {
		case of == nil, class < len(of) && of[class] == v:
		case class == len(of) && !slices.Contains(of, v) && !math.IsNaN(v):
			t.codes[j] = append(of, v)
		default:
			t.codes[j], t.others = nil, true
		}
	}
	t.addOnes(x, label)
}

// coded reports whether a feature has one value for each class, and another one for another class. Where all have, none
// would be left.
func (t *telling) coded(feature int) bool {
	return len(t.classes) >= fewClasses && t.others && t.codes[feature] != nil
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

// tellingWarning describes the features that are the label in other words; "" without one.
func (d *File) tellingWarning() string {
	if d.number < risingRows || d.wanted || d.raw != nil {
		return ""
	}
	if names, flags := d.listed(d.telling.coded); names != "" {
		return "each label has a value of its own in " + names + ", as if that were the label in other words, and it counts as a feature: --ignore " + flags + " leaves it out"
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
