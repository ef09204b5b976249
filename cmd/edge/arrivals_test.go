package main

import "testing"

// With labels that come at once, all of them, and nothing missing, a stream of
// arrivals is what eval is anyway; whatever is late, rare or missing costs.
func TestArrivals(t *testing.T) {
	data := waveformFile(t, 1500)
	plain := evalJSON(t, data)[0]
	for _, c := range []struct {
		name string
		args []string
		rows uint64 // judged; 0: fewer than all
	}{
		{"late", []string{"--delay", "300"}, 1500},
		{"rare", []string{"--label-fraction", "0.1"}, 1500},
		{"imputed", []string{"--missing", "0.3", "--on-missing", "impute"}, 1500},
		{"marginalised", []string{"--missing", "0.3", "--on-missing", "marginalise"}, 1500},
		{"rejected", []string{"--missing", "0.05"}, 0},
	} {
		r := evalJSON(t, append([]string{data}, c.args...)...)[0]
		if r.Error <= plain.Error || r.Error > 0.6 {
			t.Errorf("%s: error %.3f, nll %.3f; without it %.3f and %.3f", c.name, r.Error, r.NLL, plain.Error, plain.NLL)
		}
		if c.rows > 0 && r.Samples != c.rows || c.rows == 0 && r.Samples >= 1500 {
			t.Errorf("%s: %d rows judged", c.name, r.Samples)
		}
		if again := evalJSON(t, append([]string{data}, c.args...)...)[0]; again.Digest != r.Digest || again.Error != r.Error {
			t.Errorf("%s: a second run differs", c.name)
		}
	}
	for _, args := range [][]string{{"--delay", "-1"}, {"--label-fraction", "2"}, {"--missing", "1"}, {"--on-missing", "guess"}, {"--delay", "5", "--mode", "cv"}} {
		if code, _, _ := edge(t, append([]string{"eval", data}, args...)...); code != exitUsage {
			t.Errorf("eval %v exits with %d", args, code)
		}
	}
}
