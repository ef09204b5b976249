//go:build minimal

package main

import (
	"context"
	"errors"
	"io"
)

// showScreen is left out of the binary for devices.
func showScreen(context.Context, *watch, string, io.Reader, io.Writer) error {
	return coded(exitUsage, errors.New("this build has no terminal view: use --once or --json, pipe the output, or run a binary built without -tags minimal; from any machine"))
}
