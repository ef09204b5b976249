//go:build slow

package stream

import "testing"

func TestBasisSimulationOfManySeeds(t *testing.T) { simulateBasis(t, 12) }
