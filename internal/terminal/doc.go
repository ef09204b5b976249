// Package terminal writes to a terminal, a log or a pipe: text that cannot
// control the terminal, logs, JSON, progress and short forms of numbers.
//
//	text.go      Writer, Escaped, Plain: control characters as escapes
//	log.go       NewLogger; AdjustableHandler, whose level can be changed
//	journal.go   priorities of lines in systemd's journal
//	stall.go     the writer of a log that may block
//	json.go      PrintJSON, PrintJSONLines
//	table.go     Table: aligned columns, or lines in a narrow terminal
//	progress.go  Progress: one line that is rewritten
//	format.go    Duration, Bytes, Sparkline
package terminal
