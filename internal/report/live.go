package report

import (
	"time"

	"edge/online/score"
)

const MaxConfusion = 64 // classes up to which the confusion matrix is shown

type EventView struct {
	Time   time.Time `json:"ts"`
	Model  string    `json:"model,omitempty"`
	Event  string    `json:"event"`
	Detail string    `json:"detail,omitempty"`
}

// ModelSummary is one model in a nodeView. Scores are null before the first label.
type ModelSummary struct {
	Model    string      `json:"model"`
	N        uint64      `json:"n"` // samples judged
	Error    score.Real  `json:"error"`
	LogLoss  score.Real  `json:"log_loss"`
	Window   WindowScore `json:"window"`
	Classes  []string    `json:"classes"`
	Pending  int         `json:"pending"`
	Built    bool        `json:"built"`
	WarmedUp bool        `json:"warmed_up"`
	Learning bool        `json:"learning"` // not switched off
	Drift    string      `json:"drift"`    // none, warning or drift
}

type WindowScore struct {
	N       uint64     `json:"n"`
	Error   score.Real `json:"error"`
	LogLoss score.Real `json:"log_loss"`
}

// FeatureRelevance says how fast the latent functions vary along a feature.
type FeatureRelevance struct {
	Feature   string  `json:"feature"`
	Relevance float64 `json:"relevance"` // 1/lengthscale², in standardised units
}

const CoursePoints = 240 // of each model; every other goes when they are so many

// CoursePoint is what the scores were at a moment.
type CoursePoint struct {
	N             uint64  `json:"n"`
	Error         float64 `json:"error"`
	LogLoss       float64 `json:"log_loss"`
	WindowError   float64 `json:"window_error"`
	WindowLogLoss float64 `json:"window_log_loss"`

	Time time.Time `json:"ts"`
}
