package report

import (
	"cmp"
	"slices"
	"time"

	"edge/online/score"
)

// MaxConfusion is the number of classes up to which the confusion matrix is shown.
const MaxConfusion = 64

// EventView is an event of a model or of the node: a drift, a new class, a lost
// connection.
type EventView struct {
	Time   time.Time `json:"ts"`
	Model  string    `json:"model,omitempty"`
	Event  string    `json:"event"`
	Detail string    `json:"detail,omitempty"`
}

// ModelSummary describes one model. Its scores are null before the first label.
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
	Learning bool        `json:"learning"`           // not switched off
	Recovery *uint64     `json:"recovery,omitempty"` // records of the journal that are yet to be learnt; nil: none
	Drift    string      `json:"drift"`              // none, warning or drift
}

// WindowScore holds the scores of the latest samples.
type WindowScore struct {
	N       uint64     `json:"n"`
	Error   score.Real `json:"error"`
	LogLoss score.Real `json:"log_loss"`
}

// FeatureRelevance measures how fast the latent functions vary along a feature.
type FeatureRelevance struct {
	Feature   string  `json:"feature"`
	Relevance float64 `json:"relevance"` // 1/lengthscale², in standardised units
}

// RankFeatures returns the relevances of D features, the largest first; none before the model
// is built.
func RankFeatures(names []string, relevance []float64) []FeatureRelevance {
	order := make([]int, len(relevance))
	for j := range order {
		order[j] = j
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(relevance[b], relevance[a]) })
	ranked := make([]FeatureRelevance, 0, len(order))
	for _, j := range order {
		ranked = append(ranked, FeatureRelevance{Feature: names[j], Relevance: relevance[j]})
	}
	return ranked
}

// CoursePoints bounds the points of each model; at this number every second point
// is dropped.
const CoursePoints = 240

// CoursePoint holds the scores of a model at one time.
type CoursePoint struct {
	N             uint64  `json:"n"`
	Error         float64 `json:"error"`
	LogLoss       float64 `json:"log_loss"`
	WindowError   float64 `json:"window_error"`
	WindowLogLoss float64 `json:"window_log_loss"`

	Time time.Time `json:"ts"`
}

// KeepLast drops all but the last n elements of a history, in place.
func KeepLast[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	return append(list[:0], list[len(list)-n:]...)
}
