package stream

import (
	"math"
	"testing"
	"time"

	"edge/online"
)

// The commits of a day, against a calculation by hand.
func TestCommitLoad(t *testing.T) {
	quarter, long := online.Batch{MaxSize: 16, MaxWait: 250 * time.Millisecond}, online.Batch{MaxSize: 16, MaxWait: 10 * time.Second}
	for name, tc := range map[string]struct {
		rate       float64
		lossWindow time.Duration
		batches    []online.Batch
		want       CommitLoad
	}{
		"silence":              {0, 0, []online.Batch{quarter}, CommitLoad{1, 0}},
		"closed by time":       {1, 0, []online.Batch{quarter}, CommitLoad{1, 86400 + 86400/1.25}},
		"shared close":         {1, 0, []online.Batch{quarter, quarter}, CommitLoad{1, 86400 + 86400/1.25}},
		"two closes":           {1, 0, []online.Batch{quarter, long}, CommitLoad{1, 86400 + 86400/1.25 + 86400.0/11}},
		"groups of two":        {20, 0, []online.Batch{quarter}, CommitLoad{2, 864000 + 86400/0.3}},
		"full minibatches":     {1000, 0, []online.Batch{quarter}, CommitLoad{16, 5400000}},
		"relaxed":              {20, 5 * time.Second, []online.Batch{quarter}, CommitLoad{101, 86400 * 20.0 / 101}},
		"relaxed, many labels": {1e6, time.Minute, nil, CommitLoad{MaxGroup, 86400e6 / MaxGroup}},
	} {
		cfg := DefaultConfig()
		cfg.LossWindow, cfg.MQTT.InflightWindow = tc.lossWindow, 16
		got := cfg.CommitLoad(tc.rate, tc.batches)
		if got.Group != tc.want.Group || math.Abs(got.PerDay-tc.want.PerDay) > 1e-9*tc.want.PerDay {
			t.Errorf("%s: CommitLoad(%v) = %+v, want %+v", name, tc.rate, got, tc.want)
		}
	}
}
