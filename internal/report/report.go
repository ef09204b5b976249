package report

import (
	"encoding/json"
	"time"

	"edge/internal/process"
	"edge/online"
	"edge/online/score"
)

// Report is the result of eval, replay and demo on one data set: the object that
// --json prints. In mode prequential each sample is judged before it is learnt,
// warm-up included; in modes holdout and cv the samples that were not learnt are
// judged; in mode published each prediction as the daemon published it.
type Report struct {
	Dataset string   `json:"dataset"`
	Mode    string   `json:"mode"`
	Labels  string   `json:"labels,omitempty"` // when they came, in mode prequential
	Samples uint64   `json:"samples"`
	Classes []string `json:"classes"`
	Figures
	Asked            *Asked       `json:"asked,omitempty"`     // with --query
	Published        *Published   `json:"published,omitempty"` // of replay
	Seconds          float64      `json:"seconds"`
	SamplesPerSecond float64      `json:"samples_per_second"`
	PeakRSS          uint64       `json:"peak_rss_bytes"` // of the process; 0 where the system does not report it
	StateBytes       int          `json:"state_bytes"`
	Digest           string       `json:"digest"` // of the state after the last sample; empty for a mean over runs
	Drifts           []Drift      `json:"drifts"`
	Tenths           []Tenth      `json:"tenths"` // of the stream, in its order
	Curve            []CurvePoint `json:"curve"`
	Runs             []Run        `json:"runs"` // the repeats whose means the figures above are
	StandardErrors

	Split  `json:"-"`
	Charts Charts `json:"-"`
}

// MarshalJSON writes null for the scores of no sample.
func (r Report) MarshalJSON() ([]byte, error) {
	type plain Report // without this method
	if r.Samples > 0 {
		return json.Marshal((*plain)(&r))
	}
	return json.Marshal(struct { // whose fields hide those of Figures
		*plain
		Error   *float64 `json:"error"`
		NLL     *float64 `json:"nll"`
		Brier   *float64 `json:"brier"`
		ECE     *float64 `json:"ece"`
		MacroF1 *float64 `json:"macro_f1"`
	}{plain: (*plain)(&r)})
}

// Split has the rows of a data set that a report is about.
type Split struct {
	Seed   uint64 // of the shuffle; without a shuffle, of the model
	Held   string // device or recordings that judged, in splits by them
	Judges uint64 // samples of them
}

// Figures are the scores of a report.
type Figures struct {
	Error     float64            `json:"error"`
	NLL       float64            `json:"nll"` // nats, probabilities clipped from below at 1e-6
	Brier     float64            `json:"brier"`
	ECE       float64            `json:"ece"` // 15 equal-width bins of the top probability
	MacroF1   float64            `json:"macro_f1"`
	Balanced  score.Real         `json:"balanced_accuracy"`
	Kappa     score.Real         `json:"kappa"`
	Prior     score.Baseline     `json:"class_prior"` // on the same samples
	Last      score.Baseline     `json:"last_label"`
	Beats     *bool              `json:"beats_baselines"` // lower error and log loss than both
	Abstained *score.Abstentions `json:"abstention,omitempty"`
	Sets      *score.Coverage    `json:"sets,omitempty"`
	SetsWorst *score.Real        `json:"sets_worst_250,omitempty"` // lowest coverage of the sets of 250 consecutive rows
	PerClass  []score.ClassScore `json:"per_class"`
}

// StandardErrors are those of the means over the runs; 0 for a single run.
type StandardErrors struct {
	ErrorSE    float64    `json:"error_se,omitempty"`
	NLLSE      float64    `json:"nll_se,omitempty"`
	BrierSE    float64    `json:"brier_se,omitempty"`
	ECESE      float64    `json:"ece_se,omitempty"`
	MacroF1SE  float64    `json:"macro_f1_se,omitempty"`
	BalancedSE score.Real `json:"balanced_accuracy_se,omitempty"`
	KappaSE    score.Real `json:"kappa_se,omitempty"`
}

// Drift is a drift that the learner detected.
type Drift struct {
	N      int    `json:"n"`     // samples before it
	Since  uint64 `json:"since"` // labels since the change, as the detector estimates it
	Detail string `json:"detail"`
}

// New describes a learner after a stream that it learnt in the time taken.
func New(dataset string, learner *online.Learner, curve Curve, taken time.Duration) (*Report, error) {
	state, err := learner.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	r := &Report{
		Dataset: dataset, Mode: "prequential",
		Seconds: taken.Seconds(), PeakRSS: process.PeakRSS(),
		StateBytes: len(state), Digest: learner.Digest(), Runs: []Run{},
	}
	r.Charts.Target = learner.Config().Conformal.Coverage
	r.Judged(learner.Scores(), curve)
	return r, nil
}

// Judged fills in the final scores and the curve that led to them.
func (r *Report) Judged(s score.Scores, curve Curve) {
	r.Samples, r.Classes = s.N, s.Classes
	r.Figures = FiguresOf(&s)
	r.Curve = curve.Ending(s)
	r.Charts.fill(&s)
	if r.Seconds > 0 {
		r.SamplesPerSecond = float64(s.N) / r.Seconds
	}
}

// FiguresOf returns the scores of a judge as a report has them.
func FiguresOf(s *score.Scores) Figures {
	f := Figures{
		Error: s.Error, NLL: s.NLL, Brier: s.Brier, ECE: s.ECE, MacroF1: s.MacroF1,
		Balanced: s.Balanced, Kappa: s.Kappa, Prior: s.Prior, Last: s.Last,
		Abstained: s.Abstained, Sets: s.Sets, PerClass: s.PerClass,
	}
	if beats, known := s.Beats(); known {
		f.Beats = &beats
	}
	return f
}
