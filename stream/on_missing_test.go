package stream

import (
	"testing"
	"time"

	"edge/stream/codec"
)

// Samples with missing features are answered, learnt and counted as the stream's
// configuration requires.
func TestOnMissing(t *testing.T) {
	for policy, want := range map[string][]string{
		codec.OnMissingReject:      {"ok 1"},
		codec.OnMissingImpute:      {"worn NaN", "ok 1", "worn 0"}, // before the first sample there is no mean; the fake model's is 0
		codec.OnMissingMarginalise: {"worn NaN", "ok 1", "worn NaN"},
	} {
		in(policy, t, func(t *testing.T) {
			cfg, m := testConfig()
			s := cfg.Streams["vibration"]
			s.OnMissing = policy
			cfg.Streams["vibration"] = s
			r := newRig(t, newFakeJournal(), cfg, m)
			for _, p := range []string{`{"features":[null,2],"label":"worn"}`, labelled(1), `{"features":[null,2],"label":"worn"}`, `{"features":[null,null],"label":"worn"}`} {
				r.send(p7, p)
				time.Sleep(time.Second)
			}
			equal(t, "learnt", r.models["bearing"].learnt(), want)
			refused := r.node.Stats()
			if n := refused.Learned + refused.Rejected[codec.MissingFeature] + refused.Rejected[codec.NotANumber]; n != 4 {
				t.Errorf("%d learnt, refused %v, want 4 together", refused.Learned, refused.Rejected)
			}
			if n := refused.Models["bearing"].Missing; policy != codec.OnMissingReject && n != 2 {
				t.Errorf("%d features counted as missing, want 2", n)
			}
		})
	}
}
