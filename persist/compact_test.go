package persist

import (
	"math/rand/v2"
	"os"
	"testing"

	"edge/online"
)

const smallState = 100

// growAndShrink writes a large state and replaces it by small ones: afterwards more
// than half of the file, and more than a megabyte, is free.
func growAndShrink(t testing.TB, s *Store, tr *truth) {
	t.Helper()
	for _, size := range []int{3_000_000, smallState, smallState} {
		c := &online.Commit{Records: []online.Record{sample(tr.name, tr.last()+1)}}
		if err := s.Commit(c); err != nil {
			t.Fatal(err)
		}
		tr.commit(c)
		tr.seq, tr.state = tr.last(), stateOf(tr.last(), size)
		if err := s.Checkpoint(tr.name, tr.seq, tr.state); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCompactAtOpen(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	tr := newTruths(t, s, "m")[0]
	growAndShrink(t, s, tr)
	before, err := s.Stats()
	if err != nil || before.FreeBytes < compactAbove || before.FreeBytes*2 < before.FileBytes {
		t.Fatalf("Stats() = %+v, %v: nothing to compact", before, err)
	}
	if before.WrittenBytes < 3_000_000 || before.Transactions != 7 {
		t.Errorf("Stats() = %+v: want more than 3000000 bytes in 7 transactions", before)
	}
	closeStore(t, s)
	s = newStore(t, path, Options{})
	tr.check(t, s)
	after, err := s.Stats()
	if err != nil || after.FileBytes > before.FileBytes/5 {
		t.Errorf("compacted from %d to %d bytes, %v", before.FileBytes, after.FileBytes, err)
	}
	play(t, rand.New(rand.NewPCG(11, 0)), s, []*truth{tr}, 20)
	tr.check(t, s)
	closeStore(t, s)
	s = newStore(t, path, Options{})
	tr.check(t, s)
}

func TestCompact(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	truths := newTruths(t, s, "a", "b")
	play(t, rand.New(rand.NewPCG(12, 0)), s, truths, 200)
	size := func() int64 {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file: %v, %v", info, err)
		}
		return info.Size()
	}
	before := size()
	if err := s.rewrite(); err != nil || size() > before {
		t.Errorf("compacted from %d to %d bytes, %v", before, size(), err)
	}
	for _, tr := range truths {
		tr.check(t, s)
	}
	closeStore(t, s)
	s = newStore(t, path, Options{})
	for _, tr := range truths {
		tr.check(t, s)
	}
}
