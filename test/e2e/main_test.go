// Package e2e tests edge end to end: daemons that learn from brokers, their commands
// and pages, restarts, service managers and terminals.
package e2e

import (
	"testing"

	"edge/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
