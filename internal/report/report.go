package report

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"edge/internal/process"
	"edge/internal/terminal"
	"edge/online"
	"edge/online/score"
)

// StandardError is that of the mean of a figure over the runs; 0 for a single
// one. Folds and splits of one set overlap: the true one is larger.
func StandardError(runs []Run, figure func(Run) float64) float64 {
	n := float64(len(runs))
	if n < 2 {
		return 0
	}
	var mean, ss float64
	for _, r := range runs {
		mean += figure(r) / n
	}
	for _, r := range runs {
		ss += (figure(r) - mean) * (figure(r) - mean)
	}
	return math.Sqrt(ss / (n - 1) / n)
}

func RunError(r Run) float64 { return r.Error }

func RunNLL(r Run) float64 { return r.NLL }

// Report is what eval, replay and demo find out about one data set: the object that
// --json prints. In mode prequential each sample is judged before it is learnt,
// warm-up included; in modes holdout and cv samples that were not learnt are; in
// mode published each prediction as it was published.
type Report struct {
	Dataset          string             `json:"dataset"`
	Mode             string             `json:"mode"`
	Samples          uint64             `json:"samples"`
	Classes          []string           `json:"classes"`
	Error            float64            `json:"error"`
	NLL              float64            `json:"nll"` // nats, probabilities clipped from below at 1e-6
	Brier            float64            `json:"brier"`
	ECE              float64            `json:"ece"` // 15 equal-width bins of the top probability
	MacroF1          float64            `json:"macro_f1"`
	Balanced         score.Real         `json:"balanced_accuracy"`
	Kappa            score.Real         `json:"kappa"`
	Prior            score.Baseline     `json:"class_prior"` // on the same samples
	Last             score.Baseline     `json:"last_label"`
	Beats            *bool              `json:"beats_baselines"` // lower error and log loss than both
	Abstained        *score.Abstentions `json:"abstention,omitempty"`
	Sets             *score.Coverage    `json:"sets,omitempty"`
	PerClass         []score.ClassScore `json:"per_class"`
	Asked            *Asked             `json:"asked,omitempty"`     // with --query
	Published        *Published         `json:"published,omitempty"` // of replay
	Seconds          float64            `json:"seconds"`
	SamplesPerSecond float64            `json:"samples_per_second"`
	PeakRSS          uint64             `json:"peak_rss_bytes"` // of the process; 0 where the system does not tell
	StateBytes       int                `json:"state_bytes"`
	Digest           string             `json:"digest"` // of the state after the last sample; empty for a mean over runs
	Drifts           []Drift            `json:"drifts"`
	Tenths           []Tenth            `json:"tenths"` // of the stream, in its order
	Curve            []CurvePoint       `json:"curve"`
	Runs             []Run              `json:"runs"` // the repeats that the figures above are the means of

	// Standard errors over the runs; 0 where there is one.
	ErrorSE    float64    `json:"error_se,omitempty"`
	NLLSE      float64    `json:"nll_se,omitempty"`
	BrierSE    float64    `json:"brier_se,omitempty"`
	ECESE      float64    `json:"ece_se,omitempty"`
	MacroF1SE  float64    `json:"macro_f1_se,omitempty"`
	BalancedSE score.Real `json:"balanced_accuracy_se,omitempty"`
	KappaSE    score.Real `json:"kappa_se,omitempty"`

	Seed uint64 `json:"-"` // of the shuffle, or where there is none of the model
}

// CurvePoint is the mean over the first N samples.
type CurvePoint struct {
	N     uint64  `json:"n"`
	Error float64 `json:"error"`
	NLL   float64 `json:"nll"`
}

// Run is one repeat of several.
type Run struct {
	Seed     uint64     `json:"seed"` // of the shuffle or split; where there is neither, of the model
	Error    float64    `json:"error"`
	NLL      float64    `json:"nll"`
	Brier    float64    `json:"brier"`
	ECE      float64    `json:"ece"`
	MacroF1  float64    `json:"macro_f1"`
	Balanced score.Real `json:"balanced_accuracy"`
	Kappa    score.Real `json:"kappa"`
	Digest   string     `json:"digest"`
}

// New describes a learner that has been taught for so long.
func New(dataset string, learner *online.Learner, curve Curve, taught time.Duration) (*Report, error) {
	state, err := learner.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	r := &Report{
		Dataset: dataset, Mode: "prequential",
		Seconds: taught.Seconds(), PeakRSS: process.PeakRSS(),
		StateBytes: len(state), Digest: learner.Digest(), Runs: []Run{},
	}
	r.Judged(learner.Scores(), curve)
	return r, nil
}

// Judged fills in the scores, at the end of their course.
func (r *Report) Judged(s score.Scores, curve Curve) {
	r.Samples, r.Classes = s.N, s.Classes
	r.Error, r.NLL, r.Brier, r.ECE, r.MacroF1 = s.Error, s.NLL, s.Brier, s.ECE, s.MacroF1
	r.Balanced, r.Kappa, r.Prior, r.Last = s.Balanced, s.Kappa, s.Prior, s.Last
	r.Abstained, r.Sets, r.PerClass = s.Abstained, s.Sets, s.PerClass
	r.Curve = curve.Ending(s)
	if beats, known := s.Beats(); known {
		r.Beats = &beats
	}
	if r.Seconds > 0 {
		r.SamplesPerSecond = float64(s.N) / r.Seconds
	}
}

// Mean is the mean over repeats, with the last one's speed and size.
func Mean(reports []*Report) *Report {
	mean := *reports[len(reports)-1]
	mean.Error, mean.NLL, mean.Brier, mean.ECE, mean.MacroF1, mean.Seconds = 0, 0, 0, 0, 0, 0
	mean.Digest, mean.Curve = "", reports[0].Curve
	mean.Balanced, mean.Kappa = 0, 0
	mean.Prior, mean.Last, mean.Beats, mean.PerClass, mean.Abstained, mean.Sets, mean.Tenths = score.Baseline{}, score.Baseline{}, nil, nil, nil, nil, nil // of each run alone
	n := float64(len(reports))
	for _, r := range reports {
		mean.Error += r.Error / n
		mean.NLL += r.NLL / n
		mean.Brier += r.Brier / n
		mean.ECE += r.ECE / n
		mean.MacroF1 += r.MacroF1 / n
		mean.Balanced += r.Balanced / score.Real(n)
		mean.Kappa += r.Kappa / score.Real(n)
		mean.Seconds += r.Seconds / n
		mean.Runs = append(mean.Runs, Run{r.Seed, r.Error, r.NLL, r.Brier, r.ECE, r.MacroF1, r.Balanced, r.Kappa, r.Digest})
	}
	mean.ErrorSE, mean.NLLSE = StandardError(mean.Runs, RunError), StandardError(mean.Runs, RunNLL)
	mean.BrierSE = StandardError(mean.Runs, func(r Run) float64 { return r.Brier })
	mean.ECESE = StandardError(mean.Runs, func(r Run) float64 { return r.ECE })
	mean.MacroF1SE = StandardError(mean.Runs, func(r Run) float64 { return r.MacroF1 })
	mean.BalancedSE = score.Real(StandardError(mean.Runs, func(r Run) float64 { return float64(r.Balanced) }))
	mean.KappaSE = score.Real(StandardError(mean.Runs, func(r Run) float64 { return float64(r.Kappa) }))
	mean.Asked = meanAsked(reports)
	if mean.Seconds > 0 {
		mean.SamplesPerSecond = float64(mean.Samples) / mean.Seconds
	}
	return &mean
}

// Tenth is how one tenth of a stream went.
type Tenth struct {
	N        uint64     `json:"n"`
	Error    score.Real `json:"error"`
	NLL      score.Real `json:"nll"`
	Coverage score.Real `json:"coverage"` // of the prediction sets
	Size     score.Real `json:"set_size"`
}

// Drift is a drift that was found.
type Drift struct {
	N      int    `json:"n"`     // samples taught until then
	Since  uint64 `json:"since"` // labels since the change, as the detector sees it
	Detail string `json:"detail"`
}

// Tenths collects them from the scores at their ends.
type Tenths struct {
	List []Tenth
	last score.Figures
}

// Add ends a tenth.
func (t *Tenths) Add(s score.Scores) {
	sets := func(f *score.Figures) score.Coverage {
		if f.Sets == nil {
			return score.Coverage{}
		}
		return *f.Sets
	}
	now, before := sets(&s.Figures), sets(&t.last)
	part := func(n, then uint64, mean, was float64) score.Real {
		return score.Real((float64(n)*mean - float64(then)*was) / float64(n-then))
	}
	t.List = append(t.List, Tenth{
		N:        s.N - t.last.N,
		Error:    part(s.N, t.last.N, s.Error, t.last.Error),
		NLL:      part(s.N, t.last.N, s.NLL, t.last.NLL),
		Coverage: part(now.N, before.N, float64(now.Covered), float64(before.Covered)),
		Size:     part(now.N, before.N, float64(now.Size), float64(before.Size)),
	})
	t.last = s.Figures
}

// Curve collects the course of the scores in bounded memory: when it is full,
// every other point goes and the distance between points doubles.
type Curve struct {
	points []CurvePoint
	step   uint64
}

const (
	curvePoints = 200
	curveStep   = 10
)

// Due reports whether the scores after n samples belong into the curve.
func (c *Curve) Due(n uint64) bool {
	var last uint64
	if len(c.points) > 0 {
		last = c.points[len(c.points)-1].N
	}
	return n >= last+max(c.step, curveStep)
}

// Add appends a point for which Due was true.
func (c *Curve) Add(s score.Scores) {
	c.points = append(c.points, CurvePoint{s.N, s.Error, s.NLL})
	if len(c.points) == curvePoints {
		for i := range curvePoints / 2 {
			c.points[i] = c.points[2*i+1]
		}
		c.points = c.points[:curvePoints/2]
		c.step = 2 * max(c.step, curveStep)
	}
}

// Ending returns the points, the last of which is s.
func (c Curve) Ending(s score.Scores) []CurvePoint {
	points := append([]CurvePoint{}, c.points...)
	if n := len(points); s.N > 0 && (n == 0 || points[n-1].N < s.N) {
		points = append(points, CurvePoint{s.N, s.Error, s.NLL})
	}
	return points
}

// Figure writes a score of n samples, – where none was judged.
func Figure(n uint64, format string, v float64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf(format, v)
}

// Print writes a table, a line for each report.
func Print(w io.Writer, reports []*Report) error {
	t := tabwriter.NewWriter(terminal.Writer{To: w}, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "data set\tsamples\tclasses\terror\tnll\tbrier\tece\tmacro-f1\tbalanced\tkappa\tprior\tlast\tcoverage\tset\tkept\tsamples/s\tstate\tdigest\t")
	for _, r := range reports {
		digest, state := r.Digest[:min(12, len(r.Digest))], terminal.Bytes(uint64(r.StateBytes))
		if len(r.Runs) > 0 {
			digest = fmt.Sprintf("mean of %d", len(r.Runs))
		}
		if r.Published != nil {
			digest, state = "published", "–"
		}
		covered, size, kept := "–", "–", "–"
		if s := r.Sets; s != nil {
			covered, size = fmt.Sprintf("%.4f", s.Covered), fmt.Sprintf("%.3f", s.Size)
		}
		if a := r.Abstained; a != nil {
			kept = fmt.Sprintf("%.3f (error %.4f)", a.Kept, a.Error)
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t", r.Dataset, r.Samples, len(r.Classes))
		for _, f := range [][2]float64{{r.Error, r.ErrorSE}, {r.NLL, r.NLLSE}, {r.Brier, r.BrierSE}, {r.ECE, r.ECESE}, {r.MacroF1, r.MacroF1SE},
			{float64(r.Balanced), float64(r.BalancedSE)}, {float64(r.Kappa), float64(r.KappaSE)}} {
			if len(r.Runs) > 1 {
				fmt.Fprintf(t, "%.4f ± %.4f\t", f[0], f[1])
			} else {
				fmt.Fprintf(t, "%s\t", Figure(r.Samples, "%.4f", f[0]))
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%.0f\t%s\t%s\t\n", baseline(&r.Prior), baseline(&r.Last), covered, size, kept, r.SamplesPerSecond, state, digest)
	}
	return t.Flush()
}

// PrintPublished writes the table of Print, and one about how what it
// judges was published.
func PrintPublished(w io.Writer, reports []*Report) error {
	if err := Print(w, reports); err != nil {
		return err
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(terminal.Writer{To: w}, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "node\tmodel\trows\tunanswered\tqueries\tabstained\tlatency mean\tp50\tp99\tround trip mean\tp50\tp99\t")
	for _, r := range reports {
		p := r.Published
		var abstained float64
		if a := r.Abstained; a != nil {
			abstained = math.Round((1 - float64(a.Kept)) * float64(a.N))
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%.0f", p.Node, p.Model, p.Rows, p.Unanswered, p.Queries, abstained)
		for _, d := range []*Durations{&p.Latency, &p.RoundTrip} {
			for _, s := range []float64{d.Mean, d.P50, d.P99} {
				fmt.Fprintf(t, "\t%.2f ms", 1000*s)
			}
		}
		fmt.Fprintln(t, "\t")
	}
	return t.Flush()
}

// baseline writes the error and the log loss of a baseline.
func baseline(b *score.Baseline) string {
	if b.N == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3f/%.3f", b.Error, b.NLL)
}
