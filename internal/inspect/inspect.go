package inspect

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"edge/internal/config"
	"edge/internal/exit"
	"edge/internal/report"
	"edge/internal/statefile"
	"edge/internal/terminal"
	"edge/model"
	"edge/online"
	"edge/online/score"
	"edge/persist"
)

// Report describes a state file.
type Report struct {
	File      string        `json:"file"`
	FileBytes int64         `json:"file_bytes"`
	FreeBytes int64         `json:"free_bytes"` // in the file, reused by later transactions
	Models    []ModelReport `json:"models"`
}

// ModelReport describes the state of one model.
type ModelReport struct {
	Model      string                    `json:"model"`
	Samples    uint64                    `json:"samples"` // learnt or in the open minibatch
	Built      bool                      `json:"built"`   // the Gaussian process predicts; before, the class frequencies
	WarmedUp   bool                      `json:"warmed_up"`
	Inducing   int                       `json:"inducing"`
	Window     int                       `json:"window"`
	Classes    []ClassReport             `json:"classes"`
	Horizons   []HorizonReport           `json:"horizons"`
	Fleet      *FleetReport              `json:"fleet,omitempty"` // absent without a fleet
	Relevance  []report.FeatureRelevance `json:"relevance"`       // most relevant first
	LabelNoise float64                   `json:"label_noise"`
	Scores     *score.Scores             `json:"scores"` // null before the first judged sample
	Counters   online.Counters           `json:"counters"`
	SizeReport
	Checkpoints []GenerationReport `json:"checkpoints"` // newest first
	JournalReport
	Digest string `json:"digest"`
}

// SizeReport is the size of a model's state.
type SizeReport struct {
	StateBytes   int                  `json:"state_bytes"`
	FormulaBytes uint64               `json:"formula_bytes"` // 8·[H·C·(M(M+1)/2+M) + R·(D+2HC) + 3(MD+D+3) + C² + 2C(D+1)] and the forest
	Parts        []online.SectionSize `json:"state_parts"`   // the parts of StateBytes
}

// JournalReport describes the journal of a model.
type JournalReport struct {
	JournalFirst uint64 `json:"journal_first"`
	JournalLast  uint64 `json:"journal_last"`
	Unlearnt     int    `json:"unlearnt"` // records after the newest checkpoint, without effect on the figures
	Pending      uint64 `json:"pending"`  // samples that wait for their label
	Dedupe       int    `json:"dedupe"`   // remembered messages
}

// ClassReport is one class.
type ClassReport struct {
	Name   string `json:"name"`
	Count  uint64 `json:"count"`  // samples learnt
	Latent bool   `json:"latent"` // has a latent function
}

// HorizonReport is one forgetting posterior.
type HorizonReport struct {
	Length online.Horizon `json:"length"` // in observations
	Weight float64        `json:"weight"` // in the mixture
}

// FleetReport is the part of a state that the other members of a fleet have taught.
type FleetReport struct {
	Members int      `json:"members"` // in the latest merge
	Weight  float64  `json:"weight"`  // in the answers, 0 to 1
	Foreign []string `json:"foreign"` // classes that members alone know
}

// GenerationReport is one checkpoint.
type GenerationReport struct {
	Generation uint64 `json:"generation"`
	Seq        uint64 `json:"seq"`
	Bytes      int    `json:"bytes"`
}

// File reads the state file at path. cfg may be nil.
func File(path string, cfg *config.Config) (*Report, error) {
	store, err := statefile.Open(path)
	if err != nil {
		return nil, exit.With(exit.Store, err)
	}
	defer store.Close()
	stats, err := store.Stats()
	if err != nil {
		return nil, exit.With(exit.Store, err)
	}
	names, err := store.Models()
	if err != nil {
		return nil, exit.With(exit.Store, err)
	}
	report := &Report{File: path, FileBytes: stats.FileBytes, FreeBytes: stats.FreeBytes, Models: []ModelReport{}}
	for _, name := range names {
		m, err := inspectModel(store, name, cfg)
		if err != nil {
			return nil, exit.With(exit.Store, err)
		}
		report.Models = append(report.Models, *m)
	}
	return report, nil
}

func inspectModel(store *persist.Store, name string, running *config.Config) (*ModelReport, error) {
	info, err := store.Info(name)
	if err != nil {
		return nil, err
	}
	learner, kept, exact, err := statefile.Restore(store, name, running)
	if err != nil {
		return nil, fmt.Errorf("inspect %s: %w", name, err)
	}
	cfg := learner.Config()
	r := &ModelReport{
		Model: name, Inducing: cfg.Inducing, Window: cfg.Window,
		Checkpoints:   generationReports(info.Checkpoints),
		JournalReport: JournalReport{JournalFirst: info.First, JournalLast: info.Last, Unlearnt: len(kept.Records), Pending: uint64(kept.Waiting()), Dedupe: info.Dedupe},
	}
	if exact {
		r.Unlearnt = 0
	}
	return r, r.describe(learner)
}

func generationReports(list []persist.Generation) []GenerationReport {
	reports := []GenerationReport{}
	for _, g := range list {
		reports = append(reports, GenerationReport(g))
	}
	return reports
}

// describe fills in the figures of the learner.
func (r *ModelReport) describe(learner *online.Learner) error {
	state, err := learner.AppendBinary(nil)
	if err != nil {
		return err
	}
	p, cfg := learner.Posterior(), learner.Config()
	r.Samples, r.Built, r.WarmedUp = p.Version()+uint64(learner.Pending()), p.Built(), learner.WarmedUp()
	r.Counters, r.StateBytes, r.Digest = learner.Counters(), len(state), learner.Digest()
	if scores := learner.Scores(); scores.N > 0 {
		r.Scores = &scores
	}
	r.FormulaBytes, r.Parts = cfg.EncodedSize(len(p.Latent)), learner.StateSize()
	r.Classes, r.Horizons, r.Relevance = []ClassReport{}, []HorizonReport{}, []report.FeatureRelevance{}
	for k, name := range p.Classes() {
		r.Classes = append(r.Classes, ClassReport{name, p.Counts[k], slices.Contains(p.Latent, k)})
	}
	for h, length := range cfg.Horizons {
		weight := 1 / float64(len(cfg.Horizons))
		if h < len(p.Weights) {
			weight = p.Weights[h]
		}
		r.Horizons = append(r.Horizons, HorizonReport{length, weight})
	}
	r.Fleet = fleetReport(p)
	r.Relevance = report.RankFeatures(cfg.Features, p.Relevance())
	r.LabelNoise = p.Eps()
	return nil
}

// fleetReport returns the share of the members in a posterior, nil for none.
func fleetReport(p *model.Posterior) *FleetReport {
	f := p.Fleet
	if f == nil {
		return nil
	}
	return &FleetReport{Members: f.Members, Weight: p.FleetWeight(), Foreign: append([]string{}, f.Classes...)}
}

const (
	shownFeatures = 20
	barWidth      = 30
)

// Print writes the report as text.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s, %s of it free\n", r.File, terminal.Bytes(uint64(r.FileBytes)), terminal.Bytes(uint64(r.FreeBytes)))
	for i := range r.Models {
		r.Models[i].print(w)
	}
}

func (r *ModelReport) print(w io.Writer) {
	stage := "warmed up"
	switch {
	case !r.Built:
		stage = "too few samples for a model yet"
	case !r.WarmedUp:
		stage = "warming up"
	}
	fmt.Fprintf(w, "\nmodel %s: %s, %s\n", r.Model, terminal.Count(r.Samples, "sample"), stage)
	if sc := r.Scores; sc == nil {
		fmt.Fprintln(w, "  scores     –, none judged yet")
	} else {
		fmt.Fprintf(w, "  scores     error %.4f, log loss %.4f, brier %.4f, ece %.4f, macro-f1 %.4f\n", sc.Error, sc.NLL, sc.Brier, sc.ECE, sc.MacroF1)
		fmt.Fprintf(w, "             last %d: error %s, log loss %s\n", sc.Window.N, report.Figure(sc.Window.N, "%.4f", sc.Window.Error), report.Figure(sc.Window.N, "%.4f", sc.Window.NLL))
	}
	fmt.Fprintf(w, "  steps      %d, refused %d; labels refused %d; label noise %.3g\n", r.Counters.Steps, r.Counters.StepsRefused, r.Counters.LabelsRefused, r.LabelNoise)
	for i, h := range r.Horizons {
		length, _ := h.Length.MarshalText()
		fmt.Fprintf(w, "  %-10s %s observations: weight %.3f\n", onlyFirst(i, "horizons"), length, h.Weight)
	}
	if f := r.Fleet; f != nil {
		fmt.Fprintf(w, "  fleet      other members in the latest merge: %d; weight of the fleet in the answers %.3f\n", f.Members, f.Weight)
		if len(f.Foreign) > 0 {
			fmt.Fprintf(w, "             classes that they alone know: %s\n", strings.Join(f.Foreign, ", "))
		}
	}
	fmt.Fprintf(w, "  size       state of %s (%d bytes):", terminal.Bytes(uint64(r.StateBytes)), r.StateBytes)
	for i, part := range r.Parts {
		fmt.Fprintf(w, "%s %s %d", onlyAfter(i, ","), part.Name, part.Bytes)
	}
	fmt.Fprintf(w, "\n             a model of %d classes after the warm-up: %d\n", len(r.Classes), r.FormulaBytes)
	for i, c := range r.Checkpoints {
		fmt.Fprintf(w, "  %-10s generation %d up to record %d, %s\n", onlyFirst(i, "checkpoint"), c.Generation, c.Seq, terminal.Bytes(uint64(c.Bytes)))
	}
	journal := "empty"
	if r.JournalFirst <= r.JournalLast {
		journal = fmt.Sprintf("records %d to %d, %d not in these figures", r.JournalFirst, r.JournalLast, r.Unlearnt)
	}
	fmt.Fprintf(w, "  journal    %s; %s remembered, %s waiting for a label\n", journal, terminal.Count(r.Dedupe, "message"), terminal.Count(r.Pending, "sample"))
	fmt.Fprintf(w, "  digest     %s\n", r.Digest)
	width := 0
	for _, c := range r.Classes {
		width = max(width, utf8.RuneCountInString(terminal.Escaped(c.Name)))
	}
	for i, c := range r.Classes {
		fmt.Fprintf(w, "  %-10s %-*s  %d\n", onlyFirst(i, "classes"), width, terminal.Escaped(c.Name), c.Count)
	}
	r.printRelevance(w)
}

func (r *ModelReport) printRelevance(w io.Writer) {
	shown := r.Relevance[:min(len(r.Relevance), shownFeatures)]
	if len(shown) == 0 {
		return
	}
	width := 0
	for _, f := range shown {
		width = max(width, utf8.RuneCountInString(terminal.Escaped(f.Feature)))
	}
	top := shown[0].Relevance
	for i, f := range shown {
		bar := 0
		if top > 0 {
			bar = int(barWidth*f.Relevance/top + 0.5)
		}
		fmt.Fprintf(w, "  %-10s %-*s  %8.4g %s\n", onlyFirst(i, "relevance"), width, terminal.Escaped(f.Feature), f.Relevance, strings.Repeat("█", bar))
	}
	if rest := len(r.Relevance) - len(shown); rest > 0 {
		fmt.Fprintf(w, "             and %d less relevant features\n", rest)
	}
}

// onlyFirst returns the title of a list on its first line.
func onlyFirst(i int, title string) string {
	if i == 0 {
		return title
	}
	return ""
}

// onlyAfter returns the separator before all elements of a list but the first.
func onlyAfter(i int, separator string) string {
	if i == 0 {
		return ""
	}
	return separator
}
