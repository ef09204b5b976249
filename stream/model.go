package stream

import (
	"sync/atomic"
	"time"

	"edge/online"
	"edge/online/active"
)

// modelState is the state of one model in the pipeline. The fields of each goroutine
// share no cache line with fields that another one writes.
type modelState struct {
	ModelConfig
	streams []*source
	classes *classes
	rejects rateLimits // of the reject topic, one for each reason
	*modelCounts
	topicNames

	workerState
	latest latestPrediction     // not yet published on latestTopic; any goroutine may use it
	frozen atomic.Pointer[bool] // labels are expected to be ignored; the worker sets it for each request, the committer replaces it. Nil: no
	asking atomic.Int32         // queries of samples between worker and committer

	committerState
}

// topicNames are the topics of one model.
type topicNames struct {
	predictionTopic, latestTopic, metricsTopic, rejectTopic, labelTopic, queryTopic string
}

func newTopicNames(prefix string) topicNames {
	return topicNames{
		predictionTopic: prefix + "/prediction", latestTopic: prefix + "/latest", metricsTopic: prefix + "/metrics",
		rejectTopic: prefix + "/reject", labelTopic: prefix + "/label", queryTopic: prefix + "/query",
	}
}

// workerState is the state of a model that only the worker's goroutine uses.
type workerState struct {
	seq         uint64              // sequence of the last prediction
	inFlight    uint64              // estimated number of labelled samples that the newest posterior does not know
	labels      uint64              // that it knows
	repetitions uint64              // value of redelivered in the estimate
	cbor        *cborEncoder        // encoder of predictions; nil: JSON
	asker       *active.Selector    // nil: no labels are requested
	answers     map[string]string   // topics of predictions, by device
	foreign     map[string]*limiter // of the event foreign_class, by class
}

// committerState is the state of a model that only the committer's goroutine uses.
type committerState struct {
	pendingStore  *pendingStore
	last          lastSample // newest sample
	committedLast lastSample // newest sample of the last committed group
	labelCount    uint64     // estimated number of learnt labels
	late          online.Lag
	delays        median
	open          int       // estimated number of observations in the open minibatch
	since         time.Time // commit of the oldest of them; zero after a Boundary

	mark uint64          // bits in the journal
	owed []online.Record // committed, but not handed to the model
}

// expectOff sets whether labels are expected to be ignored.
func (m *modelState) expectOff(off bool) {
	m.frozen.Store(&off)
	m.learning.Store(!off)
}

// expectedOff reports whether labels are expected to be ignored. Any goroutine may call it.
func (m *modelState) expectedOff() bool {
	off := m.frozen.Load()
	return off != nil && *off
}

// learningOff reports whether a request has switched learning off, or the model follows a
// fleet. The request has its position among the labels: earlier labels are learnt, also if
// they come again later. Only the committer calls it.
func (m *modelState) learningOff() bool { return m.mark&markFrozen != 0 || m.Fleet.Follows() }
