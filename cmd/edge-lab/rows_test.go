package main

import (
	"strings"
	"testing"

	"edge/internal/exit"
	"edge/test/files"
	"edge/test/harness"
)

// A model learns the rows that the command writes as it learns the file with the same
// flags: the digests of both are equal.
func TestRowsAreThoseOfEval(t *testing.T) {
	table := harness.TableFile(t, "table.csv", 200)
	for name, flags := range map[string][]string{
		"file order":     {"--first", "150"},
		"shuffled":       {"--shuffle", "3", "--first", "150"},
		"shuffled parts": {"--shuffle", "3", "--shuffle-within", "50,150"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := edge(t, append([]string{"rows", table}, flags...)...)
			if code != exit.OK || errOut != "" {
				t.Fatalf("rows exits with %d: %s", code, errOut)
			}
			want := evalJSON(t, append([]string{table, "--inducing", "10"}, flags...)...)[0]
			got := evalJSON(t, files.Write(t, "table.csv", out), "--inducing", "10")[0]
			if got.NLL != want.NLL || got.Samples != want.Samples || got.Digest != want.Digest || want.Digest == "" {
				t.Errorf("log loss %g of %d rows, digest %s; want %g, %d, %s", got.NLL, got.Samples, got.Digest, want.NLL, want.Samples, want.Digest)
			}
		})
	}
	for _, args := range [][]string{{"rows", table, "--shuffle-within", "100,100"}, {"rows", table, "--first", "-1"}, {"rows", table, "--shuffle", "1", "--shuffle-within=-100,300"}} {
		if code, out, _ := edge(t, args...); code != exit.Usage || out != "" {
			t.Errorf("edge-lab %s exits with %d and prints %q", strings.Join(args, " "), code, out)
		}
	}
}
