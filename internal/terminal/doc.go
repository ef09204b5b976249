// Package terminal writes for people: text whose control characters cannot act on
// a terminal (Writer, Escaped, Plain), progress lines, logs, sizes, durations and
// sparklines.
//
// Everything that prints a name from a file, a broker or a message writes it
// through Writer. Begin with text.go.
package terminal
