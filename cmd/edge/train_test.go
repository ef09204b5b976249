package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"edge/internal/dataset"
	"edge/online"
	"edge/persist"
)

func trainJSON(t testing.TB, args ...string) (r TrainReport) {
	t.Helper()
	code, out, errOut := edge(t, append([]string{"train", "--json"}, args...)...)
	if code != exitOK {
		t.Fatalf("edge train %s exits with %d: %s", strings.Join(args, " "), code, errOut)
	}
	dec := json.NewDecoder(strings.NewReader(out))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	return r
}

// trainingConfig is a configuration whose one model takes the columns of tableFile.
func trainingConfig(t testing.TB, table, more string) string {
	t.Helper()
	d, err := dataset.Open(table, dataset.Format{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	return writeFile(t, "edge.yaml", fmt.Sprintf(`
streams: {s: {topics: [t], features: [%s]}}
models: {m: {streams: [s], inducing: 10, window: 20%s}}
`, strings.Join(d.Features, ", "), more))
}

// What train writes is what a daemon of the same configuration restores, and
// goes on learning from.
func TestTrainIsCarriedOn(t *testing.T) {
	for _, kernel := range []string{"shared", "per-class"} {
		t.Run(kernel, func(t *testing.T) {
			table := tableFile(t, "table.csv", 300)
			config := trainingConfig(t, table, ", kernel: "+kernel)
			db := filepath.Join(t.TempDir(), "edge.db")
			r := trainJSON(t, table, "-c", config, "-o", db, "--passes", "4", "--batch", "50", "--holdout", "0.2")
			if r.Samples != 240 || r.Passes != 4 || len(r.Curve) != 4 || r.Error == nil || *r.Error > 0.5 || *r.NLL != r.Curve[3].NLL {
				t.Errorf("%+v", r)
			}
			cfg, err := LoadConfig(config)
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

func TestTrainDoesNotOverwrite(t *testing.T) {
	table := tableFile(t, "table.csv", 60)
	config := trainingConfig(t, table, "")
	db := filepath.Join(t.TempDir(), "edge.db")
	args := []string{"train", table, "-c", config, "-o", db, "--passes", "1"}
	if code, _, errOut := edge(t, args...); code != exitOK {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	if code, _, errOut := edge(t, args...); code != exitStore || !strings.Contains(errOut, "already holds") {
		t.Errorf("exit %d: %s", code, errOut)
	}
}

// An interrupted training says how to go on, and goes on to the same result.
func TestTrainResumes(t *testing.T) {
	table := tableFile(t, "table.csv", 200)
	config := trainingConfig(t, table, "")
	whole := trainJSON(t, table, "-c", config, "-o", filepath.Join(t.TempDir(), "a.db"), "--passes", "3", "--batch", "30")

	db := filepath.Join(t.TempDir(), "b.db")
	args := []string{"train", table, "-c", config, "-o", db, "--passes", "3", "--batch", "30"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // before the first step: one step is learnt, saved, and no more
	var out, errOut bytes.Buffer
	if code := execute(ctx, args, strings.NewReader(""), &out, &errOut); code != exitRuntime || !strings.Contains(errOut.String(), "--resume") {
		t.Fatalf("exit %d: %s", code, errOut.String())
	}
	if code, _, errOut := edge(t, append(args, "--resume", "--rate", "0.5")...); code != exitRuntime || !strings.Contains(errOut, "other data, configuration or options") {
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
	table := tableFile(t, "table.csv", 60)
	config := trainingConfig(t, table, "")
	db := filepath.Join(t.TempDir(), "x.db")
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"output without config":    {[]string{"-o", db}, exitUsage, "give -c FILE"},
		"another shape":            {[]string{"-c", config, "-o", db, "--inducing", "20"}, exitUsage, "change them there"},
		"sign rule, minibatches":   {[]string{"--optimizer", "sign"}, exitRuntime, "full batches"},
		"all held out":             {[]string{"--holdout", "0.999"}, exitRuntime, "leaves nothing"},
		"resume of nothing":        {[]string{"-c", config, "-o", db, "--resume"}, exitRuntime, "begins anew"},
		"plot of nothing":          {[]string{"--plot", db}, exitUsage, "give --holdout"},
		"components for a daemon":  {[]string{"-c", config, "-o", db, "--components", "2"}, exitUsage, "no principal components"},
		"holdout and test":         {[]string{"--holdout", "0.1", "--test", table}, exitUsage, "give one of them"},
		"model without a config":   {[]string{"--model", "m"}, exitUsage, "give -c FILE"},
		"more inducing than there": {[]string{"--inducing", "5000"}, exitRuntime, "inducing"},
	} {
		code, _, errOut := edge(t, append([]string{"train", table}, c.args...)...)
		if code != c.code || !strings.Contains(errOut, c.says) {
			t.Errorf("%s: exit %d, %q; want %d, %q", name, code, errOut, c.code, c.says)
		}
	}
}

// idxFiles writes images of 2×2 pixels, the brightest of which is the label.
func idxFiles(t testing.TB, n int, zip bool) string {
	t.Helper()
	dir := t.TempDir()
	var images, labels bytes.Buffer
	binary.Write(&images, binary.BigEndian, []uint32{dataset.IdxImages, uint32(n), 2, 2})
	binary.Write(&labels, binary.BigEndian, []uint32{dataset.IdxLabels, uint32(n)})
	for i := range n {
		for p := range 4 {
			v := byte((i*37 + p*11) % 60)
			if p == i%4 {
				v += 150
			}
			images.WriteByte(v)
		}
		labels.WriteByte(byte(i % 4))
	}
	for name, b := range map[string]*bytes.Buffer{"t-images-idx3-ubyte": &images, "t-labels-idx1-ubyte": &labels} {
		data := b.Bytes()
		if zip {
			data = gzipped(t, data)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "t-images-idx3-ubyte")
}

func TestTrainImages(t *testing.T) {
	for _, zip := range []bool{false, true} {
		path := idxFiles(t, 200, zip)
		for _, more := range [][]string{nil, {"--components", "3"}} {
			r := trainJSON(t, append([]string{path, "--test", path, "--inducing", "12", "--kernel", "per-class", "--scale", "common",
				"--start", "classes", "--batch", "50", "--passes", "5", "--rate", "0.02"}, more...)...)
			if r.Dataset != "t" || r.Samples != 200 || !slices.Equal(r.Classes, []string{"0", "1", "2", "3"}) || *r.Error > 0.02 {
				t.Errorf("%v: %s, %d samples of %v, error %g", more, r.Dataset, r.Samples, r.Classes, *r.Error)
			}
		}
	}
}

// Moved images are learnt as well, but not in the online pass beside.
func TestTrainShifted(t *testing.T) {
	path := idxFiles(t, 200, false)
	r := trainJSON(t, path, "--test", path, "--shifted", "--online", "--inducing", "12", "--passes", "1", "--components", "3")
	if r.Samples != 1000 || len(r.Online) != onlineParts {
		t.Errorf("%d samples, %d points online", r.Samples, len(r.Online))
	}
	if last := r.Online[onlineParts-1]; last.Error > 0.02 {
		t.Errorf("the online pass ends with an error of %g: it has learnt moved images", last.Error)
	}
	if code, _, errOut := edge(t, "train", tableFile(t, "table.csv", 60), "--shifted"); code != exitUsage || !strings.Contains(errOut, "--shifted") {
		t.Errorf("--shifted without images exits with %d: %s", code, errOut)
	}
}

// Other seeds are other trainings, the same seed is the same.
func TestTrainSeed(t *testing.T) {
	path := tableFile(t, "table.csv", 200)
	digest := func(more ...string) string {
		return trainJSON(t, append([]string{path, "--inducing", "10", "--passes", "1"}, more...)...).Digest
	}
	if plain, one, two := digest(), digest("--seed", "1"), digest("--seed", "2"); plain != one || one == two {
		t.Errorf("digests %s, with --seed 1 %s, with --seed 2 %s", plain, one, two)
	}
}

func TestTrainOnlineBeside(t *testing.T) {
	path := tableFile(t, "table.csv", 600)
	svg := filepath.Join(t.TempDir(), "train.svg")
	code, out, errOut := edge(t, "train", path, "--holdout", "0.25", "--passes", "2", "--inducing", "10", "--online", "--json", "--plot", svg)
	if code != exitOK {
		t.Fatalf("exits with %d: %s", code, errOut)
	}
	var r TrainReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Online) != onlineParts || r.Online[onlineParts-1].Passes != 1 {
		t.Fatalf("the online pass has %d points: %+v", len(r.Online), r.Online)
	}
	first, last := r.Online[0], r.Online[onlineParts-1]
	if last.NLL <= 0 || last.NLL >= first.NLL || last.Error > 0.5 {
		t.Errorf("the online pass did not learn: %+v, then %+v", first, last)
	}
	drawn, err := os.ReadFile(svg)
	if err != nil || !strings.Contains(string(drawn), "one pass online") {
		t.Errorf("the plot does not show the online pass: %v", err)
	}
	if code, _, errOut := edge(t, "train", path, "--online"); code != exitUsage || !strings.Contains(errOut, "--online") {
		t.Errorf("--online without held-out rows exits with %d: %s", code, errOut)
	}
}

func TestIdxRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(images, labels []byte) ([]byte, []byte)
		says  string
	}{
		"truncated":       {func(i, l []byte) ([]byte, []byte) { return i[:len(i)-1], l }, "unexpected EOF"},
		"no header":       {func(i, l []byte) ([]byte, []byte) { return i[:7], l }, "idx header"},
		"labels first":    {func(i, l []byte) ([]byte, []byte) { return l, i }, "bytes in 3 dimensions"},
		"too many images": {func(i, l []byte) ([]byte, []byte) { i[4] = 0xff; return i, l }, "out of range"},
		"fewer labels":    {func(i, l []byte) ([]byte, []byte) { l[7]--; return i, l }, "labels"},
	} {
		path := idxFiles(t, 20, false)
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
		if _, err := dataset.LoadTable(path, dataset.Format{}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

func TestEvalHoldout(t *testing.T) {
	path := tableFile(t, "table.csv", 200)
	for _, mode := range []string{"holdout", "cv"} {
		for _, how := range [][]string{nil, {"--passes", "5", "--batch", "50"}, {"--passes", "20", "--sites", "explicit", "--schedule", "constant"}} {
			args := append([]string{path, "--mode", mode, "--repeats", "4", "--inducing", "10"}, how...)
			r := evalJSON(t, args...)[0]
			samples := map[string]uint64{"holdout": 180, "cv": 150}[mode]
			if r.Mode != mode || r.Samples != samples || len(r.Runs) != 4 || r.Error > 0.5 || r.NLL > math.Log(3) {
				t.Errorf("%v: %+v", args, r)
			}
			var mean, ss float64
			for _, run := range r.Runs {
				mean += run.NLL / 4
			}
			for _, run := range r.Runs {
				ss += (run.NLL - mean) * (run.NLL - mean)
			}
			if math.Abs(mean-r.NLL) > 1e-12 || math.Abs(math.Sqrt(ss/3/4)-r.NLLSE) > 1e-12 {
				t.Errorf("%v: nll %g ± %g, of the runs %g ± %g", args, r.NLL, r.NLLSE, mean, math.Sqrt(ss/12))
			}
			for figure, se := range map[string]float64{"error": r.ErrorSE, "brier": r.BrierSE, "ece": r.ECESE, "macro-F1": r.MacroF1SE, "balanced": float64(r.BalancedSE), "kappa": float64(r.KappaSE)} {
				if !(se > 0 && se < 0.5) {
					t.Errorf("%v: the standard error of %s is %g", args, figure, se)
				}
			}
			if again := evalJSON(t, args...)[0]; again.Runs[3] != r.Runs[3] {
				t.Errorf("%v: a second time %+v, then %+v", args, r.Runs[3], again.Runs[3])
			}
		}
	}
}

// The splits of cross-validation judge every row once; those of holdout share
// no row between learning and judging.
func TestSplits(t *testing.T) {
	s := splits{fraction: 0.7, repeats: 5, seed: 3}
	for _, mode := range []string{"holdout", "cv"} {
		all, err := s.cut(mode, 23)
		if err != nil {
			t.Fatal(err)
		}
		judged := map[int]int{}
		for _, one := range all {
			rows := slices.Sorted(slices.Values(append(slices.Clone(one.learn), one.judge...)))
			if len(rows) != 23 || len(slices.Compact(rows)) != 23 {
				t.Errorf("%s: %v and %v", mode, one.learn, one.judge)
			}
			for _, r := range one.judge {
				judged[r]++
			}
		}
		for r := range 23 {
			if mode == "cv" && judged[r] != 1 {
				t.Errorf("row %d is judged %d times", r, judged[r])
			}
		}
	}
}

func TestFlip(t *testing.T) {
	table, err := dataset.LoadTable(tableFile(t, "table.csv", 3000), dataset.Format{})
	if err != nil {
		t.Fatal(err)
	}
	p := table.Samples(table.All())
	p.Flip(0.3, 1)
	changed := 0
	for i := range p.Len() {
		if p.Class(i) != table.Labels[i] {
			changed++
		}
	}
	if share := float64(changed) / 3000; math.Abs(share-0.3*2/3) > 0.03 { // a third is drawn as it was
		t.Errorf("%.3f of the labels have changed, want about 0.2", share)
	}
}
