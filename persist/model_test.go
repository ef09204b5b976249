package persist

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"edge/online"
)

func TestShape(t *testing.T) {
	path := tempPath(t)
	const shape, other = "features=a inducing=50 horizons=inf window=0", "features=a inducing=60 horizons=inf window=0"
	s := newStore(t, path, Options{})
	if _, err := s.Load("m", shape); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = newStore(t, path, Options{})
	_, err := s.Load("m", other)
	if !errors.Is(err, ErrShape) {
		t.Fatalf("Load under another shape: %v, want %v", err, ErrShape)
	}
	for _, part := range []string{"inducing=50", "inducing=60", "edge reset --model m --state " + path} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not contain %q: %v", part, err)
		}
	}
	if err := s.Commit(&online.Commit{Records: []online.Record{sample("m", 1)}}); !errors.Is(err, ErrModel) {
		t.Errorf("Commit to a model that Load did not accept: %v, want %v", err, ErrModel)
	}
	if err := s.Reset("m"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load("m", other); err != nil {
		t.Errorf("Load after Reset: %v", err)
	}
}

// A shape that an earlier program wrote, without escapes in the names of features, is replaced when a
// program loads the model that writes them.
func TestShapeOfAnEarlierProgram(t *testing.T) {
	path := tempPath(t)
	const now, former = `features=a\,b,c inducing=50 horizons=inf window=0`, `features=a,b,c inducing=50 horizons=inf window=0`
	s := newStore(t, path, Options{})
	if _, err := s.Load("m", former); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	read, err := OpenReadOnly(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read.Load("m", now); err != nil {
		t.Errorf("Load for reading: %v", err)
	}
	if shape, err := read.Shape("m"); err != nil || shape != former {
		t.Errorf("a store for reading has the shape %q, %v, want %q", shape, err, former)
	}
	closeStore(t, read)
	s = newStore(t, path, Options{})
	if _, err := s.Load("m", now); err != nil {
		t.Fatal(err)
	}
	if shape, err := s.Shape("m"); err != nil || shape != now {
		t.Errorf("the shape is %q, %v, want %q", shape, err, now)
	}
	closeStore(t, s)
	if v, err := Verify(path, nil); err != nil || len(v.Problems) > 0 {
		t.Errorf("the file is damaged: %+v, %v", v, err)
	}
}

func TestReset(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 0))
	path := tempPath(t)
	s := newStore(t, path, Options{})
	truths := newTruths(t, s, "a", "b")
	play(t, rng, s, truths, 40)
	if err := s.Reset("a"); err != nil {
		t.Fatal(err)
	}
	if err := s.Reset("a"); !errors.Is(err, ErrModel) {
		t.Errorf("Reset of a deleted model: %v, want %v", err, ErrModel)
	}
	if s.Seen("a", hash(1)) {
		t.Error("Seen reports a key of a model that was reset")
	}
	if names, err := s.Models(); err != nil || !cmp.Equal(names, []string{"b"}) {
		t.Errorf("Models() = %v, %v, want [b]", names, err)
	}
	closeStore(t, s)
	s = newStore(t, path, Options{})
	truths[0] = &truth{name: "a"}
	for _, tr := range truths {
		tr.check(t, s)
	}
	play(t, rng, s, truths, 10)
	for _, tr := range truths {
		tr.check(t, s)
	}
}

// TestMarks checks that the mark of a model is durable with its commit, and survives a
// repair.
func TestMarks(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	newTruths(t, s, "a", "b")
	bits := func(s *Store, model string) uint64 {
		t.Helper()
		r, err := s.Load(model, testShape)
		if err != nil {
			t.Fatal(err)
		}
		return r.Mark
	}
	for _, c := range []*online.Commit{
		{Records: []online.Record{sample("a", 1)}, Marks: []online.Mark{{Model: "a", Bits: 3}}},
		{Records: []online.Record{sample("a", 2), sample("b", 1)}},
		{Marks: []online.Mark{{Model: "b", Bits: 1 << 63}, {Model: "b", Bits: 5}}},
	} {
		if err := s.Commit(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Commit(&online.Commit{Marks: []online.Mark{{Model: "c", Bits: 1}}}); !errors.Is(err, ErrModel) {
		t.Errorf("a mark of an unknown model: %v, want %v", err, ErrModel)
	}
	if err := s.Checkpoint("a", 1, []byte("state")); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = newStore(t, path, Options{})
	if a, b := bits(s, "a"), bits(s, "b"); a != 3 || b != 5 {
		t.Errorf("marks %d and %d, want 3 and 5", a, b)
	}
	closeStore(t, s)

	// Damage the last record of model a.
	file := readFile(t, path)
	record := appendRecord(nil, &[]online.Event{sample("a", 2).Event}[0])
	broken := bytes.Clone(record)
	broken[3] ^= 1
	file = bytes.ReplaceAll(file, record, broken) // also in free pages
	writeFile(t, path, file)
	s = newStore(t, path, Options{})
	if s.Recovery() == nil {
		t.Fatal("Open did not detect the damage")
	}
	if a, b := bits(s, "a"), bits(s, "b"); a != 3 || b != 5 {
		t.Errorf("after a repair: marks %d and %d, want 3 and 5", a, b)
	}
	if err := s.Commit(&online.Commit{Marks: []online.Mark{{Model: "a"}}}); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = newStore(t, path, Options{})
	if a := bits(s, "a"); a != 0 {
		t.Errorf("mark %d, want 0", a)
	}
}
