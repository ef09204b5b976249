package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"edge/configs"
	"edge/online"
	"edge/stream/codec"
)

const defaultConfigPath = "edge.yaml"

func newConfigCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print a sample configuration, its schema, or what is in effect",
		Example: `  edge config sample >edge.yaml
  edge config show -c edge.yaml`,
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, args []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newConfigSampleCommand(), newConfigSchemaCommand(), newConfigShowCommand())
	return cmd
}

func newConfigSampleCommand() *cobra.Command {
	var from []string
	var data dataFlags
	cmd := &cobra.Command{
		Use:   "sample",
		Short: "Print a configuration with every key, its default and a comment",
		Long: `sample prints a configuration with every key, its default and a comment. With
--from it prints a short one that learns what ` + "`edge replay`" + ` publishes of a data
file: its topics, features and classes.`,
		Example: `  edge config sample >edge.yaml
  edge config sample --from gas.csv.gz --from room.csv >edge.yaml`,
		Args: cobra.NoArgs,
		RunE: action(func(cmd *cobra.Command, args []string) error {
			if len(from) == 0 {
				_, err := cmd.OutOrStdout().Write(configs.Sample)
				return err
			}
			if err := data.check(); err != nil {
				return err
			}
			text, err := sampleFor(from, data.Format)
			if err != nil {
				return err
			}
			if _, err := parseConfig("the sample", text, nil); err != nil {
				return fmt.Errorf("these data files need a configuration written by hand (`edge config sample` has every key): %w", err)
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		}),
	}
	cmd.Flags().StringArrayVar(&from, "from", nil, "make one for this data `FILE`; may be repeated")
	data.add(cmd, "`NAME` of the label's column (default the last one)")
	return cmd
}

func newConfigSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON schema of the configuration, for editors",
		Example: "  edge config schema >edge.schema.json",
		Args:    cobra.NoArgs,
		RunE: action(func(cmd *cobra.Command, args []string) error {
			_, err := cmd.OutOrStdout().Write(configs.Schema)
			return err
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
		Args:    cobra.NoArgs,
		RunE: action(func(cmd *cobra.Command, args []string) error {
			c, err := LoadConfig(path)
			if err != nil {
				return err
			}
			return writeConfig(cmd.OutOrStdout(), c)
		}),
	}
	cmd.Flags().StringVarP(&path, "config", "c", defaultConfigPath, "configuration `FILE`")
	return cmd
}

// writeConfig writes a configuration that reads back as itself.
func writeConfig(w io.Writer, c *Config) error {
	_, err := w.Write(appendFields(nil, reflect.ValueOf(c).Elem(), ""))
	return err
}

func newCheckCommand() *cobra.Command {
	var path string
	var connect bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Validate a configuration and say what it would do",
		Long: `check validates a configuration and says what a daemon would do under it, and
what memory it may take: at most, with classes.max classes, and now. It warns
where a limit of the machine, of a control group, of edge.service, of GOMEMLIMIT
or of memory_limit is less.

With --connect it sends a few messages through the broker, on topics of its own
below <base>/<node>/doctor-…, and removes what is retained of them: whether a
shared subscription is delivered, and a retained message by a wildcard. It exits
with 1 if the broker does not do what the configuration needs.`,
		Example: `  edge check -c edge.yaml
  edge check -c edge.yaml --connect`,
		Args: cobra.NoArgs,
		RunE: action(func(cmd *cobra.Command, args []string) error {
			c, err := LoadConfig(path)
			if err != nil {
				return err
			}
			doubts, err := c.obstacles()
			if err != nil {
				return err
			}
			out := textWriter{cmd.OutOrStdout()}
			describeConfig(out, path, c)
			for _, d := range doubts {
				fmt.Fprintln(out, "warning ", d)
			}
			for _, e := range append(c.exposures(path), c.HTTP.exposures(c.Control.Enabled)...) {
				fmt.Fprintf(out, "warning  %s: %s (%s)\n", e.Path, e.Reason, e.Advice)
			}
			if !connect {
				return nil
			}
			pub, err := NewPublisher(cmd.Context(), c.MQTT, 0, nil, nil, func() {})
			if err != nil {
				return err
			}
			pub.Close()
			fmt.Fprintf(out, "broker   %s: connected\n", strings.Join(c.MQTT.Servers, ", "))
			d := &diagnosis{V: 1, Grade: gradeOK, within: patient(1)}
			ctx, cancel := context.WithTimeout(cmd.Context(), d.within.all)
			defer cancel()
			examineDelivery(ctx, d, c)
			return d.describe(out)
		}),
	}
	cmd.Flags().StringVarP(&path, "config", "c", defaultConfigPath, "configuration `FILE`")
	cmd.Flags().BoolVar(&connect, "connect", false, "connect to the broker, too, and try what it grants")
	return cmd
}

// describeConfig says in words what a daemon with this configuration would do.
func describeConfig(w io.Writer, path string, c *Config) {
	own := c.MQTT.BaseTopic + "/" + c.Node
	fmt.Fprintf(w, "%s is valid.\n", path)
	fmt.Fprintf(w, "node     %s: state, info and events on %s/…\n", c.Node, own)
	for _, name := range sortedKeys(c.Streams) {
		s := c.Streams[name]
		fmt.Fprintf(w, "stream   %s: %d features from %s, as %s\n", name, len(s.FeatureNames()), strings.Join(s.Topics, ", "), format(s))
	}
	for _, l := range c.Labels {
		fmt.Fprintf(w, "labels   for %s from %s\n", cmp.Or(l.Model, "every model"), strings.Join(l.Topics, ", "))
	}
	for _, name := range sortedKeys(c.Models) {
		m := c.Models[name]
		cfg, err := c.Learner(name)
		if err != nil {
			continue // the configuration is valid: cannot happen
		}
		wait := "by count alone"
		if cfg.Batch.MaxWait > 0 {
			wait = "or after " + cfg.Batch.MaxWait.String()
		}
		known := max(len(cfg.Classes.Names), 2)
		most := max(known, cfg.Classes.Max)
		fmt.Fprintf(w, "model    %s: learns %s in minibatches of %d, %s; predicts on %s/%s/prediction, as %s\n",
			name, strings.Join(m.Streams, ", "), cfg.Batch.MaxSize, wait, own, name, m.Output)
		fmt.Fprintf(w, "         M = %d, %d horizons: state of %s with %d classes, at most %s with %d\n", cfg.Inducing, len(cfg.Horizons),
			byteSize(stateSize(cfg, known)), known, byteSize(stateSize(cfg, most)), most)
		if a := m.Active; a.Enabled() {
			pace := "as often as that allows"
			if a.PerHour > 0 {
				pace = fmt.Sprintf("%g an hour at most", a.PerHour)
			}
			fmt.Fprintf(w, "         asks for labels by %s on %s/%s/query: of %g %% of the samples with an id, %s\n", a.Strategy, own, name, 100*a.Budget, pace)
		}
	}
	if c.HomeAssistant.Enabled {
		fmt.Fprintf(w, "home     each model is a device of Home Assistant, announced on %s/device/…\n", c.HomeAssistant.DiscoveryPrefix)
	}
	if c.Control.Enabled {
		fmt.Fprintf(w, "control  learning is switched on and off on %s/request/learning/<model>, by whoever may publish there\n", own)
	}
	footprintOf(c).describe(w, newHost().memoryBounds(c))
	full := c.StorePath()
	if abs, err := filepath.Abs(full); err == nil {
		full = abs
	}
	state := "will be created"
	if info, err := os.Stat(full); err == nil {
		state = "exists, " + byteSize(uint64(info.Size()))
	}
	switch {
	case c.HTTP.Listen == "":
		fmt.Fprintln(w, "page     none: http.listen is empty")
	default:
		scheme, need, labels := "http", "", ""
		if c.HTTP.TLS.enabled() {
			scheme = "https"
		}
		if !c.HTTP.Password.IsZero() {
			need = ", with a password"
		}
		if c.Control.Enabled {
			labels = "; labels are taken there"
		}
		fmt.Fprintf(w, "page     %s://%s/, metrics and health%s%s\n", scheme, c.HTTP.Listen, need, labels)
	}
	fmt.Fprintf(w, "state    %s (%s), at most %v; checkpoint %s\n", full, state, c.Store.MaxSize, c.Store.Checkpoint)
	if window := c.Stream().LossWindow; window > 0 {
		fmt.Fprintf(w, "loss     durability is relaxed: a crash or a power cut loses the labels and samples of the last %v\n", window)
	}
}

// format says in words how a stream's payloads are written.
func format(s codec.Stream) string {
	text := s.Format
	if d := len(s.FeatureNames()); s.Format == "value" && d > 1 {
		const number, arrival = 8, 24 // bytes
		text += fmt.Sprintf("s that are joined within %v (at most %s wait)", s.Join.Window, byteSize(uint64(s.Join.Devices)*uint64(d)*(number+arrival)))
	}
	if s.Compression != "none" {
		text += ", compression " + s.Compression
	}
	return text
}

// String says it in words.
func (c Checkpoint) String() string {
	var when []string
	if c.Every > 0 {
		when = append(when, "every "+c.Every.String())
	}
	if c.Samples > 0 {
		when = append(when, fmt.Sprintf("after %d samples", c.Samples))
	}
	if c.Size > 0 {
		when = append(when, fmt.Sprintf("after %v of journal", c.Size))
	}
	return strings.Join(when, " or ")
}

// stateSize is the size in bytes of a model's encoded state with C classes,
// once the warm-up is over:
//
//	8·[H·C·(M(M+1)/2 + M) + R·(D + 2·H·C) + 3·(M·D + D + 3) + C² + 2·C·(D+1)]
func stateSize(cfg online.Config, classes int) uint64 {
	h, c, m := uint64(len(cfg.Horizons)), uint64(classes), uint64(cfg.Inducing)
	r, d := uint64(cfg.Window), uint64(len(cfg.Features))
	kernels := uint64(1)
	if cfg.Kernel == online.PerClass {
		kernels = max(c, 1)
	}
	return 8 * (h*c*(m*(m+1)/2+m) + r*(d+2*h*c) + 3*kernels*(m*d+d+3) + c*c + 2*c*(d+1))
}
