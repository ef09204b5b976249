package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"edge/cmd/internal/cli"
	"edge/configs"
	"edge/internal/config"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/propose"
)

const defaultConfigPath = "edge.yaml"

func newConfigCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print a sample configuration, its schema, or what is in effect",
		Example: `  edge config sample >edge.yaml
  edge config show -c edge.yaml`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigSampleCommand(), newConfigSchemaCommand(), newConfigShowCommand())
	return cmd
}

func newConfigSampleCommand() *cobra.Command {
	var from []string
	var data dataset.Options
	cmd := &cobra.Command{
		Use:   "sample",
		Short: "Print a configuration with every key, its default and a comment",
		Long: `sample prints a configuration with every key, its default and a comment. With
--from it prints a short one that learns what ` + "`edge replay`" + ` publishes of a data
file: its topics, features and classes. For a file of signals, which has a column
with times (t, ts, time, timestamp or --time) and many rows a device, it proposes
signals, rate and a window: the length, of several, whose windows had the lowest
error on the first 100000 rows.`,
		Example: `  edge config sample >edge.yaml
  edge config sample --from gas.csv.gz --from room.csv >edge.yaml`,
		Args: cli.NoArgs,
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if len(from) == 0 {
				return printEmbedded(cmd, configs.Sample)
			}
			if err := data.Check(); err != nil {
				return exit.With(exit.Usage, err)
			}
			cli.EndAtSignals()
			text, err := propose.Config(cmd.Context(), from, &data, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if _, err := config.Parse("the sample", text, nil); err != nil {
				return fmt.Errorf("these data files need a configuration written by hand (`edge config sample` has every key): %w", err)
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		}),
	}
	cmd.Flags().StringArrayVar(&from, "from", nil, "make one for this data `FILE`; may be repeated")
	cli.AddDataFlags(cmd, &data, "`NAME` of the label's column (default one called label, else the last one)")
	cli.AddOriginFlags(cmd, &data)
	return cmd
}

// printEmbedded prints a file that is embedded in the program.
func printEmbedded(cmd *cobra.Command, read func() ([]byte, error)) error {
	text, err := read()
	if err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}

func newConfigSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON schema of the configuration, for editors",
		Example: "  edge config schema >edge.schema.json",
		Args:    cli.NoArgs,
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			return printEmbedded(cmd, configs.Schema)
		}),
	}
}

func newConfigShowCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the configuration in effect: file, defaults and environment",
		Long: `show prints the configuration in effect: the file, completed by the defaults and
overridden by EDGE_* environment variables. Secrets are never part of it, only
where they are.`,
		Example: "  EDGE_MQTT_SERVERS=mqtt://broker.lan edge config show -c edge.yaml",
		Args:    cli.NoArgs,
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			c, err := config.Load(path)
			if err != nil {
				return err
			}
			return config.Write(cmd.OutOrStdout(), c)
		}),
	}
	cmd.Flags().StringVarP(&path, "config", "c", defaultConfigPath, "configuration `FILE`")
	return cmd
}
