package web

import (
	"time"

	"edge/internal/report"
	"edge/online/active"
	"edge/online/score"
	"edge/stream"
	"edge/stream/codec"
	"edge/stream/membership"
)

const (
	maxRelevances = 100 // features, the most relevant ones
	maxValues     = 12  // features of a sample that waits for its label
	valuedSamples = 5   // of the queries, and of the other samples without a label, that have their values
)

// nodeView is the answer to /api/v1/models.
type nodeView struct {
	V           int                     `json:"v"`
	Node        string                  `json:"node"`
	Version     string                  `json:"version"`
	Commit      string                  `json:"commit,omitempty"`
	Started     time.Time               `json:"started"`
	Connected   bool                    `json:"connected"`
	Subscribed  bool                    `json:"subscribed"`
	Refused     []string                `json:"refused"` // subscriptions
	Degraded    bool                    `json:"degraded"`
	Received    uint64                  `json:"received"`
	Rejected    map[codec.Reason]uint64 `json:"rejected"`
	Dropped     uint64                  `json:"dropped"`      // messages and examples, by any queue
	LastMessage *time.Time              `json:"last_message"` // null before the first
	Queues      map[string]int          `json:"queues"`
	Control     bool                    `json:"control"` // labels are accepted
	Store       *storeView              `json:"store"`   // null before it was read, or if it cannot be read
	Events      []report.EventView      `json:"events"`  // newest first
	Models      []report.ModelSummary   `json:"models"`
}

// storeView is the state file in a nodeView.
type storeView struct {
	Bytes        int64 `json:"bytes"`
	FreeBytes    int64 `json:"free_bytes"`
	WrittenBytes int64 `json:"written_bytes"` // since the start
	Transactions int64 `json:"transactions"`  // since the start
}

// modelView is the answer to /api/v1/models/{model}.
type modelView struct {
	V int `json:"v"`
	report.ModelSummary
	Version uint64 `json:"version"` // samples in the model
	scoresView
	Confusion    [][]uint64                `json:"confusion,omitempty"` // [label][predicted]; not with many classes
	Scores       stream.Scores             `json:"scores"`              // of all samples, as on the metrics topic
	WindowScores stream.Scores             `json:"window_scores"`       // of the last ones
	Reliability  []score.Bin               `json:"reliability"`
	Relevance    []report.FeatureRelevance `json:"relevance"` // most relevant first; empty before the model is built
	Features     int                       `json:"features"`
	Course       []report.CoursePoint      `json:"course"`  // since the start
	Samples      []sampleView              `json:"samples"` // newest first
	Present      timelinesView             `json:"present"`
	Windows      *windowsView              `json:"windows,omitempty"` // of the model's streams; absent before the first row, and without windows
	Fleet        *membership.View          `json:"fleet,omitempty"`   // absent without a fleet
	Queries      queriesView               `json:"queries"`
	Open         classesView               `json:"new_classes"`
	countsView
}

// scoresView are the scores of a model over all samples, beside those of its summary.
type scoresView struct {
	Accuracy score.Real `json:"accuracy"`
	Brier    score.Real `json:"brier"`
	ECE      score.Real `json:"ece"`
	MacroF1  score.Real `json:"macro_f1"`
}

// countsView are the counters of a model.
type countsView struct {
	Predictions uint64 `json:"predictions"`
	Learned     uint64 `json:"learned"` // since the start
	Steps       uint64 `json:"steps"`
	Rollbacks   uint64 `json:"rollbacks"`
	StateBytes  int    `json:"state_bytes"` // of the last checkpoint since the start
}

// classesView is the rule for new classes.
type classesView struct {
	Open    bool `json:"open"`
	Max     int  `json:"max"`     // classes
	Confirm int  `json:"confirm"` // samples with a new label before it is a class
	Bytes   int  `json:"bytes"`   // the longest label
}

// queriesView are the queries for labels since the start.
type queriesView struct {
	Asked      uint64      `json:"asked"`
	Answered   uint64      `json:"answered"`
	Unanswered uint64      `json:"unanswered"` // whose sample was dropped
	Open       []queryView `json:"open"`       // oldest first
}

// queryView is a query for the label of a sample.
type queryView struct {
	sampleView
	Reason  active.Strategy `json:"reason"`
	Expires time.Time       `json:"expires"`
}

// sampleView is one of the last samples.
type sampleView struct {
	Time       time.Time          `json:"ts"`
	Seq        uint64             `json:"seq"`
	ID         string             `json:"id"`
	Device     string             `json:"device,omitempty"`
	Class      string             `json:"class"`
	Confidence float64            `json:"confidence"`
	Probs      map[string]float64 `json:"probs"`
	Novelty    float64            `json:"novelty"`
	Set        []string           `json:"set"` // null without prediction sets
	Abstain    bool               `json:"abstain"`
	Label      string             `json:"label,omitempty"`
	Learned    bool               `json:"learned"`           // with its label
	Waits      bool               `json:"waits"`             // without a label, and can be labelled
	Values     []valueView        `json:"values,omitempty"`  // of the first few that wait; 12 values at most
	Signals    *courseView        `json:"signals,omitempty"` // of the newest and the first few that wait, in a stream with windows
}

// valueView is a feature of a sample with its usual range: the mean and two standard
// deviations on either side, of the model's scaling. Null: the feature is missing, or
// the range is not known yet.
type valueView struct {
	Feature string     `json:"feature"`
	Value   score.Real `json:"value"`
	Low     score.Real `json:"low"`
	High    score.Real `json:"high"`
}
