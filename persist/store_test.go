package persist

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"edge/online"
)

func Example() {
	dir, _ := os.MkdirTemp("", "edge")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "edge.db")
	shape := online.Config{Features: []string{"rms", "kurtosis"}, Inducing: 50}.Shape()

	store, err := Open(path, Options{MaxSize: 64 << 20})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = store.Load("bearing", shape)
	c := &online.Commit{Records: []online.Record{
		{Model: "bearing", Event: online.Event{Kind: online.Observe, Key: 11, X: []float64{0.8, 3.9}, Label: "worn"}},
		{Model: "bearing", Event: online.Event{Kind: online.Observe, Key: 12, X: []float64{0.1, 3.0}, Label: "ok"}},
	}}
	fmt.Println("commit:", store.Commit(c), "seq of the last:", c.Records[1].Seq)
	fmt.Println("checkpoint:", store.Checkpoint("bearing", 1, []byte("the state after record 1")))
	_ = store.Close()

	store, _ = Open(path, Options{})
	defer store.Close()
	r, _ := store.Load("bearing", shape)
	fmt.Printf("%s, then %d record: %s\n", r.State, len(r.Records), r.Records[0].Label)
	fmt.Println("seen 12:", store.Seen("bearing", 12), "seen 13:", store.Seen("bearing", 13))
	// Output:
	// commit: <nil> seq of the last: 2
	// checkpoint: <nil>
	// the state after record 1, then 1 record: ok
	// seen 12: true seen 13: false
}

// TestPendingOrder: waiting again moves a sample to the end, and a commit that
// both adds and drops one drops it.
func TestPendingOrder(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	newTruths(t, s, "m")
	key := func(k uint64) online.Pending { return online.Pending{Model: "m", Key: k, X: []float64{float64(k)}} }
	for _, c := range []*online.Commit{
		{Wait: []online.Pending{key(1), key(2), key(3)}},
		{Wait: []online.Pending{key(1)}},
		{Wait: []online.Pending{key(4)}, Forget: []online.Pending{key(4), key(2), key(77)}},
		{Forget: []online.Pending{key(77)}},
	} {
		if err := s.Commit(c); err != nil {
			t.Fatal(err)
		}
	}
	closeStore(t, s)
	s = newStore(t, path, Options{})
	r, err := s.Load("m", testShape)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]online.Pending{key(3), key(1)}, r.Pending); diff != "" {
		t.Errorf("−want +got:\n%s", diff)
	}
}

func TestShape(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	if _, err := s.Load("m", "inducing=50"); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = newStore(t, path, Options{})
	_, err := s.Load("m", "inducing=60")
	if !errors.Is(err, ErrShape) {
		t.Fatalf("Load under another shape: %v, want %v", err, ErrShape)
	}
	for _, part := range []string{"inducing=50", "inducing=60", "edge reset --model m", path} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
	if err := s.Commit(&online.Commit{Records: []online.Record{sample("m", 1)}}); !errors.Is(err, ErrModel) {
		t.Errorf("Commit to a model that was refused: %v, want %v", err, ErrModel)
	}
	if err := s.Reset("m"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load("m", "inducing=60"); err != nil {
		t.Errorf("Load after Reset: %v", err)
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
		t.Errorf("Reset of a model that is gone: %v, want %v", err, ErrModel)
	}
	if s.Seen("a", hash(1)) {
		t.Error("a key of a model that was reset is seen")
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

// TestRefuses: what is wrong with a call is said before anything is written.
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
		"unknown kind":  {func() error { return s.Commit(record(func(r *online.Record) { r.Kind = online.Replace + 1 })) }, errEncoding},
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
		t.Errorf("refused calls left the store suspect (%v) or broken (%v)", s.rollBackDue, s.broken)
	}
}

// TestCheckpoints: generations alternate, and the journal reaches back to the older one.
func TestCheckpoints(t *testing.T) {
	s := newStore(t, tempPath(t), Options{})
	newTruths(t, s, "m")
	for i := range uint64(6) {
		n := i * 10
		for range 10 {
			n++
			if err := s.Commit(&online.Commit{Records: []online.Record{sample("m", n)}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Checkpoint("m", n, stateOf(n, 5000)); err != nil {
			t.Fatal(err)
		}
		info, err := s.Info("m")
		if err != nil {
			t.Fatal(err)
		}
		want := Info{Model: "m", Shape: testShape, First: 1, Last: n, Dedupe: info.Dedupe,
			Checkpoints: []Generation{{Generation: i + 1, Seq: n, Bytes: 5000}}}
		if i > 0 {
			want.Checkpoints = append(want.Checkpoints, Generation{Generation: i, Seq: n - 10, Bytes: 5000})
			want.First = n - 10 + 1
		}
		if diff := cmp.Diff(want, info); diff != "" {
			t.Fatalf("after checkpoint %d, −want +got:\n%s", i+1, diff)
		}
	}
	if err := s.Checkpoint("m", 59, []byte("x")); !errors.Is(err, ErrSequence) {
		t.Errorf("a checkpoint behind the newest: %v, want %v", err, ErrSequence)
	}
	// The same seq again, as after training without records: the later one counts.
	for _, state := range []string{"one", "two", "three"} {
		if err := s.Checkpoint("m", 60, []byte(state)); err != nil {
			t.Fatal(err)
		}
		if r, err := s.Load("m", testShape); err != nil || string(r.State) != state || r.Seq != 60 || len(r.Records) != 0 {
			t.Errorf("after checkpoint %q at the same seq: %+v, %v", state, r, err)
		}
	}
}

// TestDedupeShrinks: a store that is opened with a smaller ring keeps the latest keys.
func TestDedupeShrinks(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{Dedupe: 100})
	tr := newTruths(t, s, "m")[0]
	for n := range uint64(120) {
		c := &online.Commit{Records: []online.Record{sample("m", n+1)}}
		if err := s.Commit(c); err != nil {
			t.Fatal(err)
		}
		tr.commit(c)
	}
	tr.seq, tr.state = 110, []byte("x")
	if err := s.Checkpoint("m", tr.seq, tr.state); err != nil {
		t.Fatal(err)
	}
	tr.check(t, s)
	closeStore(t, s)
	s = newStore(t, path, Options{Dedupe: 15})
	tr.check(t, s)
}

func TestLocked(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	var group sync.WaitGroup // each waits a second for the lock
	for name, open := range map[string]func() error{
		"Open":         func() error { _, err := Open(path, Options{}); return err },
		"OpenReadOnly": func() error { _, err := OpenReadOnly(path, Options{}); return err },
	} {
		group.Go(func() {
			err := open()
			if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "stop it") {
				t.Errorf("%s of a file in use: %v, want %v that names the file and the way out", name, err, ErrLocked)
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

// TestSymlink: the file stays where the link points to, and the link a link.
func TestSymlink(t *testing.T) {
	path, link := tempPath(t), tempPath(t)
	s := newStore(t, path, Options{})
	waste(t, s, newTruths(t, s, "m")[0])
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
		t.Errorf("the file it points to was not compacted: %d bytes, %d before", after, before)
	}
}

// TestCreatedAtOnce: of many that create the same file one wins, and the others wait or give up.
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
		t.Errorf("a temporary file is left: %v", err)
	}
}

func TestReadOnly(t *testing.T) {
	path := tempPath(t)
	if _, err := OpenReadOnly(path, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OpenReadOnly of nothing: %v", err)
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
		if !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s on a read-only store: %v", name, err)
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
		t.Errorf("a file that others could read keeps mode %v, want 0600", mode())
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), path) {
		t.Errorf("no warning names the file: %q", log.String())
	}
}

// TestForeign: files of other programs are refused and stay as they are.
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
				t.Error("Open changed a file that is not its own, or its mode")
			}
			if names, _ := filepath.Glob(path + "*"); len(names) != 1 {
				t.Errorf("Open left %v", names)
			}
		})
	}
}

// TestConcurrent commits, checkpoints and asks at the same time, as the daemon does.
func TestConcurrent(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{Dedupe: 50})
	truths := newTruths(t, s, "a", "b")
	var group sync.WaitGroup
	committed := make(chan uint64, 1000)
	for _, tr := range truths {
		seqs := make(chan uint64, 200)
		group.Go(func() { // the committing goroutine of this model
			defer close(seqs)
			for n := uint64(1); n <= 100; n++ {
				c := &online.Commit{Records: []online.Record{sample(tr.name, n)}, Wait: []online.Pending{waitingSample(tr.name, n)}}
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
		group.Go(func() { // its learner
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
	group.Go(func() { // a page of figures
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

// TestMarks: the mark of a model is durable with the commit that it came in,
// and survives a repair.
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
		t.Errorf("a mark of a model that is not there: %v, want %v", err, ErrModel)
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

	// The file loses the last of a's records.
	file := readFile(t, path)
	record := appendRecord(nil, &[]online.Event{sample("a", 2).Event}[0])
	broken := bytes.Clone(record)
	broken[3] ^= 1
	file = bytes.ReplaceAll(file, record, broken) // in free pages, too
	writeFile(t, path, file)
	s = newStore(t, path, Options{})
	if s.Recovery() == nil {
		t.Fatal("the damage was not found")
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
		t.Errorf("mark %d, want it gone", a)
	}
}
