//go:build minimal

package main

import "io"

// progress is left out of the binary for devices: nothing is drawn.
type progress struct{}

func newProgress(io.Writer, int, string) progress { return progress{} }

func (progress) Add(int)         {}
func (progress) Describe(string) {}
func (progress) Close()          {}
