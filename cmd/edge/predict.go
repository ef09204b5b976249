package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"edge/internal/dataset"
	"edge/model"
	"edge/online"
)

// Answer is what a model says of one row of a file.
type Answer struct {
	Row        int                `json:"row"`
	Label      string             `json:"label,omitempty"` // what the file says
	Class      *string            `json:"class"`           // of the largest probability; null while no class is known
	Confidence float64            `json:"confidence"`
	Probs      map[string]float64 `json:"probs"`
	Entropy    float64            `json:"entropy"` // nats
	Novelty    float64            `json:"novelty"`
	Set        []string           `json:"set,omitempty"` // the most probable first
	Abstain    bool               `json:"abstain"`
}

// prediction is one run of the predict command.
type prediction struct {
	state, model, config string
	data                 dataset.Options
}

func newPredictCommand() *cobra.Command {
	var p prediction
	cmd := &cobra.Command{
		Use:   "predict --state DB FILE",
		Short: "Class probabilities for the rows of a file, as JSON lines",
		Long: `predict answers each row of a CSV file, or of the standard input as -, by what a
model has learnt; it learns nothing. The header names the columns: those that
are the model's features are taken, in any order, and an empty cell is averaged
over. No label is needed; --label names a column that is printed with the answer.

The daemon must not have the state file open: make a copy by edge backup. After
a crash the journal has records beyond the checkpoint; with -c they are learnt
first, in memory, as the daemon would.`,
		Example: `  edge predict --state edge.db readings.csv
  edge backup /var/lib/edge/edge.db copy.db && edge predict --state copy.db --model bearing - <rows.csv
  edge predict --state edge.db rows.csv --label state | jq -r 'select(.class != .label)'`,
		Args: cobra.ExactArgs(1),
		RunE: action(func(cmd *cobra.Command, args []string) error {
			if p.state == "" {
				return coded(exitUsage, errors.New("predict: --state names the state file"))
			}
			return p.run(args[0], cmd.InOrStdin(), cmd.OutOrStdout())
		}),
	}
	f := cmd.Flags()
	f.StringVar(&p.state, "state", "", "state `FILE`")
	f.StringVar(&p.model, "model", "", "`NAME` of the model, where the state file has several")
	addDataFlags(cmd, &p.data, "`NAME` of a column to print as label")
	f.StringVarP(&p.config, "config", "c", "", "configuration `FILE` under which to learn what the journal holds")
	return cmd
}

// run answers the rows of a file, or of in if path is -.
func (p *prediction) run(path string, in io.Reader, out io.Writer) error {
	if err := p.data.Check(); err != nil {
		return coded(exitUsage, err)
	}
	learner, err := p.learner()
	if err != nil {
		return err
	}
	p.data.Unlabeled = true
	d, err := dataset.OpenOr(path, in, p.data.Of(learner.Config().Features))
	if err != nil {
		return err
	}
	defer d.Close()
	return answers(out, learner, d)
}

// learner has learnt what the state file holds of the model.
func (p *prediction) learner() (*online.Learner, error) {
	var cfg *Config
	if p.config != "" {
		var err error
		if cfg, err = LoadConfig(p.config); err != nil {
			return nil, err
		}
	}
	store, err := openState(p.state)
	if err != nil {
		return nil, coded(exitStore, err)
	}
	defer store.Close()
	names, err := store.Models()
	if err != nil {
		return nil, coded(exitStore, err)
	}
	name := p.model
	switch {
	case name == "" && len(names) == 1:
		name = names[0]
	case !slices.Contains(names, name):
		return nil, coded(exitUsage, fmt.Errorf("predict: --model NAME: %s has %s", p.state, strings.Join(names, ", ")))
	}
	learner, kept, learnt, err := recall(store, name, cfg)
	if err == nil && !learnt && len(kept.Records) > 0 {
		err = fmt.Errorf("predict %s: the journal holds %d records that are not in the checkpoint; -c FILE learns them first", name, len(kept.Records))
	}
	return learner, coded(exitStore, err)
}

// answers writes a line for each row.
func answers(w io.Writer, learner *online.Learner, rows dataset.Rows) error {
	out := bufio.NewWriter(w)
	lines := json.NewEncoder(textWriter{out})
	lines.SetEscapeHTML(false)
	post, doubt := learner.Posterior(), learner.Doubt()
	ws := model.NewWorkspace()
	var row dataset.Row
	var probs []float64
	for {
		err := rows.Next(&row)
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		var novelty float64
		if probs, novelty, err = post.PredictTo(probs, row.X, ws); err != nil {
			return errors.Join(fmt.Errorf("row %d: %w", row.Number, err), out.Flush())
		}
		if err := lines.Encode(newAnswer(&row, post.Classes(), probs, novelty, doubt)); err != nil {
			return err
		}
	}
}

func newAnswer(row *dataset.Row, classes []string, probs []float64, novelty float64, doubt online.Doubt) *Answer {
	a := &Answer{
		Row: row.Number, Label: row.Label, Probs: map[string]float64{}, Novelty: novelty,
		Abstain: doubt.Say(probs, novelty).Abstained,
	}
	for k, v := range probs {
		a.Probs[classes[k]] = v
		if a.Class == nil || v > a.Confidence {
			a.Class, a.Confidence = &classes[k], v
		}
		if v > 0 {
			a.Entropy -= v * math.Log(v)
		}
	}
	if doubt.Coverage > 0 {
		for _, k := range doubt.AppendSet(nil, probs, row.X) {
			a.Set = append(a.Set, classes[k])
		}
	}
	return a
}
