// Package report describes how well a model classified a data file or a stream,
// and prints it as a table or as JSON; package htmlreport draws it.
//
//	Report     scores, curves and sizes of one data set: the object of --json
//	Charts     confusion matrix and reliability bins, for the page alone
//	Mean       the mean of several reports, with standard errors
//	Curve      collects error and log loss over a stream in bounded memory
//	Tenths     collects the scores of each tenth of a stream
//	Asked      the labels that active learning requested
//	Published  the latency of a daemon's predictions, for edge replay
//	Training   the result of edge train
//
// running.go: EventView, ModelSummary and CoursePoint describe a running model, for the daemon's
// page, its API and edge top.
//
// Read report.go, then curve.go and mean.go. table.go prints.
package report
