// Package formula computes derived signals, such as log10(1 + power) or diff(co2), and
// calendar features, such as the sine of the hour, from rows of signals.
//
// Compile turns the text of the formulas into a Program, which does not change; a Memory
// has the earlier values that the formulas of one device need. Append computes the values
// of one row and allocates nothing. Values are float64; NaN is a missing value.
//
//	grammar.go     the grammar, from text to syntax tree
//	compile.go     Compile: names, limits and errors with line and column
//	expression.go  syntax trees as closures
//	function.go    the functions, those without memory
//	remember.go    the functions with memory: lag, diff, rate, ewma, since, age
//	program.go     Program, Row and Append
//	memory.go      Memory and its encoding
//	calendar.go    hour, weekday, yearday
//
// docs/reference/formulas.md defines the language.
package formula
