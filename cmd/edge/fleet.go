package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tidwall/gjson"

	"edge/cmd/internal/cli"
	"edge/internal/broker"
	"edge/internal/config"
	"edge/internal/exit"
	"edge/internal/fleetctl"
	"edge/internal/terminal"
	"edge/online/fleet"
	"edge/stream/field"
	"edge/stream/membership"
	"edge/stream/topic"
)

// fleetFlags are the flags of the commands about a fleet.
type fleetFlags struct {
	path string
	wait time.Duration
}

func newFleetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Look at the nodes that learn together, remove one, or carry one by file",
		Long: `fleet is about models whose configuration has fleet.concept: they learn together
with the models of other nodes that have the same concept. Each node publishes
what it has learnt from its own labels as a retained message, and adds up what the
others have published. docs/guide/fleet.md explains it.

All of them connect to the broker of the configuration, with its credentials.
MODEL may be left out if one model of the configuration is in a fleet.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() },
		Example: `  edge fleet ls
  edge fleet forget pi7`,
	}
	cmd.AddCommand(newFleetListCommand(), newFleetForgetCommand(), newFleetRebaseCommand(), newFleetExportCommand(), newFleetImportCommand())
	return cmd
}

func newFleetListCommand() *cobra.Command {
	var flags fleetFlags
	var kept, asJSON bool
	cmd := &cobra.Command{
		Use:   "ls [MODEL]",
		Short: "List the members, and what this node makes of them",
		Long: `ls asks the running daemon of the configuration, which must have control.enabled,
for its part in a fleet: what it has published, the other members with version and
labels of their contribution, and what its latest merge made of each. AGE is the
time since that version came to this node; a restart begins it again. Z is the
mean gain in log probability of this node's own labels by that member, in standard
errors; below fleet.trust it is refused; – before there are 50 own labels. SHARE
is the part of the labels in the merge, of all other members. With fleet.basis:
shared, BASIS tells who has the common basis, and why not. docs/guide/fleet.md
explains the states, docs/reference/events.md the reasons behind "no".

With --kept it asks no daemon: it shows what the broker keeps of each member, and
the common basis where fleet.basis is shared.`,
		Example: `  edge fleet ls -c edge.yaml
  edge fleet ls bearing --json
  edge fleet ls --kept`,
		Args: cobra.MaximumNArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			cfg, model, err := flags.load(args)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), flags.wait)
			defer cancel()
			if kept {
				return listKept(ctx, cmd, cfg, model, asJSON)
			}
			answer, err := broker.Ask(ctx, cfg, "fleet/"+model, nil, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			data := gjson.GetBytes(answer, "data").Raw
			if asJSON {
				return terminal.PrintJSON(cmd.OutOrStdout(), json.RawMessage(data))
			}
			var v membership.View
			if err := json.Unmarshal([]byte(data), &v); err != nil {
				return fmt.Errorf("the answer of the daemon cannot be read: %w; are daemon and command of one version?", err)
			}
			return fleetctl.Print(cmd.OutOrStdout(), model, cfg.Models[model].Fleet.Concept, &v)
		}),
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&kept, "kept", false, "what the broker keeps, without a daemon")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func listKept(ctx context.Context, cmd *cobra.Command, cfg *config.Config, model string, asJSON bool) error {
	kept, err := fleetOf(cfg, model).Read(ctx, "")
	if err != nil {
		return err
	}
	if kept.Dropped > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %d messages are not listed: all have more than %d MiB, and members refuse what is beyond; remove members that are gone with edge fleet forget, or give each site a concept of its own\n", kept.Dropped, membership.MaxHeld>>20)
	}
	if kept.Many {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning: the broker keeps more messages of this fleet than most send at once (mosquitto: max_queued_messages), so that some may not be listed, nor known to members that connect: give each site a concept of its own")
	}
	if len(kept.Strays) > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: the broker keeps messages on topics of no member, and members refuse them: %q; mosquitto_pub -r -n -t TOPIC removes one\n", kept.Strays[:min(len(kept.Strays), 20)])
	}
	list := kept.Describe()
	if asJSON {
		return terminal.PrintJSON(cmd.OutOrStdout(), list)
	}
	return fleetctl.PrintKept(cmd.OutOrStdout(), cfg.Models[model].Fleet.Concept, list)
}

func newFleetForgetCommand() *cobra.Command {
	var flags fleetFlags
	var yes bool
	cmd := &cobra.Command{
		Use:   "forget NODE [MODEL]",
		Short: "Remove a member that is gone for good",
		Long: `forget removes the retained messages of a member from the broker. The other
members then take it out of their sums, as if it had never been there. It needs
no daemon, and the right to write <base>/fleet/<concept>/NODE and …/NODE/#. It
looks afterwards whether the broker keeps the messages still.

A node that still runs publishes again after more labels: stop it first, or take
fleet.concept out of its configuration. forget says so of a node that is online.`,
		Example: `  edge fleet forget pi7 -c edge.yaml
  edge fleet forget pi7 bearing --yes`,
		Args: cobra.RangeArgs(1, 2),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if err := checkMember(args[0]); err != nil {
				return err
			}
			cfg, model, err := flags.load(args[1:])
			if err != nil {
				return err
			}
			concept := cfg.Models[model].Fleet.Concept
			f := fleetOf(cfg, model)
			ctx, cancel := context.WithTimeout(cmd.Context(), flags.wait)
			defer cancel()
			found, err := f.Find(ctx, args[0])
			if err != nil {
				return err
			}
			if online, err := f.Online(ctx, args[0]); err == nil && online { // a hint
				fmt.Fprintf(cmd.ErrOrStderr(), "%s is online: if it is still in fleet %s, it publishes again after more labels; stop it, take fleet.concept out of its configuration, or leave it out of fleet.members\n", args[0], concept)
			}
			if !yes && !confirmed(cmd, bufio.NewReader(cmd.InOrStdin()), fmt.Sprintf("Remove the contribution of %s to fleet %s (%s)?", args[0], concept, found)) {
				return fmt.Errorf("fleet: %s was left as it is; --yes answers yes", args[0])
			}
			ctx, cancel = context.WithTimeout(cmd.Context(), flags.wait) // the answer may have taken long
			defer cancel()
			if err := f.Forget(ctx, found); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the broker has removed %s from fleet %s (retained messages: %d)\n", args[0], concept, len(found.Topics))
			return nil
		}),
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func newFleetExportCommand() *cobra.Command {
	var flags fleetFlags
	var member string
	cmd := &cobra.Command{
		Use:   "export FILE [MODEL]",
		Short: "Write a member's contribution into a file",
		Long: `export writes the contribution that the broker keeps of this configuration's
node, or of --member, into a new file, which edge fleet import takes to nodes at
another broker: a fleet by memory stick. You alone may read the file: it holds no
sample, but inducing inputs and means of classes, and who has it can predict as
the node does. FILE - is standard output.`,
		Example: `  edge fleet export /mnt/usb/pi3.fleet
  edge fleet export pi7.fleet --member pi7
  edge fleet export - | ssh other-site edge fleet import - -c edge.yaml`,
		Args: cobra.RangeArgs(1, 2),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if args[0] == fleetctl.Stdio && terminal.IsTerminal(cmd.OutOrStdout()) {
				return exit.With(exit.Usage, errors.New("a contribution is no text: send standard output to a file or to a command"))
			}
			if cmd.Flags().Changed("member") {
				if err := checkMember(member); err != nil {
					return err
				}
			}
			cfg, model, err := flags.load(args[1:])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), flags.wait)
			defer cancel()
			if member == "" {
				if m := cfg.Models[model]; m.Fleet.Follows() {
					return exit.With(exit.Usage, fmt.Errorf("model %s of %s only follows and publishes nothing: give --member and the name of a member", model, cfg.Node))
				}
				member = cfg.Node
			}
			c, err := fleetOf(cfg, model).Export(ctx, member, args[0], cmd.OutOrStdout())
			if err != nil {
				return err
			}
			to := cmd.OutOrStdout()
			if args[0] == fleetctl.Stdio {
				to = cmd.ErrOrStderr()
			}
			fmt.Fprintf(to, "%s: %s, %s\n", args[0], c.Member, c)
			return nil
		}),
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&member, "member", "", "`NODE` whose contribution it is (default that of the configuration)")
	return cmd
}

func newFleetImportCommand() *cobra.Command {
	var flags fleetFlags
	cmd := &cobra.Command{
		Use:   "import FILE [MODEL]",
		Short: "Let the broker keep a contribution from a file",
		Long: `import publishes the contribution of a file of edge fleet export as a retained
message on the topic of its member. The nodes of the fleet at this broker take it
as that of any member, with the same checks; a newer version that the broker has
stays. The features of the model have to be those of the file. It needs the right
to write <base>/fleet/<concept>/<member> and …/<member>/#, and edge fleet forget
removes it. A file of a node that is online at this broker is refused: nodes of all
sites need names of their own. FILE - is standard input.`,
		Example: `  edge fleet import /mnt/usb/pi3.fleet -c edge.yaml`,
		Args:    cobra.RangeArgs(1, 2),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			cfg, model, err := flags.load(args[1:])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), flags.wait)
			defer cancel()
			learner, err := cfg.Learner(model)
			if err != nil {
				return exit.With(exit.Config, err)
			}
			c, err := fleetOf(cfg, model).Import(ctx, cfg.Node, fleet.Features(learner.Features, learner.Signals), args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the broker keeps version %d.%d of %s with %d labels\n", c.Epoch, c.Sequence, c.Member, c.N)
			return nil
		}),
	}
	flags.add(cmd)
	return cmd
}

// add adds the flags to a command.
func (f *fleetFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.path, "config", "c", defaultConfigPath, "configuration `FILE` of the daemon")
	cmd.Flags().DurationVar(&f.wait, "wait", 15*time.Second, "give up after this `DURATION`")
}

// load returns the configuration, and the model of the arguments or the only one in a
// fleet.
func (f *fleetFlags) load(args []string) (*config.Config, string, error) {
	if f.wait <= 0 {
		return nil, "", exit.With(exit.Usage, fmt.Errorf("--wait %v: want a time above 0, such as 15s", f.wait))
	}
	cfg, err := config.Load(f.path)
	if err != nil {
		return nil, "", err
	}
	var in []string
	for _, name := range field.Names(cfg.Models) {
		if m := cfg.Models[name]; m.Fleet.Enabled() {
			in = append(in, name)
		}
	}
	switch {
	case len(in) == 0:
		return nil, "", exit.With(exit.Config, fmt.Errorf("%s: no model is in a fleet: give one fleet.concept", f.path))
	case len(args) == 0 && len(in) == 1:
		return cfg, in[0], nil
	case len(args) == 0:
		return nil, "", exit.With(exit.Usage, fmt.Errorf("several models are in a fleet: give one of %s", strings.Join(in, ", ")))
	}
	if !slices.Contains(in, args[0]) {
		return nil, "", exit.With(exit.Usage, fmt.Errorf("model %s is in no fleet: give one of %s", args[0], strings.Join(in, ", ")))
	}
	return cfg, args[0], nil
}

// checkMember returns an error for a text that is no name of a member.
func checkMember(name string) error {
	switch {
	case !topic.IsName(name):
		return exit.With(exit.Usage, fmt.Errorf("%.40q is no name of a node: want [a-z0-9_-]", name))
	case name == membership.BasisName:
		return exit.With(exit.Usage, fmt.Errorf("%s is no member, but the common basis of a fleet: edge fleet rebase proposes another one", name))
	}
	return nil
}

// fleetOf returns the fleet of a model at the broker of the configuration.
func fleetOf(cfg *config.Config, model string) *fleetctl.Fleet {
	m := cfg.Models[model]
	return &fleetctl.Fleet{MQTT: cfg.MQTT, Concept: m.Fleet.Concept, Limit: int(m.Fleet.MaxMessage)}
}
