package dataset

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// Census is what one pass over a file finds out.
type Census struct {
	Rows    int
	Classes []string // sorted
	Gaps    int      // rows that lack a feature or a label
}

// maxClasses bounds what a census remembers: more classes than any model may have.
const maxClasses = 1000

// TakeCensus counts the rows of a file and collects its labels.
func TakeCensus(path string, f Format) (Census, error) {
	d, err := Open(path, f)
	if err != nil {
		return Census{}, err
	}
	defer d.Close()
	seen, gaps := map[string]bool{}, 0
	var row Row
	for {
		err := d.Next(&row)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Census{}, err
		}
		if row.Label == "" || slices.ContainsFunc(row.X, math.IsNaN) {
			gaps++
		}
		if row.Label == "" {
			continue
		}
		if seen[row.Label] = true; len(seen) > maxClasses {
			return Census{}, tooManyClasses(path, f.Label)
		}
	}
	if d.number == 0 {
		return Census{}, fmt.Errorf("%s: a header and no rows", path)
	}
	c := Census{Rows: d.number, Gaps: gaps}
	for class := range seen {
		c.Classes = append(c.Classes, class)
	}
	slices.Sort(c.Classes)
	return c, nil
}

func tooManyClasses(path, label string) error {
	column := "last column"
	if label != "" {
		column = "column " + strconv.Quote(label)
	}
	return fmt.Errorf("%s: more than %d different labels; is the label really the %s? --label NAME names another column", path, maxClasses, column)
}
