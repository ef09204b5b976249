// Package golden compares with values that were computed elsewhere: the golden
// vectors of ../shared/reference, beside the repository.
package golden

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// Reference reads the file NAME of golden vectors, which were computed with 40 to 60
// digits. A test without that file is skipped; in CI it fails.
func Reference(t testing.TB, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root(t), "..", "shared", "reference", name))
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("golden vectors are missing: %v", err)
		}
		t.Skipf("needs the golden vectors in ../shared/reference: %v", err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// root returns the folder of go.mod, of which the tests' folder is a part.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err = os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if parent := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && parent != dir {
			dir, err = parent, nil
		}
	}
	t.Fatal(err)
	return ""
}

// Close compares arrays: the largest difference, as a part of the largest value that is
// wanted, must not exceed rel.
func Close(t testing.TB, what string, got, want []float64, rel float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s has %d values, want %d", what, len(got), len(want))
		return
	}
	var diff, top float64
	for i := range want {
		d := math.Abs(got[i] - want[i])
		if !(d <= diff) { // NaN counts as the largest
			diff = d
		}
		top = max(top, math.Abs(want[i]))
	}
	if !(diff <= max(rel*top, 1e-150)) {
		t.Errorf("%s: error %.3g of the largest value, want at most %.3g\n got %v\nwant %v", what, diff/top, rel, got, want)
	}
}

// Flat returns the rows one after the other.
func Flat(rows [][]float64) []float64 {
	var out []float64
	for _, r := range rows {
		out = append(out, r...)
	}
	return out
}
