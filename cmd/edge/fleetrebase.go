package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/internal/broker"
	"edge/internal/exit"
	"edge/online/fleet"
	"edge/stream/membership"
)

func newFleetRebaseCommand() *cobra.Command {
	var flags fleetFlags
	cmd := &cobra.Command{
		Use:   "rebase first|pooled [MODEL]",
		Short: "Propose a new common basis",
		Long: `rebase asks the running daemon of the configuration, which must have
control.enabled and fleet.basis: shared, to propose a new common basis. The members
adopt it by projecting what they have learnt on it, which loses a little.

first takes the inducing points and the kernel of this node as they are. pooled takes
inducing points of all members, under the mean of their kernels and the scaling of all
their labels: for fleets whose first node saw other data than most.

The daemon proposes it with its next merge, within fleet.interval.`,
		Example: `  edge fleet rebase pooled -c edge.yaml
  edge fleet rebase first bearing`,
		Args: cobra.RangeArgs(1, 2),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if how := fleet.Rebase(args[0]); how != fleet.First && how != fleet.Pooled {
				return exit.With(exit.Usage, fmt.Errorf("%.40q: want first or pooled", args[0]))
			}
			cfg, model, err := flags.load(args[1:])
			if err != nil {
				return err
			}
			switch f := cfg.Models[model].Fleet; {
			case f.Follows():
				return exit.With(exit.Config, fmt.Errorf("model %s of %s only follows: ask a node whose fleet.role is member", model, cfg.Node))
			case f.Basis != membership.BasisShared:
				return exit.With(exit.Config, fmt.Errorf("model %s has a basis of its own: set fleet.basis to shared on all nodes", model))
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), flags.wait)
			defer cancel()
			data, err := json.Marshal(map[string]string{"basis": args[0]})
			if err != nil {
				return err
			}
			if _, err := broker.Ask(ctx, cfg, "fleet_rebase/"+model, data, cmd.ErrOrStderr()); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s proposes a new basis with its next merge; edge fleet ls shows it\n", cfg.Node)
			return nil
		}),
	}
	flags.add(cmd)
	return cmd
}
