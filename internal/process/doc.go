// Package process reads facts about the running process from the operating
// system and from the build: processor time, memory, version, and whether a path
// can be written. A system without a figure gives 0.
package process
