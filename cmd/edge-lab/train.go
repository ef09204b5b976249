package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/dataset"
	"edge/internal/eval"
	"edge/internal/exit"
	"edge/internal/report"
)

func newTrainCommand() *cobra.Command {
	t := cli.Train{Training: eval.NewTraining()}
	cmd := t.Command("edge-lab")
	f := cmd.Flags()
	components := f.Int("components", 0, "learn the first `K` principal components instead of the features; for measurements, without -o")
	shifted := f.Bool("shifted", false, "also learn each image moved by one pixel to the left, to the right, up and down; the judged images and those of --online stay as they are")
	plot := f.String("plot", "", "draw error and log loss over CPU time into this SVG `FILE`")
	f.BoolVar(&t.Online, "online", false, "for comparison, also learn the rows once online, as the daemon does, with one shared kernel and an infinite horizon")
	t.Further = func() error {
		switch {
		case *components < 0 || *components > 0 && t.Output != "":
			return errors.New("--components: want a number above 0, and no -o: the daemon has no principal components")
		case *plot != "" && t.Holdout == 0 && t.Test == "":
			return errors.New("--plot draws the scores: give --holdout or --test")
		}
		t.Transform = transform(*shifted, *components)
		return nil
	}
	t.Done = func(result *report.Training) error {
		if *plot == "" {
			return nil
		}
		return plotTraining(*plot, result)
	}
	return cmd
}

// transform returns the change of the rows by edge-lab train: first each image moved by
// one pixel, then principal components.
func transform(shifted bool, components int) func(rows, judged *dataset.Part) (_, _ *dataset.Part, err error) {
	return func(rows, judged *dataset.Part) (_, _ *dataset.Part, err error) {
		if some, _ := rows.Table.Lacking(); len(some) > 0 && components > 0 {
			return nil, nil, exit.With(exit.Usage, fmt.Errorf("--components: %d rows lack features: --on-missing impute or reject makes them complete", len(some)))
		}
		if shifted {
			if rows, err = rows.Shifted(); err != nil {
				return nil, nil, exit.With(exit.Usage, fmt.Errorf("--shifted: %w", err))
			}
		}
		if components > 0 {
			return inComponents(components, rows, judged)
		}
		return rows, judged, nil
	}
}
