package eval

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"edge/internal/config"
	"edge/internal/dataset"
	"edge/internal/terminal"
	"edge/model"
	"edge/stream/codec"
)

// onMissing returns the key on_missing of a model's first stream.
func onMissing(c *config.Config, name string) string {
	return c.Streams[c.Models[name].Streams[0]].OnMissing
}

// checkOnMissing reports a value that on_missing does not have; "" is the default.
func checkOnMissing(how string) error {
	if slices.Contains([]string{"", codec.OnMissingReject, codec.OnMissingImpute, codec.OnMissingMarginalise}, how) {
		return nil
	}
	return fmt.Errorf("--on-missing %s: want reject, impute or marginalise", how)
}

// usableRows leaves out the rows without a label and those that on_missing rejects.
type usableRows struct {
	rows    dataset.Rows
	how     string
	post    func() *model.Posterior // by whose means it imputes; nil: features stay missing
	leftOut int
}

func (u *usableRows) Next(row *dataset.Row) error {
	for {
		if err := u.rows.Next(row); err != nil {
			return err
		}
		lacking := row.Lacking()
		if row.Label == "" || row.Empty() || lacking > 0 && u.how == codec.OnMissingReject {
			u.leftOut++
			continue
		}
		if lacking > 0 && u.how == codec.OnMissingImpute && u.post != nil {
			impute(row.X, u.post())
		}
		return nil
	}
}

// impute replaces missing features by the means of a model, which knows them after its first
// minibatch.
func impute(x []float64, p *model.Posterior) {
	for j, v := range x {
		if math.IsNaN(v) && p.Version() > 0 {
			x[j] = p.Mean(j)
		}
	}
}

// loadTable reads a data file for many passes or splits, and applies on_missing to
// the rows that lack features; it imputes the means of the file. features are those of a
// model; nil: the columns.
func loadTable(ctx context.Context, path string, data *dataset.Options, features []string, how string, errOut io.Writer) (*dataset.Table, error) {
	var t *dataset.Table
	if err := await(ctx, func() (err error) { t, err = dataset.LoadTable(path, data.Of(features)); return err }); err != nil {
		return nil, err
	}
	data.Warn(errOut, path, t.Warning)
	some, all := t.Lacking()
	switch how {
	case codec.OnMissingReject:
		t.Drop(some)
	case codec.OnMissingImpute:
		t.Impute()
		t.Drop(all)
	default:
		t.Drop(all)
	}
	if len(t.Labels) == 0 {
		return nil, noRows(path, how)
	}
	return t, nil
}

// printLeftOut prints how many rows of a table are left out, and the tally of a file of signals.
func printLeftOut(t *dataset.Table, how string, errOut io.Writer) {
	if t.LeftOut > 0 {
		fmt.Fprintf(errOut, "%s: left out: %s without a label or with too few features; on_missing is %s\n", t.Name, terminal.Count(t.LeftOut, "row"), how)
	}
	if t.Raw {
		fmt.Fprintf(errOut, "%s: %s\n", t.Name, t.Tally)
	}
}

// warnOfLabels writes the warning of a configuration about the classes in a file; c may be nil.
func warnOfLabels(w io.Writer, path string, c *config.Config, model string, classes []string) {
	if c == nil {
		return
	}
	if warning := c.LabelWarning(model, classes); warning != "" {
		fmt.Fprintf(w, "%s: %s\n", path, warning)
	}
}

// noRows returns the error for a file of which on_missing leaves no row to judge or to learn.
func noRows(path, how string) error {
	return fmt.Errorf("%s: every row lacks %s", path, lack(how, true))
}

// lack describes the cells that rows lack which are left out; under reject also how more of them count. features: some
// rows lack a feature.
func lack(how string, features bool) string {
	switch {
	case how != codec.OnMissingReject:
		return "a label or all features"
	case !features:
		return "a label"
	}
	return "a label or a feature; on_missing is reject: --on-missing marginalise takes those with a label and some features"
}
