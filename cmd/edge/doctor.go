package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"edge/stream/mqtt"
)

// Grades of a finding, from good to bad.
const (
	gradeOK   = "ok"
	gradeWarn = "warn" // works, and something should be known or changed
	gradeFail = "fail" // does not work, or loses what it should not
)

// finding is one thing that the doctor looked at.
type finding struct {
	Check  string `json:"check"`
	Grade  string `json:"grade"`
	Detail string `json:"detail"`
	Advice string `json:"advice,omitempty"` // what to do; not where all is well
	Figure any    `json:"figure,omitempty"` // what was measured
}

// diagnosis is all that the doctor found.
type diagnosis struct {
	V        int       `json:"v"`
	Grade    string    `json:"grade"` // of the worst finding
	Findings []finding `json:"findings"`
	Seconds  float64   `json:"seconds"` // that it took

	within limits
}

// add takes a finding in.
func (d *diagnosis) add(check, grade, detail, advice string, figure any) {
	d.Findings = append(d.Findings, finding{check, grade, detail, advice, figure})
	grades := []string{gradeOK, gradeWarn, gradeFail}
	if slices.Index(grades, grade) > slices.Index(grades, d.Grade) {
		d.Grade = grade
	}
}

func (d *diagnosis) ok(check, format string, args ...any) {
	d.add(check, gradeOK, fmt.Sprintf(format, args...), "", nil)
}

func (d *diagnosis) warn(check, detail, advice string) { d.add(check, gradeWarn, detail, advice, nil) }
func (d *diagnosis) fail(check, detail, advice string) { d.add(check, gradeFail, detail, advice, nil) }

// errUnwell: a finding failed; the exit code says so, and the findings say why.
var errUnwell = errors.New("a check failed: what was found says which")

// limits are the times that the doctor gives to what it examines.
type limits struct {
	all     time.Duration // everything
	speed   time.Duration // one model
	wear    time.Duration // writing
	step    time.Duration // one answer of the broker
	answer  time.Duration // a message back, once the broker has taken it
	quiet   time.Duration // without another message: no more are to come
	sending time.Duration // trialQueue messages
}

// patient returns limits that are so many times as long as usual.
func patient(times int) limits {
	n := time.Duration(times)
	return limits{
		all: n * 2 * time.Minute, speed: n * 4 * time.Second, wear: n * 3 * time.Second,
		step: n * 5 * time.Second, answer: n * 2 * time.Second, quiet: n * 500 * time.Millisecond, sending: n * 8 * time.Second,
	}
}

func newDoctorCommand() *cobra.Command {
	var path string
	var rate float64
	var times int
	var asJSON, offline bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine broker, disk, clock, memory and speed for a configuration",
		Long: `doctor looks at what a daemon with this configuration depends on, and says of each
thing whether it is well and what to do: rights of files, the file system under
the state, free space, bytes written a day and what that means for an SD card,
kernel, clock, memory, the time of a prediction and of a step on this board, and
the broker: what its limits are, and whether it delivers shared subscriptions and
retained messages, is found by trying.

It changes neither state nor topics of others: it writes a file of its own beside
the state, and publishes on topics of its own, <base>/<node>/doctor-…, with a
client id of its own, and removes all of it. It may run beside the daemon, which
then shares disk and processor with it. Run it as the daemon's user, or rights
are judged wrongly. It takes seconds, two minutes at most, or --patience
times as long where the board or the way to the broker is slow.

It exits with 0 unless a check failed; warnings are no failures.`,
		Example: `  edge doctor -c edge.yaml
  edge doctor -c edge.yaml --rate 10
  sudo -u edge edge doctor -c /etc/edge/edge.yaml --json`,
		Args: cobra.NoArgs,
		RunE: action(func(cmd *cobra.Command, args []string) error {
			if !(rate >= 0) {
				return coded(exitUsage, errors.New("--rate: want 0 or more"))
			}
			const most = 60
			if times < 1 || times > most {
				return coded(exitUsage, fmt.Errorf("--patience: want 1 to %d", most))
			}
			cfg, err := LoadConfig(path)
			if err != nil {
				return err
			}
			within := patient(times)
			ctx, cancel := context.WithTimeout(cmd.Context(), within.all)
			defer cancel()
			d := examineAll(ctx, cfg, path, rate, offline, newHost(), within, func(doing string) {
				if isTerminal(cmd.ErrOrStderr()) {
					fmt.Fprintf(cmd.ErrOrStderr(), "\r\x1b[K%s", doing)
				}
			})
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), d)
			} else {
				err = d.print(textWriter{cmd.OutOrStdout()})
			}
			if err == nil && d.Grade == gradeFail {
				err = errUnwell
			}
			return err
		}),
	}
	f := cmd.Flags()
	f.StringVarP(&path, "config", "c", defaultConfigPath, "configuration `FILE`")
	f.Float64Var(&rate, "rate", 1, "`N` labelled messages a second of each stream, for the bytes written a day")
	f.IntVar(&times, "patience", 1, "`N` times as long for everything")
	f.BoolVar(&offline, "offline", false, "leave the broker out")
	f.BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// examineAll makes a diagnosis; doing hears what is looked at.
func examineAll(ctx context.Context, cfg *Config, path string, rate float64, offline bool, h host, within limits, doing func(string)) *diagnosis {
	began := time.Now()
	d := &diagnosis{V: 1, Grade: gradeOK, within: within}
	doing("files …")
	examineRights(d, cfg, path)
	examineDisk(d, cfg, h)
	doing("machine …")
	examineMachine(d, cfg, h)
	doing("speed …")
	for _, name := range sortedKeys(cfg.Models) {
		examineSpeed(ctx, d, cfg, name)
	}
	doing("writing …")
	examineWear(ctx, d, cfg, rate, h)
	if !offline {
		doing("broker …")
		examineBroker(ctx, d, cfg)
	}
	doing("")
	d.Seconds = time.Since(began).Seconds()
	return d
}

// examineRights looks at who may read and write what.
func examineRights(d *diagnosis, cfg *Config, path string) {
	const name = "rights"
	found := cfg.exposures(path)
	for _, e := range found {
		d.warn(name, e.Path+": "+e.Reason, e.Advice)
	}
	if _, err := cfg.MQTT.ClientOptions("edge-doctor"); err != nil {
		d.fail(name, err.Error(), "run doctor as the daemon's user, with its environment; then check mqtt.password and mqtt.tls")
	} else if len(found) == 0 {
		d.ok(name, "nobody else can read secrets or state, or change the configuration")
	}
	if err := cfg.HTTP.readable(); cfg.HTTP.Listen != "" && err != nil {
		d.fail("page", err.Error(), "run doctor as the daemon's user, with its environment; then check http.password and http.tls")
	}
	for _, e := range cfg.HTTP.exposures(cfg.Control.Enabled) {
		d.warn("page", e.Path+": "+e.Reason, e.Advice)
	}
	for _, s := range cfg.MQTT.Servers {
		if cfg.MQTT.Username != "" && !mqtt.Encrypted(s) && !loopbackServer(s) {
			d.warn("broker", "the password goes to "+s+" unencrypted", "use mqtts:// and, if the broker's certificate is your own, mqtt.tls.ca")
		}
	}
}

// describe writes a diagnosis among other lines about a configuration, and returns
// errUnwell if a check failed.
func (d *diagnosis) describe(out io.Writer) error {
	kinds := map[string]string{gradeOK: "broker", gradeWarn: "warning", gradeFail: "error"}
	for _, f := range d.Findings {
		advice := ""
		if f.Advice != "" {
			advice = " (" + f.Advice + ")"
		}
		fmt.Fprintf(out, "%-8s %s: %s%s\n", kinds[f.Grade], f.Check, f.Detail, advice)
	}
	if d.Grade == gradeFail {
		return errUnwell
	}
	return nil
}

// print writes a diagnosis for people.
func (d *diagnosis) print(out io.Writer) error {
	var b strings.Builder
	width := 0
	for _, f := range d.Findings {
		width = max(width, len(f.Check))
	}
	counts := map[string]int{}
	for _, f := range d.Findings {
		counts[f.Grade]++
		fmt.Fprintf(&b, "%-4s  %-*s  %s\n", f.Grade, width, f.Check, f.Detail)
		if f.Advice != "" {
			fmt.Fprintf(&b, "%-4s  %-*s  → %s\n", "", width, "", f.Advice)
		}
	}
	fmt.Fprintf(&b, "%d well, %d to know about, %d failed; %.1f s\n", counts[gradeOK], counts[gradeWarn], counts[gradeFail], d.Seconds)
	_, err := io.WriteString(out, b.String())
	return err
}
