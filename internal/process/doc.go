// Package process reads what the operating system and the Go linker know about
// the running program: processor time, memory, whether a file can be written, and
// the version that it was built from. Where a system has no such figure it returns 0.
package process
