package report

import (
	"fmt"
	"io"

	"edge/internal/terminal"
	"edge/online/score"
)

// Training is the result of offline training: the object of train --json.
type Training struct {
	Dataset     string          `json:"dataset"`
	Mode        string          `json:"mode"`
	Samples     int             `json:"samples"`
	Classes     []string        `json:"classes"`
	Passes      float64         `json:"passes"`
	LogEvidence float64         `json:"log_evidence"` // nats a sample, leave-one-out cavities
	Error       *float64        `json:"error"`        // of the held-out samples; null without such samples
	NLL         *float64        `json:"nll"`
	Brier       *float64        `json:"brier"`
	ECE         *float64        `json:"ece"`
	MacroF1     *float64        `json:"macro_f1"`
	CPUSeconds  float64         `json:"cpu_seconds"` // of training; judging is not in it
	Rate        float64         `json:"samples_per_second"`
	PeakRSS     uint64          `json:"peak_rss_bytes"`
	StateBytes  int             `json:"state_bytes"`
	Digest      string          `json:"digest"`
	Curve       []TrainingPoint `json:"curve"`
	Online      []TrainingPoint `json:"online,omitempty"` // one pass online, for comparison
}

// TrainingPoint holds the scores after a number of passes.
type TrainingPoint struct {
	Passes      float64    `json:"passes"`
	CPUSeconds  float64    `json:"cpu_seconds"`
	LogEvidence float64    `json:"log_evidence"`
	Error       score.Real `json:"error"` // of the held-out samples; NaN without such samples
	NLL         score.Real `json:"nll"`
}

// Print writes the result of a training as text.
func (t *Training) Print(out io.Writer) error {
	for _, p := range t.Online {
		fmt.Fprintf(out, "online, pass %.2f  %.1f s  held out: error %.4f  nll %.4f\n", p.Passes, p.CPUSeconds, p.Error, p.NLL)
	}
	_, err := fmt.Fprintf(out, "%s: %s, %.1f passes in %.1f CPU seconds; state of %s, digest %s\n",
		t.Dataset, terminal.Count(t.Samples, "sample"), t.Passes, t.CPUSeconds, terminal.Bytes(uint64(t.StateBytes)), t.Digest[:12])
	return err
}
