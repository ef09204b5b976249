package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"edge/internal/broker/brokertest"
	"edge/internal/exit"
	"edge/test/files"
	"edge/test/harness"
)

// A file without any label is refused by all that judge or learn.
func TestNoLabel(t *testing.T) {
	file := files.Write(t, "bare.csv", "x,y,label\n"+strings.Repeat("1,2,\n3,4,?\n", 20))
	for _, command := range []string{"eval", "eval split", "eval ask", "train"} {
		code, out, errOut := edge(t, append(strings.Fields(command), file)...)
		if code != exit.Runtime || out != "" || !strings.HasSuffix(errOut, "bare.csv: no row with a label\n") {
			t.Errorf("edge %s exits with %d: %s%s", command, code, errOut, out)
		}
	}
}

// Scores of no sample are null, which 0 would hide.
func TestScoresOfNoSample(t *testing.T) {
	table := harness.TableFile(t, "table.csv", 60)
	_, out, errOut := edge(t, "eval", table, "--inducing", "10", "--seeds", "2", "--json")
	if prior := gjson.Get(out, "class_prior").Raw; prior != `{"n":0,"error":null,"nll":null}` || gjson.Get(out, "error").Type != gjson.Number {
		t.Errorf("class_prior: %s%s", prior, errOut)
	}
	late := files.Write(t, "late.csv", "x,y,label\n"+strings.Repeat("1,2,\n", 5)+strings.Repeat("3,4,a\n4,3,b\n", 5))
	if code, _, errOut := edge(t, "eval", late, "--first", "3"); code != exit.Runtime || !strings.Contains(errOut, "every row lacks a label") {
		t.Errorf("without a label among the first rows: exit %d: %s", code, errOut)
	}
	_, out, errOut = edge(t, "eval", late, "--first", "3", "--delay", "1", "--json")
	for _, key := range []string{"error", "nll", "brier", "ece", "macro_f1", "class_prior.error", "last_label.nll"} {
		if v := gjson.Get(out, key); v.Raw != "null" {
			t.Errorf("%s of no sample: %q\n%s", key, v.Raw, errOut)
		}
	}
}

// A file with more columns than a model has features is refused with the flag that chooses some.
func TestTooManyColumns(t *testing.T) {
	header := ""
	for i := range 10_001 {
		header += fmt.Sprintf("x%d,", i)
	}
	file := files.Write(t, "wide.csv", header+"label\n"+strings.Repeat(strings.Repeat("1,", 10_001)+"a\n"+strings.Repeat("2,", 10_001)+"b\n", 10))
	for _, command := range []string{"eval", "eval split", "train", "config sample --from"} {
		code, _, errOut := edge(t, append(strings.Fields(command), file)...)
		if code != exit.Runtime || !strings.Contains(errOut, ": 10001 columns are features, and a model can have 10000: --columns names") {
			t.Errorf("edge %s exits with %d: %.300s", command, code, errOut)
		}
	}
	if code, _, errOut := edge(t, "eval", file, "--columns", "1-3"); code != exit.OK {
		t.Errorf("--columns: exit %d: %.300s", code, errOut)
	}
}

// A pipe is refused where a file is read twice.
func TestPipesAreReadOnce(t *testing.T) {
	for _, command := range []string{"eval", "eval ask", "config sample --from"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		path := fmt.Sprintf("/dev/fd/%d", r.Fd())
		if _, err := os.Stat(path); err != nil {
			brokertest.Missing(t, "open pipes have no names in /dev/fd here: "+err.Error())
		}
		for _, path := range []string{path, "-"} {
			code, _, errOut := edge(t, append(strings.Fields(command), path)...)
			if code != exit.Runtime || !strings.Contains(errOut, "is read twice: write it to a file") {
				t.Errorf("edge %s %s exits with %d: %s", command, path, code, errOut)
			}
		}
		r.Close()
	}
}

// A file that is read once may come from the standard input.
func TestStandardInput(t *testing.T) {
	rows := "x,y,label\n" + strings.Repeat("1,2,a\n3,4,b\n", 20)
	for _, command := range []string{"train - --passes 1", "eval split - --repeats 2", "windows - --signals x,y"} {
		if code, out, errOut := harness.RunWith(t, rows, strings.Fields(command)...); code != exit.OK || out == "" {
			t.Errorf("edge %s exits with %d: %s", command, code, errOut)
		}
	}
}

// Each file is opened before the first is computed; what fails later leaves the reports
// of the files before it.
func TestOneOfSeveralFilesFails(t *testing.T) {
	table := harness.TableFile(t, "table.csv", 60)
	half := files.Write(t, "half.csv", "x,y,label\n"+strings.Repeat("1,2,a\n3,4,b\n", 10)+"1,two,a\n")
	for _, command := range []string{"eval", "eval split"} {
		code, out, errOut := edge(t, append(strings.Fields(command), table, table+".none", "--inducing", "10")...)
		if code != exit.Runtime || out != "" || !strings.Contains(errOut, "no such file") {
			t.Errorf("edge %s with a missing file exits with %d: %s%s", command, code, errOut, out)
		}
		page := filepath.Join(t.TempDir(), "report.html")
		code, out, errOut = edge(t, append(strings.Fields(command), table, half, "--inducing", "10", "--report", page)...)
		if code != exit.Runtime || !strings.Contains(out, "table") || !strings.Contains(errOut, "half.csv:22:3") {
			t.Errorf("edge %s exits with %d: %s%s", command, code, errOut, out)
		}
		if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "Evaluation of table<") {
			t.Errorf("edge %s: a page of %d bytes, %v", command, len(text), err)
		}
	}
}

// A header that was taken for a sample is reported once by all that read a file, with a
// label that no other line has.
func TestHeaderTakenForASample(t *testing.T) {
	rows := strings.Repeat("1,2,a\n3,4,b\n2,1,a\n", 10)
	file := files.Write(t, "years.csv", "2019,2020,label\n"+rows)
	plain := files.Write(t, "plain.csv", rows)
	db, config := filepath.Join(t.TempDir(), "edge.db"), files.Write(t, "edge.yaml", "mqtt: {servers: [mqtt://broker.lan]}\n"+
		"streams: {s: {topics: [t], features: [x, y]}}\nmodels: {m: {streams: [s], inducing: 5}}\n")
	if code, _, errOut := edge(t, "train", plain, "-c", config, "-o", db, "--passes", "1"); code != exit.OK {
		t.Fatal(errOut)
	}
	const called, ordered = "the features are called f0, f1; ", "the columns are taken for the features x, y in this order; "
	const alone = `no other line has its label "label"; `
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"eval":                 {[]string{"eval", file}, called + alone},
		"eval split":           {[]string{"eval", "split", file, "--repeats", "2"}, called + alone},
		"eval ask":             {[]string{"eval", "ask", file, "--budget", "0.5,1"}, called + alone},
		"train":                {[]string{"train", file, "--passes", "1"}, called + alone},
		"train, -c":            {[]string{"train", file, "-c", config, "--passes", "1"}, ordered + alone},
		"train, a test":        {[]string{"train", plain, "--test", plain, "--passes", "1"}, called},
		"config sample":        {[]string{"config", "sample", "--from", file}, called + alone},
		"eval, a plain file":   {[]string{"eval", plain}, called},
		"predict":              {[]string{"predict", "--state", db, file, "--label", "3"}, ordered},
		"predict by --columns": {[]string{"predict", "--state", db, file, "--header", "yes", "--columns", "1,2"}, "years.csv: " + ordered[:len(ordered)-2] + "\n"},
		"predict without":      {[]string{"predict", "--state", db, plain, "--label", "3", "--header", "no"}, "plain.csv: " + ordered[:len(ordered)-2] + "\n"},
		"a header":             {[]string{"eval", file, "--header", "yes"}, ""},
		"no header, as known":  {[]string{"eval", plain, "--header", "no"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, errOut := edge(t, tc.args...)
			if code != exit.OK || strings.Count(errOut, tc.want) != 1 && tc.want != "" || tc.want == "" && errOut != "" {
				t.Errorf("exit %d: %swant once %q", code, errOut, tc.want)
			}
			if strings.Contains(errOut, alone) != strings.Contains(tc.want, alone) || strings.Contains(tc.want, "; ") && !strings.Contains(errOut, "; --header yes if it names the columns\n") {
				t.Errorf("it says %q", errOut)
			}
		})
	}
}
