package main

import (
	"path/filepath"
	"strings"
	"testing"

	"edge/internal/exit"
	"edge/test/files"
	"edge/test/harness"
)

func TestExitCodes(t *testing.T) {
	table := harness.TableFile(t, "table.csv", 40)
	config := harness.TableConfig(t, table, "")
	db := filepath.Join(t.TempDir(), "x.db")
	for name, tc := range map[string]struct {
		args []string
		code int
		want string // in the error
	}{
		"unknown mode":            {[]string{"eval", table, "--mode", "twice"}, exit.Usage, "want prequential, holdout or cv"},
		"flips in a stream":       {[]string{"eval", table, "--flip-labels", "0.2"}, exit.Usage, "need --mode holdout"},
		"drift out of range":      {[]string{"eval", table, "--abrupt", "-1"}, exit.Usage, "edge-lab: --abrupt: want 0 or more\n"},
		"first of a split":        {[]string{"eval", table, "--mode", "cv", "--first", "3"}, exit.Usage, "give --seed"},
		"within without shuffle":  {[]string{"eval", table, "--shuffle-within", "20,20"}, exit.Usage, "needs --shuffle SEED"},
		"within of another size":  {[]string{"eval", table, "--shuffle", "1", "--shuffle-within", "20,10"}, exit.Runtime, "add up to 30 rows, the file has 40"},
		"plot of nothing":         {[]string{"train", table, "--plot", db}, exit.Usage, "give --holdout"},
		"components for a daemon": {[]string{"train", table, "-c", config, "-o", db, "--components", "2"}, exit.Usage, "no principal components"},
		"plot of no report":       {[]string{"plot", table}, exit.Runtime, "want the output of --json"},
		"plot of other JSON":      {[]string{"plot", files.Write(t, "other.json", "{}")}, exit.Runtime, "an object is no report"},
		"plot over its data":      {[]string{"eval", table, "--plot", table}, exit.Usage, "is read as well"},
		"plot over its report":    {[]string{"plot", table, "-o", table}, exit.Usage, "is read as well"},
		"cost of nothing":         {[]string{"cost", db}, exit.Runtime, "no line of BenchmarkCost"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := edge(t, tc.args...)
			if code != tc.code || out != "" || !strings.Contains(errOut, tc.want) {
				t.Errorf("edge-lab %s\nexits with %d and prints %q and %q\nwant %d and %q", strings.Join(tc.args, " "), code, out, errOut, tc.code, tc.want)
			}
		})
	}
}
