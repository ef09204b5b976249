// Package eval scores a model on data files without a broker, and trains one offline.
//
//	Evaluation  the options of edge eval; Each evaluates a file
//	Run         the loop: every row is predicted, judged and learnt by a Policy
//	Training    the options of edge train; Run trains on a file
//	Windows     the options of edge windows; Print writes the samples of a file of
//	            signals, Scores learns windows of several lengths
//
// Four policies decide when a label is learnt, and which prediction is judged:
//
//	prequential  each label right after its row; the learner's own prediction
//	heldOut      each label right after its row; predictions of other rows, afterwards
//	delayed      labels come rows later or never; the prediction at the row's arrival
//	active       only the labels that a strategy requests; the prediction of every row
//
// Under the prequential policy the scores and the digest equal those of a daemon
// that received the same rows with the same configuration.
//
// Read loop.go and prequential.go, then evaluation.go.
package eval
