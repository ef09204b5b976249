//go:build minimal

package main

import (
	"errors"

	"edge/cmd/edge/internal/dataset"
)

// sampleFor is left out of the binary for devices, with all that reads data files.
func sampleFor([]string, dataset.Format) ([]byte, error) {
	return nil, coded(exitUsage, errors.New("--from: not in this build: use a binary built without -tags minimal, on any machine"))
}
