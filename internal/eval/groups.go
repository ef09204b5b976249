package eval

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"edge/internal/dataset"
	"edge/stream/signal"
)

// Values of Splits.By: the groups of rows that are held out as a whole.
const (
	SplitRows   = "rows"
	SplitDevice = "device" // all samples of a device
	SplitBlock  = "block"  // whole recordings: the samples of a device between two silences
)

const (
	eachDevice = 20 // devices that are held out one by one, unless Folds is given
	groupFolds = 10 // of more devices, and of recordings
)

// checkSplit reports options of splits that contradict each other.
func (e *Evaluation) checkSplit() error {
	by := e.Splits.By
	switch {
	case by != "" && by != SplitRows && by != SplitDevice && by != SplitBlock:
		return fmt.Errorf("--split %s: want %s, %s or %s", by, SplitRows, SplitDevice, SplitBlock)
	case by != "" && by != SplitRows && e.Mode == "prequential":
		return errors.New("--split is for held-out rows: --mode holdout or cv")
	case by != "" && by != SplitRows && (e.Splits.Folds < 0 || e.Splits.Folds == 1):
		return errors.New("--folds: want 2 or more")
	}
	return nil
}

// checkOverlap warns that the scores of windows that share rows are too good, and refuses
// random splits of them. A file of samples under a stream with signals has its windows, as edge windows
// prints them.
func (e *Evaluation) checkOverlap(errOut io.Writer, name string) error {
	if !e.overlaps() {
		return nil
	}
	c := e.Data.Raw.Stream.StageConfig()
	length, hop := c.Window.Length, c.Hop()
	switch {
	case e.Mode == "prequential":
		fmt.Fprintf(errOut, "%s: a window of %s begins every %s: it shares rows with the one before, whose label is learnt by then, so that the scores are too good; --split device and --split block hold out whole devices and recordings\n", name, spanWords(length), spanWords(hop))
	case e.Splits.By == "" || e.Splits.By == SplitRows:
		if !e.Splits.Force {
			return fmt.Errorf("%s: windows of %s begin every %s, so that a random split learns rows of the windows that it judges: --split device or --split block hold out whole devices or recordings, --force draws windows all the same", name, spanWords(length), spanWords(hop))
		}
		fmt.Fprintf(errOut, "%s: windows that share rows are learnt and judged, so that the scores are too good\n", name)
	}
	return nil
}

// overlaps reports whether the samples are windows that share rows.
func (e *Evaluation) overlaps() bool {
	return e.Data.Raw != nil && e.Data.Raw.Stream.StageConfig().Overlaps()
}

// spanWords returns a span for people: 128 rows, 2s.
func spanWords(s signal.Span) string {
	if s.Rows > 0 {
		return s.String() + " rows"
	}
	return SpanText(s)
}

// cutGroups returns splits that each hold out whole groups of rows. What is learnt is in the
// order of a permutation.
func (s *Splits) cutGroups(t *dataset.Table) (cuts, error) {
	switch {
	case s.By == SplitBlock && !t.Raw:
		return cuts{}, fmt.Errorf("%s: --split block finds recordings by the silences between rows of signals, which samples do not have: give the file of signals, and -c with a stream that has them; or hold out samples by a column that names their recordings: --split device --device NAME", t.Name)
	case t.Origins == nil:
		return cuts{}, fmt.Errorf("%s: --split %s needs a file of signals, and -c with a stream that has them, or the column of the device: --device NAME", t.Name, s.By)
	}
	of, names := s.groupsOf(t)
	if len(names) < 2 {
		return cuts{}, fmt.Errorf("%s: --split %s: the file has %d of them, want 2 or more", t.Name, s.By, len(names))
	}
	fold, held := s.foldGroups(names)
	rows := rand.New(rand.NewPCG(s.Seed, 0)).Perm(len(of))
	return cuts{len(held), (len(held) - 1) * len(rows), func(f int) split {
		one := split{seed: s.Seed, held: held[f]}
		for _, i := range rows {
			if fold[of[i]] == f {
				one.judge = append(one.judge, i)
			} else {
				one.learn = append(one.learn, i)
			}
		}
		return one
	}}, nil
}

// groupsOf returns the group of each row, its device or recording, and the names of the groups.
func (s *Splits) groupsOf(t *dataset.Table) (of []int, names []string) {
	of = make([]int, len(t.Labels))
	seen := map[any]int{}
	for i, o := range t.Origins {
		key, name := any(o.Device), cmp.Or(o.Device, "(no device)")
		if s.By == SplitBlock {
			key, name = o.Piece, ""
		}
		g, known := seen[key]
		if !known {
			g = len(names)
			seen[key] = g
			names = append(names, name)
		}
		of[i] = g
	}
	return of, names
}

// foldGroups returns the fold of each group, and what each fold holds out.
func (s *Splits) foldGroups(names []string) (fold []int, held []string) {
	folds := s.Folds
	if folds == 0 {
		folds = groupFolds
		if s.By == SplitDevice && len(names) <= eachDevice {
			folds = len(names)
		}
	}
	folds = min(folds, len(names))
	fold, held = make([]int, len(names)), make([]string, folds)
	members := make([]int, folds)
	order := rand.New(rand.NewPCG(s.Seed, 3)).Perm(len(names))
	if folds == len(names) {
		slices.Sort(order)
	}
	for at, g := range order {
		f := at * folds / len(names)
		fold[g] = f
		switch {
		case s.By == SplitBlock:
			held[f] = fmt.Sprintf("recordings, fold %d", f+1)
		case held[f] == "":
			held[f] = names[g]
		}
		members[f]++
	}
	for f, n := range members {
		if s.By == SplitDevice && n > 1 {
			held[f] = fmt.Sprintf("%s and %d others", held[f], n-1)
		}
	}
	return fold, held
}
