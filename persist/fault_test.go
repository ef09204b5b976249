//go:build linux

package persist

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"edge/online"
)

// failWrites makes every write to the store's file fail until the caller calls the
// returned function: it replaces the descriptor by a read-only description of the
// same file. The original description keeps the lock.
func failWrites(t *testing.T, s *Store) (repair func()) {
	t.Helper()
	fd := int(s.file.Fd())
	aside, err := syscall.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	readOnly, err := os.Open(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Dup3(int(readOnly.Fd()), fd, 0); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := syscall.Dup3(aside, fd, 0); err != nil {
			t.Fatal(err)
		}
		_ = syscall.Close(aside)
		_ = readOnly.Close()
	}
}

// TestWriteFails makes writes fail: nothing changes meanwhile, and the same calls succeed
// afterwards.
func TestWriteFails(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 0))
	path := tempPath(t)
	s := newStore(t, path, Options{Dedupe: 20})
	truths := newTruths(t, s, "a", "b")
	for i := range uint64(10) {
		play(t, rng, s, truths, 10)
		c := randomCommit(rng, truths)
		c.Records = append(c.Records, sample("a", 7000+7*i)) // with a unique key
		repair := failWrites(t, s)
		for range 3 {
			if err := s.Commit(c); err == nil || c.Records[0].Seq != 0 {
				t.Fatalf("Commit while writes fail: %v, seq %d", err, c.Records[0].Seq)
			}
			if err := s.Checkpoint("a", truths[0].last(), []byte("x")); err == nil {
				t.Fatal("Checkpoint succeeds while writes fail")
			}
		}
		if s.Seen("a", sample("a", 7000+7*i).Key) {
			t.Error("Seen reports the key of a failed commit")
		}
		repair()
		for _, tr := range truths {
			tr.check(t, s)
		}
		if err := s.Commit(c); err != nil {
			t.Fatalf("Commit after the writes work again: %v", err)
		}
		for _, tr := range truths {
			tr.commit(c)
			tr.check(t, s)
		}
	}
	closeStore(t, s)
	s = newStore(t, path, Options{Dedupe: 20})
	for _, tr := range truths {
		tr.check(t, s)
	}
}

// TestEachStepFails lets the n-th step of a store fail, for every n, before or after a
// transaction writes, once or three times in a row. A failed call must have no effect,
// and must succeed when the disk works again.
func TestEachStepFails(t *testing.T) {
	for _, times := range []int{1, 3} {
		for n, hit := times, true; hit; n += stride {
			hit = failAtStep(t, n, times)
			if t.Failed() {
				t.Fatalf("step %d fails %d times", n, times)
			}
			if !hit && n < 60 {
				t.Errorf("only %d steps", n)
			}
		}
	}
}

// failAtStep plays a history whose steps n to n+times-1 fail. It reports whether the
// history has n steps.
func failAtStep(t *testing.T, n, times int) (hit bool) {
	step := 0
	opts := Options{Dedupe: 20, Fault: func(string) error {
		if step++; step >= n && step < n+times {
			hit = true
			return syscall.EIO
		}
		return nil
	}}
	// until repeats a call while it fails.
	until := func(call func() error) {
		t.Helper()
		for range times + 1 {
			err := call()
			if err == nil {
				return
			}
			if !errors.Is(err, syscall.EIO) {
				t.Fatal(err)
			}
		}
		t.Fatal("the call failed more often than the disk")
	}
	path, tr := tempPath(t), &truth{name: "m"}
	rng := rand.New(rand.NewPCG(16, 0))
	for range 3 { // restarts
		var s *Store
		until(func() (err error) { s, err = Open(path, opts); return err })
		until(func() error { _, err := s.Load(tr.name, testShape); return err })
		for i := range 9 {
			c := randomCommit(rng, []*truth{tr})
			c.Records = append(c.Records, sample(tr.name, tr.last()+uint64(len(c.Records))+1))
			until(func() error { return s.Commit(c) })
			tr.commit(c)
			if i%4 == 3 {
				seq, state := tr.last(), stateOf(tr.last(), 3000)
				until(func() error { return s.Checkpoint(tr.name, seq, state) })
				tr.seq, tr.state = seq, state
			}
		}
		tr.check(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := newStore(t, path, Options{Dedupe: 20})
	if s.Recovery() != nil {
		t.Errorf("the file was damaged: %v", s.Recovery().Problems)
	}
	tr.check(t, s)
	return hit
}

// TestBuildFails lets a new file fail before it is complete: the store keeps the old one.
func TestBuildFails(t *testing.T) {
	for _, step := range []string{"sync file", "rename"} {
		t.Run(step, func(t *testing.T) {
			path, at := tempPath(t), ""
			s := newStore(t, path, Options{Fault: func(now string) error {
				if now == at {
					return syscall.EIO
				}
				return nil
			}})
			tr := newTruths(t, s, "m")[0]
			play(t, rand.New(rand.NewPCG(14, 0)), s, []*truth{tr}, 30)
			// A transaction whose sync fails needs a rollback to a new file, which fails as well.
			at = "commit"
			c := &online.Commit{Records: []online.Record{sample("m", tr.last()+1)}}
			if err := s.Checkpoint("m", tr.last(), stateOf(tr.last(), 3000)); !errors.Is(err, syscall.EIO) {
				t.Fatalf("Checkpoint: %v, want %v", err, syscall.EIO)
			}
			at = step
			for range 2 {
				if err := s.Commit(c); !errors.Is(err, syscall.EIO) {
					t.Fatalf("Commit while no new file can be written: %v, want %v", err, syscall.EIO)
				}
			}
			at = ""
			if err := s.Commit(c); err != nil {
				t.Fatal(err)
			}
			tr.commit(c)
			tr.check(t, s)
			if _, err := os.Stat(path + temporary); err == nil {
				t.Error("a temporary file remains")
			}
		})
	}
	t.Run("sync directory", func(t *testing.T) {
		at := ""
		s, err := Open(tempPath(t), Options{Fault: func(now string) error {
			if now == at {
				at = "sync directory"
				return syscall.EIO
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		newTruths(t, s, "m")
		at = "commit"
		c := &online.Commit{Records: []online.Record{sample("m", 1)}}
		if err := s.Checkpoint("m", 0, stateOf(1, 100)); !errors.Is(err, syscall.EIO) {
			t.Errorf("Checkpoint: %v, want %v", err, syscall.EIO)
		}
		for range 3 { // no commit can be durable any more
			if err := s.Commit(c); !errors.Is(err, syscall.EIO) {
				t.Errorf("Commit: %v, want %v", err, syscall.EIO)
			}
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		again := newStore(t, s.path, Options{})
		if r, err := again.Load("m", testShape); err != nil || len(r.Records) > 0 {
			t.Errorf("after a restart: %+v, %v", r, err)
		}
	})
}

// From the rename of a new state file on no file is opened: at the limit of open files it would count as damaged.
func TestNoMoreFilesAfterTheRename(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	restore := func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) }
	defer restore()
	s, err := Open(tempPath(t), Options{Fault: func(now string) error {
		if now == "rename" {
			return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Max: before.Max})
		}
		return nil
	}})
	restore()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestFull fills a store to its quota: commits return ErrFull until checkpoints have
// freed space.
func TestFull(t *testing.T) {
	const quota, size, dedupe = 1 << 20, 30_000, 200
	path := tempPath(t)
	s := newStore(t, path, Options{MaxSize: quota, Dedupe: dedupe})
	tr := newTruths(t, s, "m")[0]
	for round := range 4 {
		refused := false
		for range 10_000 {
			c := &online.Commit{}
			for range 50 {
				c.Records = append(c.Records, sample("m", tr.last()+uint64(len(c.Records))+1))
			}
			err := s.Commit(c)
			if refused = errors.Is(err, ErrFull); refused {
				if !strings.Contains(err.Error(), fmt.Sprint(quota)) {
					t.Errorf("the error does not name the quota: %v", err)
				}
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			tr.commit(c)
		}
		if !refused {
			t.Fatal("no commit reached the quota")
		}
		if round == 0 && tr.last() < 500 || round > 0 && tr.last()-tr.seq < 500 {
			t.Errorf("round %d: full after only %d records", round, tr.last()-tr.seq)
		}
		tr.check(t, s)
		for range 2 { // the second deletes the records of the older generation
			tr.seq, tr.state = tr.last(), stateOf(tr.last(), size)
			if err := s.Checkpoint("m", tr.seq, tr.state); err != nil {
				t.Fatal(err)
			}
			tr.check(t, s)
		}
	}
	const excess = 4*(size+8*dedupe) + 2*redoPages*pageSize // a checkpoint may outgrow the quota
	if info, err := os.Stat(path); err != nil || info.Size() > growStep+quota+excess {
		t.Errorf("the file: %v, %v, want at most %d bytes", info.Size(), err, growStep+quota+excess)
	}
	for _, errno := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		if err := s.fullError(&os.PathError{Op: "write", Path: path, Err: errno}); !errors.Is(err, ErrFull) || !errors.Is(err, errno) {
			t.Errorf("fullError(%v) = %v, want %v", errno, err, ErrFull)
		}
	}
}

// TestFullOfPending fills a store to its limit with pending samples: a commit that drops
// some of them makes room for others, again and again.
func TestFullOfPending(t *testing.T) {
	const limit = 2 << 20
	path := tempPath(t)
	s := newStore(t, path, Options{MaxSize: limit})
	if _, err := s.Load("m", testShape); err != nil {
		t.Fatal(err)
	}
	x := make([]float64, 200)
	var first, last uint64 // keys of the pending samples
	for round := range 5 {
		c := &online.Commit{}
		for range 20 {
			c.Wait = append(c.Wait, online.Pending{Model: "m", Key: last + uint64(len(c.Wait)) + 1, X: x})
		}
		err := s.Commit(c)
		for ; err == nil && last < 10_000; err = s.Commit(c) {
			for i := range c.Wait {
				last++
				c.Wait[i].Key = last + 20
			}
		}
		if !errors.Is(err, ErrFull) || !errors.Is(err, online.ErrLimit) {
			t.Fatalf("round %d, %d pending samples: %v", round, last-first, err)
		}
		if err := s.Checkpoint("m", 0, []byte("state")); err != nil {
			t.Fatal(err)
		}
		if s.Commit(c) == nil {
			t.Fatal("a checkpoint has made room: the test shows nothing")
		}
		drop := &online.Commit{}
		for range (last - first) / 8 {
			first++
			drop.Forget = append(drop.Forget, online.Pending{Model: "m", Key: first})
		}
		if err := s.Commit(drop); err != nil {
			t.Fatalf("round %d: dropping %d samples: %v", round, len(drop.Forget), err)
		}
		if err := s.Commit(c); err != nil {
			t.Fatalf("round %d: after %d samples were dropped: %v", round, len(drop.Forget), err)
		}
		last += 20
	}
	if info, err := os.Stat(path); err != nil || info.Size() > limit+growStep {
		t.Errorf("the file: %v, %v, want at most %d bytes", info.Size(), err, limit+growStep)
	}
}

// TestDiskFull writes a checkpoint to a full disk: the store deletes the older one.
func TestDiskFull(t *testing.T) {
	path, full := tempPath(t), 0
	var log strings.Builder
	opts := Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Fault: func(step string) error {
		if step == "commit" && full > 0 {
			full--
			return syscall.ENOSPC
		}
		return nil
	}}
	s := newStore(t, path, opts)
	tr := newTruths(t, s, "m")[0]
	play(t, rand.New(rand.NewPCG(15, 0)), s, []*truth{tr}, 60)
	for _, times := range []int{1, 2, 1} { // the second time the deletion fails as well
		full = times
		seq, state := tr.last(), stateOf(uint64(times), 5000)
		err := s.Checkpoint("m", seq, state)
		if failed := errors.Is(err, ErrFull); failed != (times == 2) {
			t.Fatalf("Checkpoint where the disk is full %d times: %v", times, err)
		}
		if err == nil {
			tr.seq, tr.state = seq, state
		}
		tr.check(t, s)
		if info, err := s.Info("m"); err != nil || times == 1 && info.Checkpoints[0].Bytes != 5000 {
			t.Errorf("Info: %+v, %v", info, err)
		}
		c := &online.Commit{Records: []online.Record{sample("m", tr.last()+1)}}
		if err := s.Commit(c); err != nil {
			t.Fatal(err)
		}
		tr.commit(c)
	}
	if got := strings.Count(log.String(), "deleting the older checkpoint"); got != 3 {
		t.Errorf("%d warnings, want 3:\n%s", got, log.String())
	}
	closeStore(t, s)
	s = newStore(t, path, opts)
	tr.check(t, s)
}
