// Package signal turns rows of signals into samples: held values of several inputs,
// derived signals, windows and their features. A row holds the values of a device at one
// moment; a sample is D numbers with an id.
//
//	values → hold → derive → window → sample
//
// Every step is optional. Config describes them, a Stage does them for one stream. It
// keeps its memory per device and bounded, allocates nothing once its devices are known,
// and depends on the rows, their times, their arrival and the calls of Clock alone: the same
// rows give the same samples.
//
//	config.go   Config and its checks
//	span.go     a length in rows, in time, or of one message
//	stage.go    Stage: rows in, samples out
//	device.go   the rows and values of one device
//	time.go     gaps, late rows, clocks that jump
//	hold.go     last values of several inputs
//	window.go   windows by count, by time and by message
//	label.go    the label of a window
//	course.go   the course of the signals over a window, for people
//	progress.go how far the next window of each device is
//	save.go     windows in progress over an orderly stop
//
// Package feature has the features of a window, package formula the derived signals.
package signal
