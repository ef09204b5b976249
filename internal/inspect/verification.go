package inspect

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"edge/internal/terminal"
	"edge/online"
	"edge/persist"
)

// Verification is the result of the check of a state file.
type Verification struct {
	File      string          `json:"file"`
	FileBytes int64           `json:"file_bytes"`
	InUse     bool            `json:"in_use"` // a consistent copy was checked
	Readable  bool            `json:"readable_by_others"`
	Sound     bool            `json:"sound"`
	Problems  []string        `json:"problems"`
	Models    []VerifiedModel `json:"models"`
}

// VerifiedModel describes the state of one model and the loss of a repair.
type VerifiedModel struct {
	Model        string             `json:"model"`
	Checkpoints  []GenerationReport `json:"checkpoints"` // newest first
	JournalFirst uint64             `json:"journal_first"`
	JournalLast  uint64             `json:"journal_last"`
	Pending      uint64             `json:"pending"`
	StateLost    bool               `json:"state_lost"` // no checkpoint is left
	SamplesLost  uint64             `json:"samples_lost"`
	PendingLost  uint64             `json:"pending_lost"`
	MoreLost     bool               `json:"more_lost"`     // the newest transactions may be lost, and with them samples that are not counted
	Refused      bool               `json:"state_refused"` // no learner can continue from the newest checkpoint, whose bytes are those that were written
	Notes        []string           `json:"notes"`         // descriptions of the damage
}

// DecodeState returns an error if a learner cannot continue from a state.
func DecodeState(_, shape string, state []byte) error {
	cfg, err := online.ConfigOfShape(shape)
	if err != nil {
		return err
	}
	_, err = online.Restore(cfg, state)
	return err
}

// NewVerification describes the outcome of persist's check of the file at path.
func NewVerification(path string, v *persist.Outcome) *Verification {
	r := &Verification{
		File: path, FileBytes: v.Bytes, InUse: v.InUse, Readable: v.Others,
		Sound: len(v.Problems) == 0, Problems: append([]string{}, v.Problems...), Models: []VerifiedModel{},
	}
	for _, m := range v.Models {
		r.Models = append(r.Models, VerifiedModel{
			Model: m.Model, Checkpoints: generationReports(m.Checkpoints), JournalFirst: m.First, JournalLast: m.Last,
			Pending: m.Pending, StateLost: m.Loss.State, SamplesLost: m.Loss.Samples, PendingLost: m.Loss.Pending, MoreLost: m.Loss.More, Refused: m.Refused, Notes: append([]string{}, m.Loss.Notes...),
		})
	}
	return r
}

// Remedy returns the next step for a damaged file.
func (v *Verification) Remedy() string {
	const restore = "with the daemon stopped, edge restore puts a backup in its place"
	var refused []string
	for _, m := range v.Models {
		if m.Refused {
			refused = append(refused, "--model "+m.Model)
		}
	}
	switch {
	case len(refused) > 0:
		return "edge run does not start from it: " + restore + "; edge reset with " + strings.Join(refused, ", then with ") + " gives up what cannot be read"
	case len(v.Models) == 0:
		return "nothing in it can be used: " + restore + ", or edge run begins anew and keeps the damaged file beside it"
	case slices.ContainsFunc(v.Models, func(m VerifiedModel) bool { return m.StateLost || m.SamplesLost > 0 || m.MoreLost }):
		return "edge run carries over what is valid and keeps the damaged file beside it; if that is less than what a backup has: " + restore
	}
	return "edge run carries over what is valid and keeps the damaged file beside it"
}

// Print writes the verification as text.
func (v *Verification) Print(w io.Writer) {
	state := "sound"
	if !v.Sound {
		state = "damaged"
	}
	if v.InUse {
		state += "; a daemon has it open, so a copy was checked"
	}
	fmt.Fprintf(w, "%s: %s, %s\n", v.File, terminal.Bytes(uint64(v.FileBytes)), state)
	for _, p := range v.Problems {
		fmt.Fprintf(w, "  %s\n", p)
	}
	if v.Readable {
		fmt.Fprintln(w, "  others may read it: edge run takes that right away, chmod 600 does too")
	}
	for _, m := range v.Models {
		at := []string{}
		for _, c := range m.Checkpoints {
			at = append(at, fmt.Sprint(c.Seq))
		}
		checkpoints := "no checkpoint"
		if len(at) > 0 {
			checkpoints = "checkpoints at " + strings.Join(at, " and ")
		}
		journal := "an empty journal"
		if m.JournalFirst <= m.JournalLast {
			journal = fmt.Sprintf("journal %d to %d", m.JournalFirst, m.JournalLast)
		}
		fmt.Fprintf(w, "model %s: %s, %s, %s waiting for a label or a correction\n", m.Model, checkpoints, journal, terminal.Count(m.Pending, "sample"))
		if !v.Sound {
			learnt := ""
			if m.StateLost {
				learnt = "the learnt state, "
			}
			if m.MoreLost {
				learnt += "at least "
			}
			fmt.Fprintf(w, "  lost: %s%s, %d that wait for a label or a correction\n", learnt, terminal.Count(m.SamplesLost, "sample"), m.PendingLost)
		}
		for _, n := range m.Notes {
			fmt.Fprintf(w, "  %s\n", n)
		}
	}
}
