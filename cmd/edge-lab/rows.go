package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/dataset"
	"edge/internal/exit"
)

func newRowsCommand() *cobra.Command {
	var selection dataset.Selection
	var data dataset.Options
	cmd := &cobra.Command{
		Use:   "rows FILE",
		Short: "Write the rows of a data file in the order in which eval learns them",
		Long: `rows writes the rows that eval --first, --shuffle and --shuffle-within select, in
their order, as CSV with a header line and the label in the last column. Other
learners can then be judged on the same rows.`,
		Example: "  edge-lab rows pendigits.csv.gz --shuffle 1 --first 6000 > rows.csv",
		Args:    cobra.ExactArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(selection.Check(), data.Check()); err != nil {
				return exit.With(exit.Usage, err)
			}
			return writeRows(cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], &data, selection)
		}),
	}
	cli.AddDataFlags(cmd, &data, "`NAME` of the label's column (default one called label, else the last one)")
	cli.SelectionFlags(cmd, &selection)
	withinFlag(cmd, &selection)
	return cmd
}

// withinFlag adds the flag that keeps a shuffle within batches of rows.
func withinFlag(cmd *cobra.Command, s *dataset.Selection) {
	cmd.Flags().IntSliceVar(&s.Within, "shuffle-within", nil, "sizes of consecutive batches of rows; only rows of the same batch are shuffled")
}

// writeRows writes the selected rows of a file.
func writeRows(out, errOut io.Writer, path string, data *dataset.Options, s dataset.Selection) error {
	d, err := dataset.Open(path, data.Of(nil))
	if err != nil {
		return err
	}
	defer d.Close()
	data.Warn(errOut, path, d.Warning())
	rows, err := s.Of(d)
	if err != nil {
		return err
	}
	buffer := bufio.NewWriter(out)
	w := csv.NewWriter(buffer)
	line := append(slices.Clone(d.Features), "label")
	if err := w.Write(line); err != nil {
		return fmt.Errorf("rows: %w", err)
	}
	for row := (dataset.Row{}); ; {
		if err := rows.Next(&row); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		line = line[:0]
		for _, v := range row.X {
			line = append(line, strconv.FormatFloat(v, 'g', -1, 64))
		}
		if err := w.Write(append(line, row.Label)); err != nil {
			return fmt.Errorf("rows: %w", err)
		}
	}
	w.Flush()
	if err := errors.Join(w.Error(), buffer.Flush()); err != nil {
		return fmt.Errorf("rows: %w", err)
	}
	return nil
}
