package dataset

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"edge/internal/terminal"
)

// Selection selects rows of a file and their order.
type Selection struct {
	First   int     // number of rows, after the shuffle; 0: all
	Shuffle *uint64 // seed of a permutation of the whole file; nil: in file order
	Within  []int   // sizes of consecutive batches, each shuffled by itself; nil: one batch
}

// Check returns an error if a setting is out of range or needs another one.
func (s *Selection) Check() error {
	switch {
	case s.First < 0:
		return errors.New("--first: want 0 or more")
	case s.Within != nil && s.Shuffle == nil:
		return errors.New("--shuffle-within needs --shuffle SEED")
	case slices.ContainsFunc(s.Within, func(n int) bool { return n < 1 }):
		return errors.New("--shuffle-within: want sizes above 0, such as 445,1244")
	}
	return nil
}

// Of returns the selected rows of d. Without a shuffle each is read when it is
// needed; with one, the whole file is held in memory.
func (s Selection) Of(d *File) (Rows, error) {
	var rows Rows = d
	if s.Shuffle != nil {
		all, err := ReadAll(d)
		if err != nil {
			return nil, err
		}
		batches := []int{len(all)}
		if s.Within != nil {
			batches = s.Within
			sum := 0
			for _, n := range batches {
				sum += n
			}
			if sum != len(all) {
				return nil, fmt.Errorf("%s: the batch sizes add up to %s, the file has %d", d.path, terminal.Count(sum, "row"), len(all))
			}
		}
		rng := rand.New(rand.NewPCG(*s.Shuffle, 0))
		rest := all
		for _, n := range batches {
			batch := rest[:n]
			rest = rest[n:]
			rng.Shuffle(n, func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
		}
		rows = &heldRows{rows: all}
	}
	if s.First > 0 {
		rows = &firstRows{Rows: rows, left: s.First}
	}
	return rows, nil
}

// maxValues bounds the numbers held in memory: 2 GiB.
const maxValues = 1 << 28

var errTooManyValues = fmt.Errorf("more than %d numbers, which would not fit into memory: give fewer rows or --columns", maxValues)

// ReadAll reads the remaining rows.
func ReadAll(rows Rows) ([]Row, error) {
	var all []Row
	for values := 0; ; {
		var row Row
		err := rows.Next(&row)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if values += len(row.X); values > maxValues {
			return nil, errTooManyValues
		}
		all = append(all, row)
	}
}

// heldRows are Rows in memory, numbered in their order.
type heldRows struct {
	rows []Row
	next int
}

func (h *heldRows) Next(row *Row) error {
	if h.next == len(h.rows) {
		return io.EOF
	}
	from := &h.rows[h.next]
	h.next++
	row.Number, row.X, row.Label = h.next, append(row.X[:0], from.X...), from.Label
	return nil
}

// firstRows are the first rows of a source.
type firstRows struct {
	Rows
	left int
}

func (f *firstRows) Next(row *Row) error {
	if f.left == 0 {
		return io.EOF
	}
	f.left--
	return f.Rows.Next(row)
}

// indexOf returns the index of a name, −1 without it. It is not inlined: many functions call it.
//
//go:noinline
func indexOf(names []string, name string) int { return slices.Index(names, name) }

// contains reports whether a name is one of names.
func contains(names []string, name string) bool { return indexOf(names, name) >= 0 }
