package train

import (
	"encoding/hex"
	"math"
	"testing"

	"edge/online"
)

// The fingerprint of a configuration and a set stays the same, so that a training
// that an earlier program began can be resumed. The digest is that of the first one.
func TestFingerprintStays(t *testing.T) {
	set := &cloud{d: 2}
	for i := range 24 {
		set.x = append(set.x, float64(i%7), float64(i%5)-2)
		set.y = append(set.y, i%3)
	}
	cfg := online.DefaultConfig()
	cfg.Features, cfg.Inducing = []string{"a", "b c"}, 5
	cfg.Classes.Names = []string{"x"}
	cfg.Horizons = []online.Horizon{online.Horizon(math.Inf(1)), 2.5e6}
	how := Default()
	how.Prior = 0.5
	tr, err := New(cfg, how, []string{"x", "y", "z"}, set)
	if err != nil {
		t.Fatal(err)
	}
	const want = "9fc6e8785a643eafe22670dfbd5a2f5fa4d01d9c61f4b77c201f6eff039d6a29"
	if got := hex.EncodeToString(tr.fingerprint()); got != want {
		t.Errorf("fingerprint %s, want %s", got, want)
	}
}
