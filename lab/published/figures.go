package published

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
)

// Figure is the published result of a method on one set, at one fraction of inducing points.
type Figure struct {
	Set      string  `json:"-"`
	Fraction float64 `json:"-"` // of the rows learnt
	Method   string  `json:"method"`
	Error    float64 `json:"error"`
	NLL      float64 `json:"nll"` // nats; 0: not known
}

var header = []string{"set", "inducing", "method", "error", "nll"}

// LoadFigures reads lines of set,inducing,method,error,nll under a header. For "" it returns none.
func LoadFigures(path string) ([]Figure, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const most = 1 << 20 // bytes
	lines := csv.NewReader(io.LimitReader(f, most))
	lines.FieldsPerRecord = -1
	var figures []Figure
	for first := true; ; first = false {
		row, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return figures, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if first && slices.Equal(row, header) {
			continue
		}
		figure, err := parseFigure(row)
		if first || err != nil {
			line, _ := lines.FieldPos(0)
			return nil, fmt.Errorf("%s:%d: want set,inducing,method,error,nll, and under it such as glass,0.05,EP,0.3,0.8", path, line)
		}
		figures = append(figures, figure)
	}
}

func parseFigure(row []string) (Figure, error) {
	if len(row) != len(header) {
		return Figure{}, strconv.ErrSyntax
	}
	var numbers [3]float64
	for j, at := range []int{1, 3, 4} {
		v, err := strconv.ParseFloat(row[at], 64)
		if err != nil || !(v >= 0 && v <= math.MaxFloat64) {
			return Figure{}, strconv.ErrRange
		}
		numbers[j] = v
	}
	return Figure{row[0], numbers[0], row[2], numbers[1], numbers[2]}, nil
}

// columns are the published columns that methods of the laboratory repeat.
var columns = map[string]string{"ep": "EP", "sep": "SEP", "sep-pairs": "SEP", "gfitc": "GFITC", "vi": "VI"}

// figuresOf returns the figures of a set and fraction.
func figuresOf(figures []Figure, set string, fraction float64) []Figure {
	var out []Figure
	for _, f := range figures {
		if f.Set == set && math.Abs(f.Fraction-fraction) < 1e-9 {
			out = append(out, f)
		}
	}
	return out
}

// find returns the figure of a method's column, or nil.
func find(figures []Figure, column string) *Figure {
	if at := slices.IndexFunc(figures, func(f Figure) bool { return f.Method == column && f.NLL > 0 }); at >= 0 {
		return &figures[at]
	}
	return nil
}
