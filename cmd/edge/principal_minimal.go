//go:build minimal || noplots

package main

import "errors"

// inComponents is left out of the binaries for devices, with its eigenvalues.
func inComponents(int, *Part, *Part) (_, _ *Part, err error) {
	return nil, nil, coded(exitUsage, errors.New("--components: not in this build: use a binary built without -tags minimal and noplots"))
}
