package tprocess

import (
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Figure is a published result of a method on one split of a set.
type Figure struct {
	Error float64 `json:"error"`
	NLL   float64 `json:"nll"` // nats
}

// key is a set, a method, and M as the file has it: empty for full processes.
type key struct{ set, method, inducing string }

// Figures are the published results.
type Figures map[key]*Figure

// LoadFigures reads the columns dataset, inducing, method, measure and value of a CSV file.
// Measures are accuracy and log_loss; others, and lines without a data set, are left out. For
// "" it returns none.
func LoadFigures(path string) (Figures, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("tprocess: %w", err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("tprocess: %s: %w", path, err)
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("tprocess: %s: the file is empty", path)
	}
	var at [5]int
	for i, name := range []string{"dataset", "inducing", "method", "measure", "value"} {
		if at[i] = slices.Index(lines[0], name); at[i] < 0 {
			return nil, fmt.Errorf("tprocess: %s: there is no column %s", path, name)
		}
	}
	out := Figures{}
	for n, line := range lines[1:] {
		measure := line[at[3]]
		if line[at[0]] == "" || measure != "accuracy" && measure != "log_loss" {
			continue
		}
		v, err := strconv.ParseFloat(line[at[4]], 64)
		if err != nil {
			return nil, fmt.Errorf("tprocess: %s:%d: %w", path, n+2, err)
		}
		k := key{setName(line[at[0]]), line[at[2]], line[at[1]]}
		if out[k] == nil {
			out[k] = new(Figure)
		}
		if measure == "accuracy" {
			out[k].Error = 1 - v
		} else {
			out[k].NLL = v
		}
	}
	return out, nil
}

// setName spells a set as its file is named.
func setName(name string) string { return strings.ReplaceAll(name, "-", "_") }

// find returns the published figure of a method, or nil. Which form of VTP2 the figures are
// of is not known; they stand beside both.
func (f Figures) find(set, method string, m int, full bool) *Figure {
	k := key{setName(set), strings.TrimSuffix(method, " printed"), ""}
	if !full {
		k.inducing = strconv.Itoa(m)
	}
	return f[k]
}
