package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"edge/internal/config"
	"edge/stream/mqtt"
)

// Grades of a finding, from good to bad.
const (
	OK   = "ok"
	Warn = "warn" // works, and something should be known or changed
	Fail = "fail" // does not work, or loses what it should not
)

// Finding is one thing that the doctor looked at.
type Finding struct {
	Check  string `json:"check"`
	Grade  string `json:"grade"`
	Detail string `json:"detail"`
	Advice string `json:"advice,omitempty"` // what to do; not where all is well
	Figure any    `json:"figure,omitempty"` // what was measured
}

// Diagnosis is all that the doctor found.
type Diagnosis struct {
	V        int       `json:"v"`
	Grade    string    `json:"grade"` // of the worst finding
	Findings []Finding `json:"findings"`
	Seconds  float64   `json:"seconds"` // that it took

	Within Limits `json:"-"`
}

// add takes a finding in.
func (d *Diagnosis) add(check, grade, detail, advice string, figure any) {
	d.Findings = append(d.Findings, Finding{check, grade, detail, advice, figure})
	grades := []string{OK, Warn, Fail}
	if slices.Index(grades, grade) > slices.Index(grades, d.Grade) {
		d.Grade = grade
	}
}

func (d *Diagnosis) ok(check, format string, args ...any) {
	d.add(check, OK, fmt.Sprintf(format, args...), "", nil)
}

func (d *Diagnosis) warn(check, detail, advice string) { d.add(check, Warn, detail, advice, nil) }

func (d *Diagnosis) fail(check, detail, advice string) { d.add(check, Fail, detail, advice, nil) }

// ErrFailed: a finding failed; the exit code says so, and the findings say why.
var ErrFailed = errors.New("a check failed: what was found says which")

// Limits are the times that the doctor gives to what it examines.
type Limits struct {
	All     time.Duration // everything
	speed   time.Duration // one model
	wear    time.Duration // writing
	step    time.Duration // one answer of the broker
	answer  time.Duration // a message back, once the broker has taken it
	quiet   time.Duration // without another message: no more are to come
	sending time.Duration // trialQueue messages
}

// Patient returns limits that are so many times as long as usual.
func Patient(times int) Limits {
	n := time.Duration(times)
	return Limits{
		All: n * 2 * time.Minute, speed: n * 4 * time.Second, wear: n * 3 * time.Second,
		step: n * 5 * time.Second, answer: n * 2 * time.Second, quiet: n * 500 * time.Millisecond, sending: n * 8 * time.Second,
	}
}

// Examine makes a diagnosis; doing hears what is looked at.
func Examine(ctx context.Context, cfg *config.Config, path string, rate float64, offline bool, h Host, within Limits, doing func(string)) *Diagnosis {
	began := time.Now()
	d := &Diagnosis{V: 1, Grade: OK, Within: within}
	doing("files …")
	examineRights(d, cfg, path)
	examineDisk(d, cfg, h)
	doing("machine …")
	examineMachine(d, cfg, h)
	doing("speed …")
	for _, name := range slices.Sorted(maps.Keys(cfg.Models)) {
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
func examineRights(d *Diagnosis, cfg *config.Config, path string) {
	const name = "rights"
	found := cfg.Exposures(path)
	for _, e := range found {
		d.warn(name, e.Path+": "+e.Reason, e.Advice)
	}
	if _, err := cfg.MQTT.ClientOptions("edge-doctor"); err != nil {
		d.fail(name, err.Error(), "run doctor as the daemon's user, with its environment; then check mqtt.password and mqtt.tls")
	} else if len(found) == 0 {
		d.ok(name, "nobody else can read secrets or state, or change the configuration")
	}
	if err := cfg.HTTP.Readable(); cfg.HTTP.Listen != "" && err != nil {
		d.fail("page", err.Error(), "run doctor as the daemon's user, with its environment; then check http.password and http.tls")
	}
	for _, e := range cfg.HTTP.Exposures(cfg.Control.Enabled) {
		d.warn("page", e.Path+": "+e.Reason, e.Advice)
	}
	for _, s := range cfg.MQTT.Servers {
		if cfg.MQTT.Username != "" && !mqtt.Encrypted(s) && !loopbackServer(s) {
			d.warn("broker", "the password goes to "+s+" unencrypted", "use mqtts:// and, if the broker's certificate is your own, mqtt.tls.ca")
		}
	}
}

// Describe writes a diagnosis among other lines about a configuration, and returns
// ErrFailed if a check failed.
func (d *Diagnosis) Describe(out io.Writer) error {
	kinds := map[string]string{OK: "broker", Warn: "warning", Fail: "error"}
	for _, f := range d.Findings {
		advice := ""
		if f.Advice != "" {
			advice = " (" + f.Advice + ")"
		}
		fmt.Fprintf(out, "%-8s %s: %s%s\n", kinds[f.Grade], f.Check, f.Detail, advice)
	}
	if d.Grade == Fail {
		return ErrFailed
	}
	return nil
}

// Print writes a diagnosis for people.
func (d *Diagnosis) Print(out io.Writer) error {
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
	fmt.Fprintf(&b, "%d well, %d to know about, %d failed; %.1f s\n", counts[OK], counts[Warn], counts[Fail], d.Seconds)
	_, err := io.WriteString(out, b.String())
	return err
}

// sleep waits for d, or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
