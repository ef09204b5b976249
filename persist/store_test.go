package persist

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"edge/online"
)

// TestRefuses makes invalid calls: each must return an error and write nothing.
func TestRefuses(t *testing.T) {
	s := newStore(t, tempPath(t), Options{})
	newTruths(t, s, "m")
	good := sample("m", 1)
	if err := s.Commit(&online.Commit{Records: []online.Record{good}}); err != nil {
		t.Fatal(err)
	}
	record := func(change func(*online.Record)) *online.Commit {
		bad := sample("m", 2)
		change(&bad)
		return &online.Commit{Records: []online.Record{good, bad}}
	}
	for name, test := range map[string]struct {
		do   func() error
		want error
	}{
		"unknown model": {func() error { return s.Commit(record(func(r *online.Record) { r.Model = "n" })) }, ErrModel},
		"unknown kind":  {func() error { return s.Commit(record(func(r *online.Record) { r.Kind = online.Merge + 1 })) }, errEncoding},
		"too many features": {func() error {
			return s.Commit(record(func(r *online.Record) { r.X = make([]float64, maxFeatures+1) }))
		}, errTooLarge},
		"too many probabilities": {func() error {
			return s.Commit(record(func(r *online.Record) { r.Probs = make([]float64, maxClasses+1) }))
		}, errTooLarge},
		"label too long": {func() error {
			return s.Commit(record(func(r *online.Record) { r.Label = strings.Repeat("x", maxLabel+1) }))
		}, errTooLarge},
		"pending too large": {func() error {
			return s.Commit(&online.Commit{Wait: []online.Pending{{Model: "m", Key: 1, X: make([]float64, maxFeatures+1)}}})
		}, errTooLarge},
		"checkpoint ahead":         {func() error { return s.Checkpoint("m", 2, []byte("x")) }, ErrSequence},
		"checkpoint without state": {func() error { return s.Checkpoint("m", 1, nil) }, errTooLarge},
		"checkpoint of unknown":    {func() error { return s.Checkpoint("n", 0, []byte("x")) }, ErrModel},
		"reset of unknown":         {func() error { return s.Reset("n") }, ErrModel},
		"info of unknown":          {func() error { _, err := s.Info("n"); return err }, ErrModel},
		"shape of unknown":         {func() error { _, err := s.Shape("n"); return err }, ErrModel},
		"shape too long":           {func() error { _, err := s.Load("m", strings.Repeat("x", maxShape+1)); return err }, errTooLarge},
		"no name":                  {func() error { _, err := s.Load("", ""); return err }, ErrModel},
		"name with a slash":        {func() error { _, err := s.Load("a/b", ""); return err }, ErrModel},
		"name with a zero byte":    {func() error { _, err := s.Load("a\x00", ""); return err }, ErrModel},
		"name too long":            {func() error { _, err := s.Load(strings.Repeat("a", maxName+1), ""); return err }, ErrModel},
		"dedupe of -1":             {func() error { _, err := Open(s.path, Options{Dedupe: -1}); return err }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.do()
			if err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "persist: ") {
				t.Errorf("error %q does not name the package", err)
			}
		})
	}
	good.Seq = 1
	(&truth{name: "m", records: []online.Record{good}}).check(t, s)
	if s.rollBackDue || s.broken != nil {
		t.Errorf("invalid calls left the store with a due rollback (%v) or broken (%v)", s.rollBackDue, s.broken)
	}
}

func TestLocked(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	var group sync.WaitGroup // each open waits a second for the lock
	for name, open := range map[string]func() error{
		"Open":         func() error { _, err := Open(path, Options{}); return err },
		"OpenReadOnly": func() error { _, err := OpenReadOnly(path, Options{}); return err },
	} {
		group.Go(func() {
			err := open()
			if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "stop it") {
				t.Errorf("%s of a file in use: %v, want %v with the file and the way out", name, err, ErrLocked)
			}
		})
	}
	group.Wait()
	closeStore(t, s)
	s = newStore(t, path, Options{})
	if s.Recovery() != nil {
		t.Error("attempts to open a file in use damaged it")
	}
}

// TestSymlink compacts a file through a symbolic link: the link must remain a link to
// the compacted file.
func TestSymlink(t *testing.T) {
	path, link := tempPath(t), tempPath(t)
	s := newStore(t, path, Options{})
	growAndShrink(t, s, newTruths(t, s, "m")[0])
	closeStore(t, s)
	before := len(readFile(t, path))
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	newStore(t, link, Options{}) // compacts
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", info.Mode(), err)
	}
	if after := len(readFile(t, path)); after >= before {
		t.Errorf("the linked file was not compacted: %d bytes, %d before", after, before)
	}
}

// TestCreatedAtOnce opens a new file in several goroutines at once: one creates it, the
// others wait for it or return ErrLocked.
func TestCreatedAtOnce(t *testing.T) {
	path := tempPath(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			s, err := Open(path, Options{})
			if errors.Is(err, ErrLocked) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			r, err := s.Load("m", testShape)
			if err == nil {
				err = s.Commit(&online.Commit{Records: []online.Record{sample("m", uint64(len(r.Records))+1)}})
			}
			if err == nil {
				err = s.Close()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	s := newStore(t, path, Options{})
	r, err := s.Load("m", testShape)
	if err != nil || len(r.Records) == 0 {
		t.Fatalf("%d records, %v", len(r.Records), err)
	}
	if _, err := os.Stat(path + temporary); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a temporary file remains: %v", err)
	}
}

func TestReadOnly(t *testing.T) {
	path := tempPath(t)
	if _, err := OpenReadOnly(path, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OpenReadOnly of a missing file: %v", err)
	}
	s := newStore(t, path, Options{})
	truths := newTruths(t, s, "a", "b")
	play(t, rand.New(rand.NewPCG(6, 0)), s, truths, 60)
	closeStore(t, s)
	before := readFile(t, path)

	r1, err := OpenReadOnly(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r1.Close()
	r2, err := OpenReadOnly(path, Options{})
	if err != nil {
		t.Fatalf("a second reader: %v", err)
	}
	defer r2.Close()
	for _, tr := range truths {
		tr.check(t, r1)
		info, err := r2.Info(tr.name)
		if err != nil || info.Last != tr.last() || info.Pending != uint64(len(tr.pending)) || info.Shape != testShape {
			t.Errorf("Info(%s) = %+v, %v, want last %d, pending %d", tr.name, info, err, tr.last(), len(tr.pending))
		}
	}
	if st, err := r2.Stats(); err != nil || st.FileBytes != int64(len(before)) || st.WrittenBytes != 0 {
		t.Errorf("Stats() = %+v, %v", st, err)
	}
	for name, err := range map[string]error{
		"Commit":     r1.Commit(&online.Commit{Records: []online.Record{sample("a", 1)}}),
		"Checkpoint": r1.Checkpoint("a", truths[0].last(), []byte("x")),
		"Reset":      r1.Reset("a"),
	} {
		if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s on a read-only store: %v, want %v with the path", name, err, fs.ErrPermission)
		}
	}
	if _, err := r1.Load("new", testShape); !errors.Is(err, ErrModel) {
		t.Errorf("Load of an unknown model on a read-only store: %v", err)
	}
	if !bytes.Equal(before, readFile(t, path)) {
		t.Error("a reader changed the file")
	}
}

func TestPermissions(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	newTruths(t, s, "m")
	mode := func() fs.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	if mode() != 0o600 {
		t.Errorf("a new file has mode %v, want 0600", mode())
	}
	closeStore(t, s)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	newStore(t, path, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if mode() != 0o600 {
		t.Errorf("a file that other users could read keeps mode %v, want 0600", mode())
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), path) {
		t.Errorf("no warning contains the path: %q", log.String())
	}
}

// TestForeign opens files of other programs: Open returns ErrForeign and changes none.
func TestForeign(t *testing.T) {
	for name, content := range foreignFiles(t) {
		t.Run(name, func(t *testing.T) {
			path := tempPath(t)
			writeFile(t, path, content)
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := Open(path, Options{})
			if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), path) {
				t.Errorf("Open: %v, want %v", err, ErrForeign)
			}
			if _, err := Verify(path, nil); !errors.Is(err, ErrForeign) {
				t.Errorf("Verify: %v, want %v", err, ErrForeign)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 || !bytes.Equal(content, readFile(t, path)) {
				t.Error("Open changed a file of another program, or its mode")
			}
			if names, _ := filepath.Glob(path + "*"); len(names) != 1 {
				t.Errorf("Open created files: %v", names)
			}
		})
	}
}

// TestConcurrent commits, writes checkpoints and reads at the same time, as the daemon does.
func TestConcurrent(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{Dedupe: 50})
	truths := newTruths(t, s, "a", "b")
	var group sync.WaitGroup
	committed := make(chan uint64, 1000)
	for _, tr := range truths {
		seqs := make(chan uint64, 200)
		group.Go(func() { // the model's committer
			defer close(seqs)
			for n := uint64(1); n <= 100; n++ {
				c := &online.Commit{Records: []online.Record{sample(tr.name, n)}, Wait: []online.Pending{pendingSample(tr.name, n)}}
				if err := s.Commit(c); err != nil {
					t.Error(err)
					return
				}
				tr.commit(c)
				if key := c.Records[0].Key; key != 0 && !s.Seen(tr.name, key) {
					t.Errorf("key of committed record %d of %s is not seen", n, tr.name)
				}
				seqs <- n
				committed <- n
			}
		})
		group.Go(func() { // the model's learner
			for seq := range seqs {
				if seq%9 != 0 {
					continue
				}
				if err := s.Checkpoint(tr.name, seq, stateOf(seq, 3000)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Go(func() { // statistics
		for range 50 {
			if _, err := s.Stats(); err != nil {
				t.Error(err)
			}
			if _, err := s.Info("a"); err != nil {
				t.Error(err)
			}
		}
	})
	group.Wait()
	for _, tr := range truths {
		tr.seq, tr.state = 99, stateOf(99, 3000)
		tr.check(t, s)
	}
	closeStore(t, s)
	s = newStore(t, path, Options{Dedupe: 50})
	for _, tr := range truths {
		tr.check(t, s)
	}
	if len(committed) != 200 {
		t.Errorf("%d commits, want 200", len(committed))
	}
}
