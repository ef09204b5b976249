//go:build minimal || noplots

package main

import "errors"

// drawCurves is left out of the binaries for devices: the plotting library and
// its fonts are a third of the full one.
func drawCurves(_, _, _, _ string, _ []scoreCurve) error {
	return errors.New("this build draws no plots: use --json, or a binary built without -tags minimal and noplots")
}
