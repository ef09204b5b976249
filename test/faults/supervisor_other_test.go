//go:build !linux || !(amd64 || arm64 || arm)

package faults

import "errors"

const beSupervised = "EDGE_TEST_SUPERVISED"

func superviseMe(string) error { return errors.New("system calls are supervised on Linux alone") }
