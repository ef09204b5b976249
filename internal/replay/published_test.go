package replay

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"edge/online/score"
	"edge/stream"
)

// The published scores are those of the first prediction of each row, whatever else is
// published.
func TestPublishedScores(t *testing.T) {
	s := publishedScores{Total: 20}
	var want score.Judge
	rng := rand.New(rand.NewPCG(1, 2))
	classes := []string{"ok", "worn"}
	for row := 1; row <= 20; row++ {
		k := rng.IntN(2)
		s.expect(row, classes[k])
		if row == 7 {
			continue // without a prediction
		}
		p := 0.5 + 0.5*rng.Float64()
		set := []string{"worn"}
		payload := &stream.PredictionPayload{Probs: map[string]float64{"ok": 1 - p, "worn": p}, Set: &set, Caveats: stream.Caveats{Abstain: row%5 == 0}, Latency: 1500}
		s.predicted(modelKey{"a", "m"}, row, payload)
		s.predicted(modelKey{"a", "m"}, row, payload)   // repeated
		s.predicted(modelKey{"a", "m"}, row+5, payload) // of an unsent row
		want.AddPublished([]float64{1 - p, p}, k, score.Decision{Ruled: true, Abstained: row%5 == 0, Sets: true, Size: 1, Holds: k == 1})
	}
	s.asked(modelKey{"a", "m"})
	s.drifted(modelKey{"a", "m"}, "log_loss rose")
	s.asked(modelKey{"b", "silent"})
	reports := s.reports("rows")
	if len(reports) != 1 {
		t.Fatalf("%d reports, want one", len(reports))
	}
	r, scores := reports[0], want.Scores(classes)
	if r.Samples != 19 || r.Error != scores.Error || math.Abs(r.NLL-scores.NLL) > 1e-12 || r.ECE != scores.ECE || r.Sets.Covered != scores.Sets.Covered || r.Abstained.Kept != scores.Abstained.Kept || r.Last.N != 19 {
		t.Errorf("%+v, want %+v", r, scores.Figures)
	}
	if p := r.Published; p.Node != "a" || p.Model != "m" || p.Rows != 20 || p.Unanswered != 1 || p.Queries != 1 || math.Abs(p.Latency.P99-0.0015) > 3e-5 || p.RoundTrip.Mean <= 0 {
		t.Errorf("published: %+v", r.Published)
	}
	if len(r.Tenths) != 9 || len(r.Drifts) != 1 || r.Drifts[0].N != 19 || len(r.Curve) == 0 {
		t.Errorf("%d tenths, drifts %v, %d points", len(r.Tenths), r.Drifts, len(r.Curve))
	}
}

// Whatever is published for the rows of a file, the report can be written.
func FuzzPublished(f *testing.F) {
	f.Add([]byte(`{"model":"m","id":"r-1","class":"ok","probs":{"ok":0.75,"worn":0.25},"set":["ok"],"latency_us":1500}`), []byte(`{}`))
	f.Add([]byte(`{"probs":{"ok":-1,"worn":1e308}}`), []byte(`{"probs":{"ok":7},"set":[],"latency_us":-9223372036854775808}`))
	f.Add([]byte{0xa1, 0x65, 'p', 'r', 'o', 'b', 's', 0xa1, 0x62, 'o', 'k', 0xfb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0}, []byte{0xa1, 0x65, 'p', 'r', 'o', 'b', 's', 0xa0})
	f.Fuzz(func(t *testing.T, one, two []byte) {
		s := publishedScores{Total: 4}
		for row := 1; row <= 4; row++ {
			s.expect(row, []string{"ok", "worn"}[row%2])
			p, err := stream.ReadPrediction([][]byte{one, two}[row%2])
			if err == nil {
				s.predicted(modelKey{"a", "m"}, row, p)
			}
		}
		for _, r := range s.reports("rows") {
			if _, err := json.Marshal(r); err != nil {
				t.Errorf("the report of %q and %q has no JSON: %v", one, two, err)
			}
		}
	})
}
