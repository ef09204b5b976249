package stream

import (
	"edge/online"
	"edge/online/active"
	"edge/online/conformal"
	"time"
)

// modelState is what the pipeline keeps about one model.
type modelState struct {
	ModelConfig
	streams []*source
	classes *classes
	rejects limits // of the reject topic, by reason: a flood of one kind hides no other

	latest newestPrediction             // that latestTopic does not have yet; any goroutine may use it
	aim    conformal.CoverageController // of the published sets; any goroutine may use it

	topicNames
	workerState
	committerState
	*modelCounts
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
	seq      uint64            // of the last prediction
	unlearnt uint64            // samples with their labels that the newest posterior has not learnt, as far as is known
	version  uint64            // of that posterior
	repeated uint64            // of redelivered, as unlearnt knows it
	frozen   bool              // labels will teach nothing, as far as is known
	cbor     *cborEncoder      // of predictions; nil: JSON
	asker    *active.Selector  // nil: nothing is asked
	answers  map[string]string // topics of predictions, by device
}

// committerState is the state of a model that only the committer's goroutine uses.
type committerState struct {
	waiting *waiting
	last    newest // sample
	settled newest // sample of those that were settled; last differs by the group that is being gathered
	place   uint64 // labels that were taught, as far as is known
	late    online.Lag
	delays  median
	open    int       // observations in the minibatch that is filling, as far as is known
	since   time.Time // when the oldest of them was committed; zero after a Boundary

	mark uint64          // what the journal remembers
	owed []online.Record // committed, and not handed to the model
}

// off reports whether a request has switched learning off, which comes in its
// turn among the labels: those before it are learnt, also where they come again
// after it. The committer's.
func (m *modelState) off() bool { return m.mark&markFrozen != 0 }
