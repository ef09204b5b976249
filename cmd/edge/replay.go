package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"edge/cmd/internal/cli"
	"edge/internal/exit"
	"edge/internal/replay"
	"edge/internal/report"
	"edge/internal/terminal"
)

const replayHelp = `replay publishes the rows of a CSV file, in order, one message a row:

  {"id":"gas-000123","features":[0.5,2],"label":"ok"}

With -c a message has the shape that its stream reads: other paths, CBOR or CSV.
Payloads without an id need --ahead 0.

A broker keeps a limited number of messages for a daemon that is behind
(mosquitto 1000) and drops the rest silently. So replay watches the daemon's
predictions and stays at most --ahead rows before them; it begins when a daemon
is online. A daemon learns a message once, and knows it by its id: to teach the
same rows again, give another --prefix.

With --labels delayed the label follows on <topic>/label, as {"id":…,"label":…},
which the daemon must have under labels: (-c checks it); with --labels asked only
the daemon's queries are answered.

At the end it prints the scores of the predictions that each daemon published,
judged by the file's labels whether they were sent or not. They are those of
eval, as a subscriber sees them: made when the row came, with what had been
learnt by then, and with four decimals. eval predicts each row after all labels
before it; a replay that is faster than the daemon learns lags behind that.

Of a file of signals, whose columns are those of a stream of -c, it publishes the
rows as the sensors send them: in the stream's format, on the topics of its template
with each row's device, with their times and labels. --speed 1 is as fast as they
came. The samples that the daemon makes of them have the ids and the labels that
edge windows prints; --ahead counts rows.

A password is read from --password-file or EDGE_MQTT_PASSWORD_FILE.`

func newReplayCommand() *cobra.Command {
	var (
		broker cli.BrokerFlags
		p      replay.Player
		src    replay.Source
		format string
		asJSON bool
		qos    int
	)
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Publish a data file as a stream of sensor messages",
		Long:  replayHelp,
		Example: `  edge replay gas.csv.gz --broker mqtt://127.0.0.1 --rate 500
  edge replay gas.csv.gz -c edge.yaml --labels delayed --delay 50 --label-fraction 0.1
  edge replay gas.csv.gz -c edge.yaml --labels asked --rate 20 --json
  edge replay iris.csv --topic lab/iris --shuffle 1 --loop --format named`,
		Args: cobra.ExactArgs(1),
		RunE: cli.Action(func(cmd *cobra.Command, args []string) error {
			if err := checkReplay(&p, &src, format); err != nil {
				return exit.With(exit.Usage, err)
			}
			mqtt, cfg, err := broker.MQTT(os.Environ())
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("qos") {
				mqtt.QoS = qos
			}
			src.Path = args[0]
			p.Named = format == "named"
			if seed := src.Selection.Shuffle; seed != nil {
				p.Seed = *seed
			}
			reports, err := replay.File(cmd.Context(), &src, &p, mqtt, cfg, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return printPublished(cmd.OutOrStdout(), reports, asJSON)
		}),
	}
	broker.Add(cmd)
	f := cmd.Flags()
	addPace(f, &p)
	f.StringVar(&p.Topic, "topic", "", "`TOPIC` to publish on (default sensors/<file's base name>, or the one that the configuration names)")
	f.StringVar(&p.Prefix, "prefix", "", "`TEXT` before the row number in the ids (default the file's base name)")
	f.StringVar(&p.Labels, "labels", replay.LabelsInline, "`KIND` of labels: inline, delayed, asked or none")
	p.Delay = replay.Delay{Rows: 10}
	f.Var(&p.Delay, "delay", "how much later a delayed label comes: rows or time")
	f.Float64Var(&p.Fraction, "label-fraction", 1, "`FRACTION` of the rows that get a label at all")
	f.BoolVar(&src.Loop, "loop", false, "begin again at the end, until interrupted")
	cli.AddDataFlags(cmd, &src.Data, "`NAME` of the label's column (default one called label, else the last one)")
	cli.AddRawFlags(cmd, &src.Data)
	cli.SelectionFlags(cmd, &src.Selection)
	f.IntVar(&qos, "qos", 1, "quality of service, `LEVEL` 0 or 1")
	f.StringVar(&format, "format", "array", "`FORMAT` of the features: array, or named (an object)")
	f.BoolVar(&asJSON, "json", false, "print the scores as a JSON object a line for each node and model")
	return cmd
}

// addPace adds the flags of the pace of the rows.
func addPace(f *pflag.FlagSet, p *replay.Player) {
	f.Float64Var(&p.Rate, "rate", 0, "`N` rows a second (0: as fast as the daemon follows)")
	f.Float64Var(&p.Speed, "speed", 0, "publish rows of signals `X` times as fast as their times say (0: as --rate says)")
	f.IntVar(&p.Ahead, "ahead", 100, "publish at most `N` rows ahead of the daemon's predictions (0: do not watch for a daemon, and print no scores)")
}

// checkReplay returns the error of a flag without a valid value, and completes the
// data file's format.
func checkReplay(p *replay.Player, src *replay.Source, format string) error {
	switch {
	case !slices.Contains([]string{replay.LabelsInline, replay.LabelsDelayed, replay.LabelsAsked, replay.LabelsNone}, p.Labels):
		return fmt.Errorf("--labels %s: want inline, delayed, asked or none", p.Labels)
	case p.Ahead == 0 && p.Labels == replay.LabelsAsked:
		return errors.New("--labels asked needs the daemon's predictions: give --ahead 1 or more")
	case format != "array" && format != "named":
		return fmt.Errorf("--format %s: want array or named", format)
	case !(p.Fraction >= 0 && p.Fraction <= 1):
		return fmt.Errorf("--label-fraction %g: want 0 to 1", p.Fraction)
	case !(p.Speed >= 0) || p.Speed > 0 && p.Rate > 0:
		return errors.New("--speed and --rate: want 0 or more, and one of them")
	case !(p.Rate >= 0) || p.Ahead < 0 || src.Selection.First < 0:
		return errors.New("--rate, --ahead and --first: want 0 or more")
	}
	return src.Data.Check()
}

// printPublished prints the scores of the published predictions; without a daemon
// the list is empty.
func printPublished(w io.Writer, reports []*report.Report, asJSON bool) error {
	if !asJSON && len(reports) > 0 {
		return report.PrintPublished(w, reports)
	}
	return terminal.PrintJSONLines(w, reports)
}
