package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/exit"
)

// mostRows bounds the rows of a generated file, which are held in memory.
const mostRows = 1_000_000

func newGenerateCommand() *cobra.Command {
	rows, seed := 4000, uint64(1)
	var list strings.Builder
	for _, p := range problems {
		fmt.Fprintf(&list, "\n  %-14s %s", p.name, p.about)
	}
	cmd := &cobra.Command{
		Use:   "generate NAME",
		Short: "Write an artificial stream as CSV",
		Long: `generate writes the rows of an artificial problem to the standard output, as CSV
with a header line and the class in the last column. The same name, rows and seed
give the same file; other seeds give independent draws.
` + list.String(),
		Example: `  edge-lab generate rings --rows 4000 --seed 1 > rings.csv
  edge-lab generate parity | gzip > parity.csv.gz`,
		Args: cobra.ExactArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			i := slices.IndexFunc(problems, func(p problem) bool { return p.name == args[0] })
			if i < 0 {
				return exit.With(exit.Usage, fmt.Errorf("generate %s: unknown name; see edge-lab generate --help", args[0]))
			}
			if rows < 1 || rows > mostRows {
				return exit.With(exit.Usage, fmt.Errorf("--rows %d: want 1 to %d", rows, mostRows))
			}
			return writeSamples(cmd.OutOrStdout(), problems[i].draw(rand.New(rand.NewPCG(seed, 0)), rows))
		}),
	}
	cmd.Flags().IntVar(&rows, "rows", rows, "number `N` of rows")
	cmd.Flags().Uint64Var(&seed, "seed", seed, "`SEED` of the draw")
	return cmd
}

// writeSamples writes a header line and the rows. Numbers have all their digits, so
// that a value does not move to the other side of a threshold.
func writeSamples(out io.Writer, rows []sample) error {
	w := bufio.NewWriter(out)
	for j := range rows[0].x {
		fmt.Fprintf(w, "f%d,", j)
	}
	fmt.Fprintln(w, "label")
	var line []byte
	for _, r := range rows {
		line = line[:0]
		for _, v := range r.x {
			line = append(strconv.AppendFloat(line, v, 'g', -1, 64), ',')
		}
		line = append(strconv.AppendInt(line, int64(r.class), 10), '\n')
		if _, err := w.Write(line); err != nil {
			return fmt.Errorf("generate: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("generate: %w", err)
	}
	return nil
}
