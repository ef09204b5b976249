package main

import (
	"errors"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/eval"
	"edge/internal/exit"
)

func newWindowsCommand() *cobra.Command {
	var w eval.Windows
	var output string
	var lengths []string
	var most int
	cmd := &cobra.Command{
		Use:   "windows FILE",
		Short: "Print the samples that a stream makes of a file of signals",
		Long: `windows reads a CSV file of what sensors sent, a row a line, and prints the samples
that a stream with signals makes of it: id, time, device, features and label. The
columns are the signals, by name; the time by --time, or as the stream's key time
has it, or t, ts, time or timestamp, in seconds or as 2026-11-22T17:00:00Z; the
device; and the label. The last line, on stderr, says what became of the rows.

--lengths tries windows of several lengths and prints the scores that a new model
reaches with each, in one pass and without the order of labels. The hop has the
ratio to the length that the configuration has, else half of it.

Without -c the flags --signals and --length describe the stream; with -c they
replace what it has.`,
		Example: `  edge windows wrist.csv.gz -c edge.yaml >windows.csv
  edge windows wrist.csv.gz --signals x,y,z --length 128 --hop 64 --max-gap 200ms -o windows.csv
  edge windows wrist.csv.gz -c edge.yaml --lengths 1s,2s,4s,8s`,
		Args: cobra.ExactArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) (err error) {
			if output == "" { // otherwise an unfinished file is removed
				cli.EndAtSignals()
			}
			if err := w.Prepare(); err != nil {
				return err
			}
			switch {
			case most < 0:
				return exit.With(exit.Usage, errors.New("--most: want 0 or more"))
			case most != 0 && len(lengths) == 0:
				return exit.With(exit.Usage, errors.New("--most is for --lengths"))
			case len(lengths) > 0:
				scores, err := w.Scores(cmd.Context(), args[0], lengths, most, cmd.ErrOrStderr())
				if err != nil {
					return err
				}
				return eval.PrintLengths(cmd.OutOrStdout(), scores)
			}
			out := cmd.OutOrStdout()
			if output != "" {
				var file *cli.Output
				if file, err = cli.CreateOutput("-o", output, args[0], w.ConfigPath); err != nil {
					return err
				}
				defer func() { err = file.Finish(err) }()
				out = file
			}
			return w.Print(cmd.Context(), args[0], cmd.InOrStdin(), out, cmd.ErrOrStderr())
		}),
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&w.ConfigPath, "config", "c", "", "take the stream from this configuration `FILE`")
	f.StringVarP(&output, "output", "o", "", "write the samples to this `FILE`")
	f.StringSliceVar(&lengths, "lengths", nil, "print the scores of windows of these `LENGTHS`, rows or times, such as 1s,2s,4s")
	f.IntVar(&most, "most", 0, "with --lengths, learn at most `N` windows of each length, from the whole file (0: all)")
	f.StringSliceVar(&w.Signals, "signals", nil, "`NAMES` of the columns with signals")
	f.StringVar(&w.Length, "length", "", "`LENGTH` of a window: rows, a time such as 2s, or message")
	f.StringVar(&w.Hop, "hop", "", "`DISTANCE` between two windows (default half of the length)")
	f.DurationVar(&w.MaxGap, "max-gap", 0, "`DURATION` of a silence after which a window begins anew (default as configured)")
	f.StringArrayVar(&w.Derive, "derive", nil, "a derived signal, `NAME=EXPRESSION`; may be repeated")
	cli.AddDataFlags(cmd, &w.Data, "`NAME` of the label's column (default that of the stream, or label)")
	cli.AddRawFlags(cmd, &w.Data)
	return cmd
}
