//go:build minimal

package main

import (
	"errors"
	"log/slog"
)

// Broker is left out of the binary for devices.
type Broker struct{}

// StartBroker refuses.
func StartBroker(string, *slog.Logger) (*Broker, error) {
	return nil, errors.New("demo: this build has no broker of its own: use `edge run` and `edge replay` with one that is installed, or a binary built without -tags minimal")
}

// URL is nowhere.
func (*Broker) URL() string { return "" }

// Close does nothing.
func (*Broker) Close() error { return nil }
