// Package top shows a node at a terminal, from the messages that it publishes.
//
// board collects messages into the state of a node, panel lays that state out as
// lines of text, screen is the interactive program. Viewer runs it, or prints plain
// text or JSON where the output is not a terminal.
package top
