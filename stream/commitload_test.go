package stream

import (
	"math"
	"testing"
	"time"
)

// The commits of a day, against a calculation by hand.
func TestCommitLoad(t *testing.T) {
	for name, tc := range map[string]struct {
		rate       float64
		lossWindow time.Duration
		want       CommitLoad
	}{
		"silence":              {0, 0, CommitLoad{1, 0}},
		"one by one":           {1, 0, CommitLoad{1, 86400}},
		"groups of two":        {20, 0, CommitLoad{2, 864000}},
		"full groups":          {1000, 0, CommitLoad{16, 5400000}},
		"relaxed":              {20, 5 * time.Second, CommitLoad{101, 86400 * 20.0 / 101}},
		"relaxed, many labels": {1e6, time.Minute, CommitLoad{maxGroupRecords, 86400e6 / maxGroupRecords}},
	} {
		cfg := DefaultConfig()
		cfg.LossWindow, cfg.MQTT.InflightWindow = tc.lossWindow, 16
		got := cfg.CommitLoad(tc.rate)
		if got.Group != tc.want.Group || math.Abs(got.PerDay-tc.want.PerDay) > 1e-9*tc.want.PerDay {
			t.Errorf("%s: CommitLoad(%v) = %+v, want %+v", name, tc.rate, got, tc.want)
		}
	}
}
