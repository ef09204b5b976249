package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"edge/online"
	"edge/persist"
)

// VerifyReport is what a check of a state file found.
type VerifyReport struct {
	File      string          `json:"file"`
	FileBytes int64           `json:"file_bytes"`
	InUse     bool            `json:"in_use"` // a copy of one moment was checked
	Readable  bool            `json:"readable_by_others"`
	Sound     bool            `json:"sound"`
	Problems  []string        `json:"problems"`
	Models    []VerifiedModel `json:"models"`
}

// VerifiedModel is what the file holds of one model, and what a repair would lose.
type VerifiedModel struct {
	Model        string             `json:"model"`
	Checkpoints  []GenerationReport `json:"checkpoints"` // newest first
	JournalFirst uint64             `json:"journal_first"`
	JournalLast  uint64             `json:"journal_last"`
	Pending      uint64             `json:"pending"`
	SamplesLost  uint64             `json:"samples_lost"`
	PendingLost  uint64             `json:"pending_lost"`
	Notes        []string           `json:"notes"` // what is wrong with it, in words
}

func newVerifyCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify DB",
		Short: "Check a state file for damage",
		Long: `verify reads all of a state file: every page and checksum, both checkpoints, the
journal, the samples that wait for labels and the ledger that says what must be
there; then bbolt's own check. It changes nothing, and says what is damaged and
how many samples a repair would lose. The daemon may be running: then a copy of
what it has just written is checked, in the folder for temporary files.

A damaged file ends it with exit code 5. ` + "`edge run`" + ` repairs such a file: it carries
over what is valid and keeps the damaged file beside it.`,
		Example: `  edge verify /var/lib/edge/edge.db
  edge verify edge.db --json`,
		Args: cobra.ExactArgs(1),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			v, err := persist.Verify(args[0], decodeState)
			if err != nil {
				return coded(exitStore, err)
			}
			report := newVerifyReport(args[0], v)
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), report)
			} else {
				report.print(textWriter{cmd.OutOrStdout()})
			}
			if err == nil && !report.Sound {
				err = coded(exitStore, fmt.Errorf("verify: %s is damaged; edge run carries over what is valid and keeps the damaged file beside it", args[0]))
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// decodeState reports whether a learner can carry on from a state.
func decodeState(_, shape string, state []byte) error {
	cfg, err := configOfShape(shape)
	if err != nil {
		return err
	}
	_, err = online.Restore(cfg, state)
	return err
}

func newVerifyReport(path string, v *persist.Outcome) *VerifyReport {
	r := &VerifyReport{
		File: path, FileBytes: v.Bytes, InUse: v.InUse, Readable: v.Others,
		Sound: len(v.Problems) == 0, Problems: append([]string{}, v.Problems...), Models: []VerifiedModel{},
	}
	for _, m := range v.Models {
		r.Models = append(r.Models, VerifiedModel{
			Model: m.Model, Checkpoints: generationReports(m.Checkpoints), JournalFirst: m.First, JournalLast: m.Last,
			Pending: m.Pending, SamplesLost: m.Loss.Samples, PendingLost: m.Loss.Pending, Notes: append([]string{}, m.Loss.Notes...),
		})
	}
	return r
}

func (r *VerifyReport) print(w io.Writer) {
	state := "sound"
	if !r.Sound {
		state = "damaged"
	}
	if r.InUse {
		state += "; a daemon has it open, so a copy was checked"
	}
	fmt.Fprintf(w, "%s: %s, %s\n", r.File, byteSize(uint64(r.FileBytes)), state)
	for _, p := range r.Problems {
		fmt.Fprintf(w, "  %s\n", p)
	}
	if r.Readable {
		fmt.Fprintln(w, "  others may read it: edge run takes that right away, chmod 600 does too")
	}
	for _, m := range r.Models {
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
		fmt.Fprintf(w, "model %s: %s, %s, %d samples wait for a label\n", m.Model, checkpoints, journal, m.Pending)
		if !r.Sound {
			fmt.Fprintf(w, "  lost: %d samples, %d that wait for a label\n", m.SamplesLost, m.PendingLost)
		}
		for _, n := range m.Notes {
			fmt.Fprintf(w, "  %s\n", n)
		}
	}
}
