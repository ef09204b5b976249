//go:build slow

package stream

import "testing"

func TestTenThousandHostileConnections(t *testing.T) { testHostileBroker(t, 10000) }
