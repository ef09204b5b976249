// Package predict answers the rows of a file by a model of a state file. It serves `edge predict`.
package predict

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"edge/internal/config"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/statefile"
	"edge/internal/terminal"
	"edge/model"
	"edge/online"
	"edge/online/conformal"
)

// Answer is a model's prediction for one row of a file.
type Answer struct {
	Row        int                `json:"row"`
	ID         string             `json:"id,omitempty"` // of a sample of a raw file
	Device     string             `json:"device,omitempty"`
	Label      string             `json:"label,omitempty"` // in the file
	Class      *string            `json:"class"`           // of the largest probability; null while no class is known
	Confidence float64            `json:"confidence"`
	Probs      map[string]float64 `json:"probs"`
	Entropy    float64            `json:"entropy"` // nats
	Novelty    float64            `json:"novelty"`
	Set        []string           `json:"set,omitzero"` // most probable first; may be empty, nil without prediction sets
	Abstain    bool               `json:"abstain"`
}

// Options are those of edge predict.
type Options struct {
	State, Model, Config string // the state file; its model, "" if it has one; the configuration, "" for none
	Data                 dataset.Options
}

// Run predicts the rows of a file, or of in if path is -, and writes a JSON object
// for each. It leaves out rows without any feature, and prints their number.
func (o *Options) Run(path string, in io.Reader, out, errOut io.Writer) error {
	if err := o.Data.Check(); err != nil {
		return exit.With(exit.Usage, err)
	}
	learner, err := o.learner()
	if err != nil {
		return err
	}
	o.Data.Unlabeled = true
	answered := bufio.NewWriter(out)
	format := o.Data.Of(learner.Config().Features)
	format.Idle = func() { answered.Flush() } // an error occurs again at the end
	d, err := dataset.OpenInput(path, in, format)
	if err != nil {
		return err
	}
	defer d.Close()
	o.Data.Warn(errOut, path, d.Warning())
	leftOut, err := answers(answered, learner, d)
	if err == nil && leftOut == 0 {
		if none := d.NoRows(); none != nil {
			fmt.Fprintln(errOut, none)
		}
	}
	if leftOut > 0 {
		fmt.Fprintf(errOut, "%s: left out: %s without any feature\n", d.Name, terminal.Count(leftOut, "row"))
	}
	return err
}

// learner returns the model as the state file holds it, its journal included.
func (o *Options) learner() (*online.Learner, error) {
	var cfg *config.Config
	if o.Config != "" {
		var err error
		if cfg, err = config.Load(o.Config); err != nil {
			return nil, err
		}
	}
	store, err := statefile.Open(o.State)
	if err != nil {
		return nil, exit.With(exit.Store, err)
	}
	defer store.Close()
	names, err := store.Models()
	if err != nil {
		return nil, exit.With(exit.Store, err)
	}
	name := o.Model
	switch {
	case len(names) == 0:
		return nil, exit.With(exit.Store, fmt.Errorf("predict: %s holds no model; edge inspect shows what a state file has", o.State))
	case name == "" && len(names) == 1:
		name = names[0]
	case !slices.Contains(names, name):
		return nil, exit.With(exit.Usage, fmt.Errorf("predict: --model NAME: %s has %s", o.State, strings.Join(names, ", ")))
	}
	if cfg != nil {
		if cfg.Models[name].Streams == nil {
			return nil, exit.With(exit.Config, fmt.Errorf("predict: %s has no model %s, which %s holds", o.Config, name, o.State))
		}
		if err := o.Data.Configure(cfg, name); err != nil {
			return nil, exit.With(exit.Usage, err)
		}
	}
	learner, kept, learnt, err := statefile.Restore(store, name, cfg)
	if err == nil && !learnt && len(kept.Records) > 0 {
		err = fmt.Errorf("predict %s: the journal holds %d records after the checkpoint; -c FILE learns them first", name, len(kept.Records))
	}
	return learner, exit.With(exit.Store, err)
}

// answers writes a line for each row that has a feature, and counts the others.
func answers(out *bufio.Writer, learner *online.Learner, rows *dataset.File) (leftOut int, err error) {
	lines := json.NewEncoder(terminal.Writer{To: out})
	lines.SetEscapeHTML(false)
	post, uncertainty := learner.Posterior(), learner.Uncertainty()
	ws := model.NewWorkspace()
	var row dataset.Row
	var probs []float64
	for {
		err := rows.Next(&row)
		if errors.Is(err, io.EOF) {
			return leftOut, out.Flush()
		}
		if err != nil {
			return leftOut, errors.Join(err, out.Flush())
		}
		if row.Empty() {
			leftOut++
			continue
		}
		var novelty float64
		if probs, novelty, err = post.PredictTo(probs, row.X, ws); err != nil {
			return leftOut, errors.Join(fmt.Errorf("row %d: %w", row.Number, err), out.Flush())
		}
		a := newAnswer(&row, post.Classes(), probs, novelty, uncertainty)
		from := rows.Origin()
		a.ID, a.Device = from.ID, from.Device
		if err := lines.Encode(a); err != nil {
			return leftOut, err
		}
	}
}

func newAnswer(row *dataset.Row, classes []string, probs []float64, novelty float64, uncertainty conformal.Uncertainty) *Answer {
	a := &Answer{
		Row: row.Number, Label: row.Label, Probs: map[string]float64{}, Entropy: model.Entropy(probs), Novelty: novelty,
		Abstain: uncertainty.Meta(probs, novelty).Abstained,
	}
	for k, v := range probs {
		a.Probs[classes[k]] = v
		if a.Class == nil || v > a.Confidence {
			a.Class, a.Confidence = &classes[k], v
		}
	}
	if uncertainty.Coverage > 0 {
		a.Set = []string{}
		for _, k := range uncertainty.AppendSet(nil, probs, row.X) {
			a.Set = append(a.Set, classes[k])
		}
	}
	return a
}
