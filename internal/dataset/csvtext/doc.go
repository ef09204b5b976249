// Package csvtext reads the cells of a CSV file whatever its dialect, and knows files of other formats.
//
//	reader.go   Reader: the cells, one line after the other
//	text.go     encoding, compression, ends of lines, runs of spaces
//	live.go     Live: a pipe, whose lines come one by one
//	dialect.go  separator, comments, header
//	cell.go     numbers and missing values
//	foreign.go  files that are no table of cells, with the commands that make one
//	named.go    lines in which each value has its name before it
//	times.go    times that are not those of ISO 8601, with the commands that make them so
package csvtext
