package config

import (
	"maps"
	"strings"
	"testing"
)

func TestPack(t *testing.T) {
	for _, s := range []Settings{{}, {"": ""}, {"node": "a", "labels[0].map": "x\x00y", "long": strings.Repeat("é", 300)}} {
		if got := s.Pack().Unpack(); !maps.Equal(got, s) {
			t.Errorf("%q after packing: %q", s, got)
		}
	}
}
