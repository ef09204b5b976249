package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/terminal"
	"edge/lab/federated"
	"edge/online"
	"edge/online/fleet"
)

// Values of --basis and --scale.
const (
	sharedWord = "shared"
	ownWord    = "own"
)

// fleetCommand holds the options of the command.
type fleetCommand struct {
	federated.Config
	data      dataset.Options
	selection dataset.Selection
	seeds     int
	horizons  []string
	exchange  []string
	basis     string
	scale     string
	mix, f32  bool
	asJSON    bool
}

func newFleetCommand() *cobra.Command {
	c := fleetCommand{Config: federated.Config{Model: online.DefaultConfig(), Nodes: 4, Every: 100, Test: 0.25, Boast: 1}}
	c.Model.Temporal = online.TemporalOff
	cmd := &cobra.Command{
		Use:   "fleet FILE",
		Short: "Score learners that exchange what they have learnt",
		Long: `fleet deals the rows of a file to several learners in turn, and lets each publish
and merge contributions after every --every own labels, without a broker. It prints
the scores of one device that learns all rows, of the nodes alone, and of the nodes in
a fleet: the means over the nodes. --information NATS: they exchange earlier, once the
own labels since the last exchange have brought this many nats, that is the sum of
-log p(label) by the predictions before they were learnt.

A part of the rows, the last ones after the shuffle, judges all of them at the end. No labels
come then, so that the nodes have published their last ones, as after fleet.max_wait.
With --test-fraction 0 each row judges its node before it is learnt, and those of the
second half count.

--newcomer N: the last node begins when each of the others has N labels; its scores
over its first labels are printed, and for the rows held out those of the others, as
they were then, and of a follower of these. --bad KIND: the last node, or the last before a
newcomer, learns random labels, takes each class for the next one, or claims huge
precisions; --boast N: it says that it has N times the labels and precisions that it
has. The others are judged.
--differ: the sensors of each node have gains and offsets of their own, those of the
one device have not.`,
		Example: `  edge-lab fleet pendigits.csv.gz --shuffle 1 --seeds 3
  edge-lab fleet satellite.csv.gz --shuffle 1 --newcomer 400 --nodes 5
  edge-lab fleet electricity.csv.gz --first 10000 --test-fraction 0
  edge-lab fleet satellite.csv.gz --shuffle 1 --differ --scale own`,
		Args: cobra.ExactArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(c.check(), c.selection.Check(), c.data.Check(), c.Validate()); err != nil {
				return exit.With(exit.Usage, err)
			}
			return c.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0])
		}),
	}
	cli.AddDataFlags(cmd, &c.data, "`NAME` of the label's column (default one called label, else the last one)")
	f := cmd.Flags()
	cli.SelectionFlags(cmd, &c.selection)
	withinFlag(cmd, &c.selection)
	f.IntVar(&c.seeds, "seeds", 1, "repeat with `K` seeds, of the shuffle and of the models, and print the means as well")
	f.IntVar(&c.Nodes, "nodes", c.Nodes, "learners, 2 to 64")
	f.IntVar(&c.Every, "every", c.Every, "own labels between exchanges")
	f.BoolVar(&c.Late, "late", false, "merge just before the next label, not after the latest")
	f.IntVar(&c.Delay, "delay", 0, "labels come `N` own rows late")
	f.Float64Var(&c.Nats, "information", 0, "exchange earlier, once the own labels have brought this many `NATS` (0: never)")
	f.Float64Var(&c.Test, "test-fraction", c.Test, "`FRACTION` of the rows that is held out; 0: judge each row before it is learnt")
	f.BoolVar(&c.ByClass, "by-class", false, "each node has half of the classes")
	f.BoolVar(&c.Differ, "differ", false, "the devices differ by gain and offset")
	f.StringVar(&c.basis, "basis", ownWord, "basis of the nodes: shared, with averaged parameters, or own to each")
	f.StringVar(&c.scale, "scale", sharedWord, "units of the features: shared, or own to each device")
	f.BoolVar(&c.Declare, "declare", true, "all classes are known from the start")
	f.StringVar(&c.Bad, "bad", "", "make the last node bad, or the last one before a newcomer: `KIND` labels, next or huge")
	f.Float64Var(&c.Boast, "boast", c.Boast, "the bad node multiplies its labels and its precisions by `N`")
	f.IntVar(&c.Before, "newcomer", 0, "the last node begins after `N` labels of each other one")
	f.IntVar(&c.Model.Inducing, "inducing", c.Model.Inducing, "`M` inducing points")
	f.IntVar(&c.Model.Batch.MaxSize, "batch", c.Model.Batch.MaxSize, "minibatches of `N` samples")
	f.StringSliceVar(&c.horizons, "horizons", nil, "`LENGTHS` of the model's horizons (default inf,500,100)")
	f.StringSliceVar(&c.exchange, "exchange", nil, "`LENGTHS` of the horizons that are exchanged (default all)")
	f.BoolVar(&c.mix, "mix", false, "mix the fleet's answer for classes with few own labels into the own one")
	f.BoolVar(&c.f32, "float32", false, "contributions of 32-bit numbers")
	f.StringVar((*string)(&c.Model.Experts.Forest), "forest", string(c.Model.Experts.Forest), "`SIZE` of the forest among the experts: on, small or off")
	f.StringVar((*string)(&c.Model.Experts.Regression), "regression", string(c.Model.Experts.Regression), "`SWITCH` of the regression among the experts: on or off")
	f.Float64Var(&c.Model.Fleet.Trust, "trust", c.Model.Fleet.Trust, "least trust of a contribution, in standard errors")
	f.BoolVar(&c.asJSON, "json", false, "print a JSON object a line for each seed")
	return cmd
}

// check completes the model's configuration by the flags.
func (c *fleetCommand) check() error {
	for _, list := range []struct {
		words []string
		to    *[]online.Horizon
	}{{c.horizons, &c.Model.Horizons}, {c.exchange, &c.Model.Fleet.Horizons}} {
		if len(list.words) > 0 {
			*list.to = nil
		}
		for _, word := range list.words {
			var h online.Horizon
			if err := h.UnmarshalText([]byte(word)); err != nil {
				return err
			}
			*list.to = append(*list.to, h)
		}
	}
	if c.mix {
		c.Model.Fleet.Unseen = online.MixUnseen
	}
	if c.f32 {
		c.Model.Fleet.Precision = fleet.Float32
	}
	for _, f := range []struct{ name, word string }{{"basis", c.basis}, {"scale", c.scale}} {
		if f.word != sharedWord && f.word != ownWord {
			return fmt.Errorf("--%s %s: want %s or %s", f.name, f.word, sharedWord, ownWord)
		}
	}
	c.Model.Fleet.Shared = c.basis == sharedWord
	if c.scale == ownWord {
		c.Model.Fleet.Units = fleet.Standard
	}
	if c.seeds < 1 {
		return errors.New("--seeds: want 1 or more")
	}
	return nil
}

func (c *fleetCommand) run(ctx context.Context, out, errOut io.Writer, path string) error {
	var all []*federated.Result
	for range c.seeds {
		r, err := c.once(ctx, errOut, path)
		if err != nil {
			return err
		}
		all = append(all, r)
		if c.asJSON {
			if err := terminal.PrintJSON(out, r); err != nil {
				return err
			}
		}
		if s := c.selection.Shuffle; s != nil {
			*s++
		}
		c.Seed++
	}
	if c.asJSON {
		return nil
	}
	return federated.Print(out, all)
}

// once runs one seed.
func (c *fleetCommand) once(ctx context.Context, errOut io.Writer, path string) (*federated.Result, error) {
	d, err := dataset.Open(path, c.data.Of(nil))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	c.data.Warn(errOut, path, d.Warning())
	selected, err := c.selection.Of(d)
	if err != nil {
		return nil, err
	}
	rows, err := dataset.ReadAll(selected)
	if err != nil {
		return nil, err
	}
	var classes []string
	for _, row := range rows {
		if !slices.Contains(classes, row.Label) {
			classes = append(classes, row.Label)
		}
	}
	slices.Sort(classes)
	c.Model.Features = d.Features
	if err := c.Model.Validate(); err != nil {
		return nil, exit.With(exit.Config, err)
	}
	r, err := federated.Run(ctx, c.Config, rows, classes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name, err)
	}
	r.Dataset = d.Name
	return r, nil
}
