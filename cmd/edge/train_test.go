package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/config"
	"edge/internal/dataset"
	"edge/internal/exit"
	"edge/internal/report"
	"edge/online"
	"edge/persist"
	"edge/test/files"
	"edge/test/harness"
)

func trainJSON(t testing.TB, args ...string) report.Training {
	t.Helper()
	return harness.Objects[report.Training](t, edge, append([]string{"train", "--json"}, args...)...)[0]
}

// A daemon of the same configuration restores the state that train writes, and
// continues to learn from it.
func TestTrainIsCarriedOn(t *testing.T) {
	for _, kernel := range []string{"shared", "per-class"} {
		t.Run(kernel, func(t *testing.T) {
			table := harness.TableFile(t, "table.csv", 300)
			file := harness.TableConfig(t, table, ", kernel: "+kernel)
			db := filepath.Join(t.TempDir(), "edge.db")
			r := trainJSON(t, table, "-c", file, "-o", db, "--passes", "4", "--batch", "50", "--holdout", "0.2")
			if r.Samples != 240 || r.Passes != 4 || len(r.Curve) != 4 || r.Error == nil || *r.Error > 0.5 || *r.NLL != float64(r.Curve[3].NLL) {
				t.Errorf("%+v", r)
			}
			cfg, err := config.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			learnerConfig, err := cfg.Learner("m")
			if err != nil {
				t.Fatal(err)
			}
			store, err := persist.Open(db, persist.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			kept, err := store.Load("m", learnerConfig.Shape())
			if err != nil {
				t.Fatal(err)
			}
			l, err := online.Restore(learnerConfig, kept.State)
			if err != nil {
				t.Fatal(err)
			}
			if l.Digest() != r.Digest || len(kept.State) != r.StateBytes || kept.Seq != 0 || len(kept.Records) != 0 {
				t.Errorf("digest %s of %d bytes at %d, want %s of %d", l.Digest(), len(kept.State), kept.Seq, r.Digest, r.StateBytes)
			}
			data, err := dataset.LoadTable(table, dataset.Format{})
			if err != nil {
				t.Fatal(err)
			}
			part := data.Samples(data.All())
			ev := online.Event{Kind: online.Observe, X: make([]float64, len(data.Features))}
			for i := range part.Len() {
				part.Row(i, ev.X)
				ev.Label = data.Classes[part.Class(i)]
				if out := l.Add(&ev); out.Refused != nil {
					t.Fatal(out.Refused)
				}
			}
			if s := l.Scores(); s.N != 300 || s.Error > 0.4 {
				t.Errorf("going on: error %.3f of %d", s.Error, s.N)
			}
			info, err := os.Stat(db)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		})
	}
}

// An output that cannot be written is refused before the first pass, which would print a
// line.
func TestTrainDoesNotOverwrite(t *testing.T) {
	table := harness.TableFile(t, "table.csv", 60)
	config := harness.TableConfig(t, table, "")
	db := filepath.Join(t.TempDir(), "edge.db")
	args := []string{"train", table, "-c", config, "-o", db, "--passes", "1"}
	if code, _, errOut := edge(t, args...); code != exit.OK {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	used := filepath.Join(t.TempDir(), "used.db")
	store, err := persist.Open(used, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	other := filepath.Join(t.TempDir(), "other.db")
	remember(t, other, "m", online.DefaultConfig().Shape())
	for name, tc := range map[string]struct{ output, want string }{
		"a state of the model": {db, "already holds a state of model m; write to another file, or delete it first: edge reset --state " + db + " --model m"},
		"in use":               {used, "locked"},
		"another shape":        {other, "the state was learnt with"},
		"no folder":            {filepath.Join(t.TempDir(), "none", "edge.db"), "no such file or directory; make the folder, or choose another path"},
		"another file":         {files.Write(t, "notes.txt", strings.Repeat("no state at all\n", 1000)), "not a state file"},
	} {
		args[5] = tc.output
		if code, out, errOut := edge(t, args...); code != exit.Store || out != "" || !strings.Contains(errOut, tc.want) {
			t.Errorf("%s: exit %d, want %q: %s%s", name, code, tc.want, errOut, out)
		}
	}
}

// writerFunc is called at each write.
type writerFunc func()

func (f writerFunc) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// An interrupted training prints how to resume it, and resumes to the same result.
func TestTrainResumes(t *testing.T) {
	table := harness.TableFile(t, "table.csv", 200)
	config := harness.TableConfig(t, table, "")
	whole := trainJSON(t, table, "-c", config, "-o", filepath.Join(t.TempDir(), "a.db"), "--passes", "3", "--batch", "30")

	db := filepath.Join(t.TempDir(), "b.db")
	args := []string{"train", table, "-c", config, "-o", db, "--passes", "3", "--batch", "30"}
	ctx, cancel := context.WithCancel(t.Context())
	var errOut bytes.Buffer // the line of the first pass interrupts it: one step more is learnt, saved, and no more
	if code := execute(ctx, args, strings.NewReader(""), writerFunc(cancel), &errOut); code != exit.Runtime || !strings.Contains(errOut.String(), "--resume") {
		t.Fatalf("exit %d: %s", code, errOut.String())
	}
	if code, _, errOut := edge(t, append(args, "--resume", "--rate", "0.5")...); code != exit.Runtime || !strings.Contains(errOut, "other data, configuration or options") {
		t.Errorf("resumed under another rate: exit %d: %s", code, errOut)
	}
	if r := trainJSON(t, append(args[1:], "--resume")...); r.Digest != whole.Digest {
		t.Errorf("resumed: digest %s, uninterrupted %s", r.Digest, whole.Digest)
	}
	if _, err := os.Stat(db + ".training"); !os.IsNotExist(err) {
		t.Errorf("the unfinished training is still there: %v", err)
	}
}

func TestTrainRefuses(t *testing.T) {
	table := harness.TableFile(t, "table.csv", 60)
	config := harness.TableConfig(t, table, "")
	db := filepath.Join(t.TempDir(), "x.db")
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"output without config":    {[]string{"-o", db}, exit.Usage, "give -c FILE"},
		"another shape":            {[]string{"-c", config, "-o", db, "--inducing", "20"}, exit.Usage, "change them there"},
		"sign rule, minibatches":   {[]string{"--optimizer", "sign"}, exit.Usage, "full batches"},
		"no pass":                  {[]string{"--passes", "0"}, exit.Usage, "edge: --passes: 0: want 1 to"},
		"no such scaling":          {[]string{"--scale", "x", "--rate", "2"}, exit.Usage, "edge: --rate: 2: want 0 to 1\n--scale: x: want feature, plain or common\n"},
		"all held out":             {[]string{"--holdout", "0.999"}, exit.Runtime, "leaves nothing"},
		"no fraction held out":     {[]string{"--holdout", "NaN"}, exit.Usage, "--holdout: want a fraction"},
		"no label noise":           {[]string{"--label-noise", "NaN"}, exit.Usage, "label_noise"},
		"resume of nothing":        {[]string{"-c", config, "-o", db, "--resume"}, exit.Runtime, "begins anew"},
		"holdout and test":         {[]string{"--holdout", "0.1", "--test", table}, exit.Usage, "give one of them"},
		"model without a config":   {[]string{"--model", "m"}, exit.Usage, "give -c FILE"},
		"more inducing than there": {[]string{"--inducing", "5000"}, exit.Usage, "inducing"},
	} {
		code, _, errOut := edge(t, append([]string{"train", table}, c.args...)...)
		if code != c.code || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: exit %d, %q; want %d, %q", name, code, errOut, c.code, c.want)
		}
	}
}

// Without held-out samples the points of the curve have no scores, as the result has none.
func TestTrainWithoutHeldOut(t *testing.T) {
	_, out, errOut := edge(t, "train", harness.TableFile(t, "table.csv", 60), "--passes", "2", "--inducing", "10", "--json")
	if strings.Count(out, `"error":null,"nll":null`) != 3 {
		t.Errorf("it prints %s%s", out, errOut)
	}
}

// The same seed gives the same training, another seed another one.
func TestTrainSeed(t *testing.T) {
	path := harness.TableFile(t, "table.csv", 200)
	digest := func(more ...string) string {
		return trainJSON(t, append([]string{path, "--inducing", "10", "--passes", "1"}, more...)...).Digest
	}
	if plain, one, two := digest(), digest("--seed", "1"), digest("--seed", "2"); plain != one || one == two {
		t.Errorf("digests %s, with --seed 1 %s, with --seed 2 %s", plain, one, two)
	}
}

func TestIdxRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(images, labels []byte) ([]byte, []byte)
		want  string
	}{
		"truncated":       {func(i, l []byte) ([]byte, []byte) { return i[:len(i)-1], l }, "unexpected EOF"},
		"no header":       {func(i, l []byte) ([]byte, []byte) { return i[:7], l }, "idx header"},
		"labels first":    {func(i, l []byte) ([]byte, []byte) { return l, i }, "bytes in 3 dimensions"},
		"too many images": {func(i, l []byte) ([]byte, []byte) { i[4] = 0xff; return i, l }, "out of range"},
		"fewer labels":    {func(i, l []byte) ([]byte, []byte) { l[7]--; return i, l }, "labels"},
	} {
		path := harness.IdxFiles(t, 20, false)
		labelPath := strings.Replace(path, "images-idx3", "labels-idx1", 1)
		images, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		labels, err := os.ReadFile(labelPath)
		if err != nil {
			t.Fatal(err)
		}
		images, labels = c.spoil(images, labels)
		os.WriteFile(path, images, 0o600)
		os.WriteFile(labelPath, labels, 0o600)
		if _, err := dataset.LoadTable(path, dataset.Format{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A weighting of classes that the training does not know is told.
func TestTrainTellsOfWeights(t *testing.T) {
	table := harness.TableFile(t, "table.csv", 60)
	for mode, told := range map[string]bool{"none": false, "balanced": true} {
		file := harness.TableConfig(t, table, ", class_weights: {mode: "+mode+"}")
		code, _, errOut := edge(t, "train", table, "-c", file, "--passes", "1")
		if code != exit.OK || strings.Contains(errOut, "class_weights is balanced, and training in many passes counts each row once") != told {
			t.Errorf("%s: exit %d: %s", mode, code, errOut)
		}
	}
}

// Files of too few rows, or of one label, are refused by name, with the commands that learn from them.
func TestTrainWantsRows(t *testing.T) {
	one := files.Write(t, "one.csv", "a,b,label\n"+strings.Repeat("1,2,only\n3,4,only\n", 10))
	few := files.Write(t, "few.csv", "a,b,label\n1,2,x\n3,4,y\n5,6,x\n")
	for _, c := range []struct{ args, want string }{
		{"train " + one, "one: only is the label of all rows"},
		{"train " + few, "few: 3 rows to learn"},
		{"eval split --passes 2 " + one, "one: only is the label of all rows"},
		{"eval split --passes 2 --folds 3 " + few, "few: 2 rows to learn"},
	} {
		if code, _, errOut := edge(t, strings.Fields(c.args)...); code != exit.Runtime || !strings.Contains(errOut, c.want) || !strings.Contains(errOut, "edge run") {
			t.Errorf("edge %s exits with %d: %s", c.args, code, errOut)
		}
	}
}
