package dataset

import (
	"fmt"
	"slices"
	"strings"

	"edge/internal/dataset/csvtext"
	"edge/stream/field"
)

// Warning describes what a user should check, by the rows that Next has read; "" for nothing:
//
//   - the first line is taken for a sample, although no flag says so;
//   - columns with times are left out;
//   - columns are taken for a model's features by their order;
//   - a feature rises with every row, or is the label in other words;
//   - a value seems to stand for a missing one.
func (d *File) Warning() string {
	return both(d.guesses(), both(d.timesWarning(), both(d.risingWarning(), both(d.tellingWarning(), d.fillerWarning()))))
}

// both returns two warnings, either of which may be "", as one.
func both(a, b string) string { return strings.Trim(a+"; "+b, "; ") }

// labelWarning describes labels that are hardly classes, or all the same, in a column of the file which
// no flag made the label, and a feature that is the label by its name; "" for others. rows is the number of rows.
func (d *File) labelWarning(rows int, classes []string) string {
	const fewRows = 20
	if !d.begun.last || d.raw != nil || rows < fewRows {
		return ""
	}
	at := slices.Index(d.roles, label)
	column := d.column(at)
	if another := slices.IndexFunc(d.names, namesLabel); !d.wanted && another >= 0 && d.roles[another] >= 0 && !namesLabel(d.names[at]) {
		return fmt.Sprintf("column %s is taken for the label, and column %s for a feature: --label %s if that is the label", column, d.column(another), d.flagWord(another))
	}
	switch {
	case len(classes) == 1:
		return fmt.Sprintf("each label in column %s is %s: scores say nothing before there is another one; --label names another column", column, field.Quote(classes[0]))
	case hardlyClasses(rows, classes):
		return fmt.Sprintf("column %s is taken for the label, and has %d different values in %d rows: --label names another", column, len(classes), rows)
	}
	return ""
}

// namesLabel reports whether a column of that name is likely to be the label.
func namesLabel(name string) bool {
	name = strings.ToLower(name)
	return name == labelColumn || name == "class" || name == "target"
}

// hardlyClasses reports whether the labels of so many rows are more than a few, and nearly all different or
// mostly fractions.
func hardlyClasses(rows int, labels []string) bool {
	const few = 10
	fractions := 0
	for _, label := range labels {
		if _, err := csvtext.ParseNumber(label); err == nil && strings.ContainsAny(label, ".,") {
			fractions++
		}
	}
	return len(labels) > few && (2*len(labels) > rows || 2*fractions > len(labels))
}

// guesses describes what a file was taken for without a flag.
func (d *File) guesses() string {
	ordered := false
	for i, role := range d.roles {
		ordered = ordered || d.wanted && d.raw == nil && role >= 0 && (d.names == nil || d.names[i] != d.Features[role])
	}
	columns := "the features are called " + first(d.Features)
	if ordered {
		columns = fmt.Sprintf("the columns are taken for the features %s in this order", first(d.Features))
	}
	switch {
	case d.begun.guessed:
	case ordered:
		return columns
	default:
		return ""
	}
	alone := ""
	if d.number > 1 && d.begun.label != "" && !d.begun.again {
		alone = "; no other line has its label " + field.Quote(d.begun.label)
	}
	return "the first line is taken for a sample, since it has numbers, and " + columns + alone + "; --header yes if it names the columns"
}

// fewNames is the number of names that a warning has.
const fewNames = 3

// first returns the first names of a list.
func first(names []string) string {
	if len(names) > fewNames {
		return strings.Join(names[:fewNames], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
