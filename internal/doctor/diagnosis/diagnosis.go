// Package diagnosis holds what an examination has found: findings with grades and advice. It prints
// them as a table, as lines of `edge check`, and as JSON.
package diagnosis

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Grades of a finding, from good to bad.
const (
	OK   = "ok"
	Warn = "warn" // works, and the user should know or change something
	Fail = "fail" // does not work, or loses data
)

// Finding is the result of one check.
type Finding struct {
	Check  string `json:"check"`
	Grade  string `json:"grade"`
	Detail string `json:"detail"`
	Advice string `json:"advice,omitempty"` // remedy; empty if the grade is OK, or the detail has it
	Figure any    `json:"figure,omitempty"` // measured values
}

// Diagnosis is the list of findings.
type Diagnosis struct {
	V        int       `json:"v"`
	Grade    string    `json:"grade"` // of the worst finding
	Findings []Finding `json:"findings"`
	Seconds  float64   `json:"seconds"` // duration of the examination
}

// New returns a diagnosis without findings.
func New() *Diagnosis { return &Diagnosis{V: 1, Grade: OK} }

// Add appends a finding. It is not inlined: some forty calls would each have its loop.
//
//go:noinline
func (d *Diagnosis) Add(check, grade, detail, advice string, figure any) {
	d.Findings = append(d.Findings, Finding{check, grade, detail, advice, figure})
	grades := []string{OK, Warn, Fail}
	if slices.Index(grades, grade) > slices.Index(grades, d.Grade) {
		d.Grade = grade
	}
}

// OK appends a finding that is good.
func (d *Diagnosis) OK(check, format string, args ...any) {
	d.Add(check, OK, fmt.Sprintf(format, args...), "", nil)
}

// Warn appends a finding that the user should know. Like Add it is not inlined.
//
//go:noinline
func (d *Diagnosis) Warn(check, detail, advice string) { d.Add(check, Warn, detail, advice, nil) }

// Fail appends a finding of what does not work. Like Add it is not inlined.
//
//go:noinline
func (d *Diagnosis) Fail(check, detail, advice string) { d.Add(check, Fail, detail, advice, nil) }

// String returns the findings, one a line.
func (d *Diagnosis) String() string {
	var b strings.Builder
	for _, f := range d.Findings {
		fmt.Fprintf(&b, "%s %s: %s → %s\n", f.Grade, f.Check, f.Detail, f.Advice)
	}
	return b.String()
}

// ErrFailed reports that the grade of a diagnosis is Fail.
var ErrFailed = errors.New("a check failed: see the findings")

// Describe writes the findings as lines of `edge check`, and returns ErrFailed if a
// check failed.
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

// Print writes the findings as a table.
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
