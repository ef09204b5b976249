package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"edge/internal/broker/brokertest"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/predict"
	"edge/model"
	"edge/online"
	"edge/persist"
	"edge/test/files"
	"edge/test/harness"
)

// learntState writes a state file of one model that has learnt rows of the
// waveform.
func learntState(t *testing.T, name string, rows int) (path string, learner *online.Learner) {
	t.Helper()
	w := dataset.NewWaveform(5)
	cfg := online.DefaultConfig()
	cfg.Features, cfg.Classes.Names = w.Features(), w.Classes()
	learner, err := online.NewLearner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var row dataset.Row
	for range rows {
		w.Next(&row)
		learner.Add(&online.Event{Kind: online.Observe, X: row.X, Label: row.Label})
	}
	state, err := learner.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "edge.db")
	if err := writeState(path, name, cfg.Shape(), state); err != nil {
		t.Fatal(err)
	}
	return path, learner
}

func answersOf(t *testing.T, out string) (list []predict.Answer) {
	t.Helper()
	for line := range strings.Lines(out) {
		var a predict.Answer
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, a)
	}
	return list
}

// The rows of a file are predicted as by the posterior, for any order of the
// columns, with other columns, and with or without labels.
func TestPredict(t *testing.T) {
	state, learner := learntState(t, "wave", brokertest.Brief(400, 150))
	data := harness.WaveformFile(t, 50)
	text, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	var turned strings.Builder // a column of text first, the features backwards, no label
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), ",")
		turned.WriteString("somewhere")
		for i := len(cells) - 2; i >= 0; i-- {
			turned.WriteString("," + cells[i])
		}
		turned.WriteString("\n")
	}
	code, out, errOut := edge(t, "predict", "--state", state, data, "--label", "label")
	if code != exit.OK {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	labelled := answersOf(t, out)
	code, out, errOut = edge(t, "predict", "--state", state, files.Write(t, "turned.csv", turned.String()))
	if code != exit.OK {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	bare := answersOf(t, out)
	if len(labelled) != 50 || len(bare) != 50 {
		t.Fatalf("%d and %d answers to 50 rows", len(labelled), len(bare))
	}
	d, err := dataset.Open(data, dataset.Format{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var row dataset.Row
	for i := range labelled {
		if err := d.Next(&row); err != nil {
			t.Fatal(err)
		}
		want, novelty, err := learner.Posterior().PredictTo(nil, row.X, model.NewWorkspace())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range []predict.Answer{labelled[i], bare[i]} {
			for k, class := range learner.Posterior().Classes() {
				if a.Probs[class] != want[k] {
					t.Errorf("row %d, class %s: %v, want %v", a.Row, class, a.Probs[class], want[k])
				}
			}
			if a.Novelty != novelty || a.Class == nil || a.Probs[*a.Class] != a.Confidence {
				t.Errorf("row %d: %+v, want novelty %v", a.Row, a, novelty)
			}
		}
		if labelled[i].Label != row.Label || bare[i].Label != "" {
			t.Errorf("row %d: labels %q and %q, want %q and none", i+1, labelled[i].Label, bare[i].Label, row.Label)
		}
	}
}

// Missing features are marginalised, and the answer lists them.
func TestPredictEmptyCells(t *testing.T) {
	state, _ := learntState(t, "wave", brokertest.Brief(400, 150))
	w := dataset.NewWaveform(6)
	var row dataset.Row
	w.Next(&row)
	cells := make([]string, len(row.X))
	for i, v := range row.X {
		cells[i] = strconv.FormatFloat(v, 'g', -1, 64)
	}
	head := strings.Join(w.Features(), ",") + "\n"
	full := head + strings.Join(cells, ",") + "\n"
	for i := range 8 {
		cells[i] = ""
	}
	in := full + strings.Join(cells, ",") + "\n"
	var out, errOut bytes.Buffer
	if code := execute(t.Context(), []string{"predict", "--state", state, "-"}, strings.NewReader(in), &out, &errOut); code != exit.OK {
		t.Fatalf("exit %d: %s", code, errOut.String())
	}
	a := answersOf(t, out.String())
	if len(a) != 2 || !(a[1].Novelty > a[0].Novelty) {
		t.Fatalf("novelty does not grow with the missing features: %+v", a)
	}
	sum := 0.0
	for _, p := range a[1].Probs {
		sum += p
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("probabilities sum to %v", sum)
	}
}

// A row without any feature has no answer: it is counted, and the rows after it are
// answered under their numbers.
func TestPredictLeavesOutEmptyRows(t *testing.T) {
	state, _ := learntState(t, "wave", 100)
	features := dataset.NewWaveform(1).Features()
	full, empty := strings.Repeat("1,", len(features)), strings.Repeat(",", len(features))
	file := files.Write(t, "gaps.csv", strings.Join(features, ",")+",state\n"+full+"a\n"+empty+"b\n"+empty+"\n"+full+"a\n")
	code, out, errOut := edge(t, "predict", "--state", state, file, "--label", "state")
	if a := answersOf(t, out); code != exit.OK || len(a) != 2 || a[0].Row != 1 || a[1].Row != 4 || a[1].Label != "a" {
		t.Errorf("exit %d: %s%s", code, errOut, out)
	}
	if want := "gaps: left out: 2 rows without any feature\n"; errOut != want {
		t.Errorf("it says %q, want %q", errOut, want)
	}
}

// A file without a row has no answers, and a line says so.
func TestPredictSaysThatNoRowCame(t *testing.T) {
	state, _ := learntState(t, "wave", 40)
	header := strings.Join(dataset.NewWaveform(1).Features(), ",") + "\n"
	for file, want := range map[string]string{files.Write(t, "none.csv", header): "none.csv: a header and no rows\n", "-": "standard input: a header and no rows\n"} {
		code, out, errOut := edgeWith(t, header, "predict", "--state", state, file)
		if code != exit.OK || out != "" || !strings.HasSuffix(errOut, want) {
			t.Errorf("%s: exit %d: %q, %q; want %q", file, code, out, errOut, want)
		}
	}
}

func TestPredictRefuses(t *testing.T) {
	state, _ := learntState(t, "wave", 100)
	good, nobody := harness.WaveformFile(t, 3), filepath.Join(t.TempDir(), "nobody.db")
	if err := writeState(nobody, "", "", nil); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no state":        {[]string{good}, exit.Usage, "--state names the state file"},
		"no such state":   {[]string{"--state", "nowhere.db", good}, exit.Store, "nowhere.db"},
		"no such model":   {[]string{"--state", state, "--model", "pump", good}, exit.Usage, "wave"},
		"no such column":  {[]string{"--state", state, good, "--label", "state"}, exit.Runtime, "label"},
		"lacks a feature": {[]string{"--state", state, files.Write(t, "few.csv", "x1,x2\n1,2\n")}, exit.Runtime, "no columns of the file"},
		"a feature twice": {[]string{"--state", state, files.Write(t, "twice.csv", strings.Join(dataset.NewWaveform(1).Features(), ",")+",x1\n"+strings.Repeat("1,", 21)+"1\n")}, exit.Runtime, `two columns are called "x1"`},
		"another -c":      {[]string{"--state", state, good, "-c", shakenConfig(t, "length: 2")}, exit.Config, "edge.yaml has no model wave, which " + state + " holds"},
		"state of nobody": {[]string{"--state", nobody, good}, exit.Store, "predict: " + nobody + " holds no model"},
		"not a number":    {[]string{"--state", state, files.Write(t, "text.csv", strings.Join(dataset.NewWaveform(1).Features(), ",")+"\nsoon"+strings.Repeat(",1", 20)+"\n")}, exit.Runtime, `"soon" is not a number` + "\n"},
	} {
		code, _, errOut := edge(t, append([]string{"predict"}, tc.args...)...)
		if code != tc.code || !strings.Contains(errOut, tc.want) {
			t.Errorf("%s: exit %d, %q; want %d and %q", name, code, errOut, tc.code, tc.want)
		}
	}
}

// A copy can be used to predict and to restore; a file in use cannot.
func TestBackupCommand(t *testing.T) {
	state, _ := learntState(t, "wave", 100)
	copied := filepath.Join(t.TempDir(), "copy.db")
	if code, out, errOut := edge(t, "backup", state, copied); code != exit.OK || !strings.Contains(out, "sound") {
		t.Fatalf("exit %d: %s%s", code, out, errOut)
	}
	if code, _, errOut := edge(t, "backup", state, copied); code != exit.Store || !strings.Contains(errOut, "exists") {
		t.Errorf("backup over a file: exit %d: %s", code, errOut)
	}
	if code, _, errOut := edge(t, "predict", "--state", copied, harness.WaveformFile(t, 3)); code != exit.OK {
		t.Errorf("predict from the copy: exit %d: %s", code, errOut)
	}
	if code, out, errOut := edge(t, "restore", copied, state); code != exit.OK || !strings.Contains(out, ".replaced-1") {
		t.Errorf("restore: exit %d: %s%s", code, out, errOut)
	}
}

// writeState adds the state of a model to a state file, or none for model "".
func writeState(path, model, shape string, state []byte) (err error) {
	store, err := persist.Open(path, persist.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if model == "" {
		return nil
	}
	if _, err := store.Load(model, shape); err != nil {
		return err
	}
	return store.Checkpoint(model, 0, state)
}
