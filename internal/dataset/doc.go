// Package dataset reads labelled samples.
//
// A File is read row after row in bounded memory, as a stream is learnt and
// replayed; a Table is held in memory, for several passes and for splits; a
// Waveform simulates the sensors of the demo. File and Waveform are Rows; a Part
// of a Table is the samples of offline training.
//
//	file.go        File: the rows of a CSV file, whose cells package csvtext reads
//	number.go      numbers, and the faults of texts that are none; remedy.go has the advice
//	longformat.go  files with one value a line
//	format.go      Format: the meaning of the columns; options.go has it from flags,
//	               configured.go from a configuration
//	raw.go         Raw: files of signals, whose samples a stage makes; rawfile.go
//	               reads them, rawline.go their lines, rawrow.go gives their rows,
//	               detect.go finds out whether a file is one
//	selection.go   Selection: first rows, shuffle; ReadAll
//	warning.go     what a user should check; rising.go finds features that rise with
//	               every row, telling.go those that are the label in other words,
//	               filler.go values such as -999, alike.go labels spelt alike
//	summary.go     Summary: rows, classes and gaps of a file, in one pass
//	table.go       Table, Part; idx.go and gaps.go belong to it: images,
//	               missing values
//	waveform.go    Waveform
package dataset
