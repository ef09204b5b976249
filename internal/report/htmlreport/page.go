// Package htmlreport draws reports as one self-contained HTML file: SVG charts, no external resource.
//
// page.go arranges the page, drawings.go makes its charts on plot.go, markup.go writes the HTML.
package htmlreport

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"edge/internal/report"
	"edge/internal/terminal"
)

// Page is one HTML file about one or more reports. It refers to no other file, runs
// no script, and follows the reader's choice of a light or dark screen.
type Page struct {
	Title   string
	Command string // that made the reports
	Version string // of the program
	Date    time.Time
	Reports []*report.Report
}

//go:embed page.css
var pageStyle []byte

const pageHead = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
`

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	var m markup
	title := terminal.Plain(p.Title)
	m.b.WriteString(pageHead)
	m.el("title", title)
	m.b.WriteString("\n<style>\n")
	m.b.Write(pageStyle)
	m.b.WriteString("</style>\n</head>\n<body>\n")
	m.in("header", func() {
		m.el("h1", title)
		m.in("p", func() {
			m.el("time", p.Date.Format("2 January 2006, 15:04 MST"), "datetime", p.Date.Format(time.RFC3339))
			if p.Version != "" {
				m.text(" · " + p.Version)
			}
		}, "class", "soft")
		if p.Command != "" {
			m.in("p", func() { m.el("code", terminal.Plain(p.Command)) })
		}
	})
	m.line()
	m.in("main", func() {
		if c := comparedChart(p.Reports); c != nil {
			m.in("div", func() {
				m.in("section", func() { m.chart(c) }, "class", "card all", "aria-labelledby", c.ID)
			}, "class", "cards")
		}
		for i, r := range p.Reports {
			s := newSection(i, r)
			m.section(&s)
		}
	})
	m.el("footer", "Written by edge. The page is complete in itself and loads nothing.")
	m.b.WriteString("\n</body>\n</html>\n")
	if _, err := io.WriteString(w, m.b.String()); err != nil {
		return fmt.Errorf("report: write the page: %w", err)
	}
	return nil
}

func (m *markup) section(s *section) {
	m.in("article", func() {
		m.el("h2", s.Name, "id", s.ID+"-name")
		m.el("p", s.Summary, "class", "soft")
		m.in("div", func() {
			m.in("section", func() {
				m.el("h3", "Scores", "id", s.ID+"-scores")
				m.in("dl", func() {
					for _, f := range s.Facts {
						m.in("div", func() {
							m.el("dt", f.Name)
							m.in("dd", func() { m.cell(f.Value, f.Key) })
						})
					}
				}, "class", "facts")
				m.line()
				if s.Runs != nil {
					m.details("Every run", func() { m.table(s.Runs) })
				}
				if s.Settings != nil {
					m.details("Configuration of the model", func() { m.table(s.Settings) })
				}
			}, "class", "card all", "aria-labelledby", s.ID+"-scores")
			for _, c := range s.Charts {
				m.line()
				m.in("section", func() { m.chart(c) }, "class", "card", "aria-labelledby", c.ID)
			}
		}, "class", "cards")
	}, "id", s.ID, "aria-labelledby", s.ID+"-name")
	m.line()
}

// section shows one report.
type section struct {
	ID       string
	Name     string
	Summary  string
	Facts    []fact
	Charts   []*chart
	Runs     *table
	Settings *table
}

// fact is one figure of a report; Key is its name in the JSON object.
type fact struct {
	Name, Key string
	Value     cell
}

// factList is the facts of a report, in their order.
type factList []fact

// add appends a fact. It is not inlined: some twenty calls would each have its code.
//
//go:noinline
func (l *factList) add(name, key string, value cell) { *l = append(*l, fact{name, key, value}) }

// chart is a drawing or a matrix, a sentence about it and the same figures as a
// table.
type chart struct {
	ID, Title, Note string
	Plot            *plot
	Matrix          *matrix
	Key             []key
	Sentence        string
	Table           *table
}

// key explains a line's style.
type key struct{ Style, Text string }

type table struct {
	Style string
	Head  []string
	Rows  [][]cell
}

// cell is a text; of a number Value holds every digit.
type cell struct{ Text, Value string }

// matrix is a confusion matrix.
type matrix struct {
	Classes []string
	Rows    []matrixRow
}

type matrixRow struct {
	Label string
	Cells []matrixCell
}

type matrixCell struct {
	Text, Title string
	Style       string // right or wrong
	Share       string // of the label, as a style that sets the colour
}

func newSection(i int, r *report.Report) section {
	s := section{ID: "r" + strconv.Itoa(i+1), Name: terminal.Plain(r.Dataset), Summary: summary(r), Facts: facts(r), Settings: settingsTable(r.Charts.Settings)}
	if a := r.Asked; a != nil {
		s.Name += fmt.Sprintf(", %s, budget %g", a.Strategy, a.Budget)
	}
	for _, c := range append(streamCharts(r), reliabilityChart(r), confusionChart(r), classChart(r), coverageChart(r)) {
		if c != nil {
			c.ID = s.ID + "-" + c.ID
			s.Charts = append(s.Charts, c)
		}
	}
	if len(r.Runs) > 0 {
		s.Runs = &table{Head: []string{"Seed", "Error", "Log loss", "Brier score", "Calibration error", "Macro F1", "Balanced accuracy", "Cohen's κ", "Digest"}}
		for _, run := range r.Runs {
			s.Runs.Rows = append(s.Runs.Rows, []cell{
				{Text: strconv.FormatUint(run.Seed, 10)}, formatScore(run.Error), formatScore(run.NLL), formatScore(run.Brier), formatScore(run.ECE), formatScore(run.MacroF1),
				formatScore(float64(run.Balanced)), formatScore(float64(run.Kappa)), {Text: cut(run.Digest, 13)},
			})
		}
	}
	return s
}

// settingsTable lists a configuration; nil if it is not known.
func settingsTable(all []report.Setting) *table {
	if len(all) == 0 {
		return nil
	}
	t := &table{Style: "settings", Head: []string{"Key", "Value"}}
	for _, s := range all {
		t.Rows = append(t.Rows, []cell{{Text: s.Key}, {Text: terminal.Plain(s.Value)}})
	}
	return t
}

// summary describes how the samples of a report were judged.
func summary(r *report.Report) string {
	var b strings.Builder
	switch r.Mode {
	case "holdout":
		fmt.Fprintf(&b, "Mean of %d random splits; each learns %s rows and judges the others.", len(r.Runs), count(r.Samples))
	case "cv":
		fmt.Fprintf(&b, "Mean of %d folds; each is judged by a model that learnt the %s rows of the others.", len(r.Runs), count(r.Samples))
	case "published":
		b.WriteString("Each prediction is judged as the daemon published it.")
	default:
		b.WriteString("Each sample is judged by a prediction that was made before its label was learnt.")
		if r.Labels != "" {
			fmt.Fprintf(&b, " Labels came %s.", r.Labels)
		}
		if len(r.Runs) > 0 {
			fmt.Fprintf(&b, " Mean of %d runs; the curves are those of the first run, the other charts pool all runs.", len(r.Runs))
		}
	}
	if a := r.Asked; a != nil {
		fmt.Fprintf(&b, " Strategy %s with a budget of %g learnt %.0f labels, %s of all.", a.Strategy, a.Budget, a.Labels, percent(a.Fraction))
	}
	return b.String()
}

// facts lists the figures of a report.
func facts(r *report.Report) (all factList) {
	spread := func(v, se float64) cell {
		c := formatScore(v)
		if len(r.Runs) > 1 {
			c.Text += " ± " + formatScore(se).Text
		}
		return c
	}
	samples := "Samples"
	if r.Mode == "holdout" || r.Mode == "cv" {
		samples = "Rows learnt in a run"
	}
	all.add(samples, "samples", number(r.Samples))
	all.add("Classes", "", number(uint64(len(r.Classes))))
	all.add("Error, fraction wrong", "error", spread(r.Error, r.ErrorSE))
	all.add("Log loss, nats", "nll", spread(r.NLL, r.NLLSE))
	all.add("Brier score", "brier", spread(r.Brier, r.BrierSE))
	all.add("Calibration error", "ece", spread(r.ECE, r.ECESE))
	all.add("Macro F1", "macro_f1", spread(r.MacroF1, r.MacroF1SE))
	all.add("Balanced accuracy", "balanced_accuracy", spread(float64(r.Balanced), float64(r.BalancedSE)))
	all.add("Cohen's κ", "kappa", spread(float64(r.Kappa), float64(r.KappaSE)))
	if r.Prior.N > 0 {
		all.add("Error of the class prior", "class_prior.error", formatScore(r.Prior.Error))
		all.add("Log loss of the class prior", "class_prior.nll", formatScore(r.Prior.NLL))
		all.add("Error of the last label", "last_label.error", formatScore(r.Last.Error))
		all.add("Log loss of the last label", "last_label.nll", formatScore(r.Last.NLL))
	}
	if s := r.Sets; s != nil {
		all.add("Coverage of the sets", "sets.coverage", formatScore(float64(s.Covered)))
		all.add("Classes in a set", "sets.size", formatScore(float64(s.Size)))
	}
	if w := r.SetsWorst; w != nil {
		all.add("Lowest coverage of 250 rows", "sets_worst_250", formatScore(float64(*w)))
	}
	if a := r.Abstained; a != nil {
		all.add("Answered, fraction", "abstention.kept", formatScore(float64(a.Kept)))
		all.add("Error of the answers", "abstention.error", formatScore(float64(a.Error)))
	}
	if len(r.Drifts) > 0 {
		all.add("Drifts detected", "", number(uint64(len(r.Drifts))))
	}
	all.add("Samples a second", "samples_per_second", cell{fmt.Sprintf("%.0f", r.SamplesPerSecond), exact(r.SamplesPerSecond)})
	all.add("State", "state_bytes", cell{terminal.Bytes(uint64(r.StateBytes)), strconv.Itoa(r.StateBytes)})
	if r.Digest != "" {
		all.add("Digest of the state", "digest", cell{r.Digest[:min(12, len(r.Digest))], r.Digest})
	}
	return all
}

// formatScore writes four decimals; – where the score is not defined.
func formatScore(v float64) cell {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return cell{Text: "–"}
	}
	return cell{strconv.FormatFloat(v, 'f', 4, 64), exact(v)}
}

func number(n uint64) cell { return cell{count(n), strconv.FormatUint(n, 10)} }

// exact writes every digit, as JSON does.
func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// count writes a number with narrow spaces between groups of three digits.
func count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// percent writes a fraction.
func percent(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	digits := 1
	if v == 0 || v == 1 {
		digits = 0
	}
	return strconv.FormatFloat(100*v, 'f', digits, 64) + " %"
}
