package persist

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"edge/online"
)

// TestVerifySound verifies a sound file with a decoder that rejects one of its states.
func TestVerifySound(t *testing.T) {
	h := makeHistory(t, 6_000)
	path := tempPath(t)
	writeFile(t, path, h.file)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	var asked []string
	got, err := Verify(path, func(model, shape string, state []byte) error {
		asked = append(asked, fmt.Sprintf("%s %s %d", model, shape, len(state)))
		if len(asked) == 2 {
			return errors.New("nonsense")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &Outcome{
		Bytes: int64(len(h.file)), Others: true,
		Problems: []string{"bearing: the state of generation 2 cannot be used: nonsense"},
		Models: []ModelOutcome{
			{Model: "bearing", Checkpoints: []Generation{{3, 90, 6_000}, {2, 50, 6_000}}, First: 51, Last: 150, Pending: 70},
			{Model: "pump", First: 1, Last: 30},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Verify, −want +got:\n%s", diff)
	}
	if state := "bearing " + testShape + " 6000"; !slices.Equal(asked, []string{state, state}) {
		t.Errorf("the decoder received %q", asked)
	}
}

// TestVerifyInUse verifies the file of a store that commits, checkpoints and compacts:
// every copy must be sound, and Verify must leave no temporary file.
func TestVerifyInUse(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	path := tempPath(t)
	s := newStore(t, path, Options{})
	tr := newTruths(t, s, "m")[0]
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		rng := rand.New(rand.NewPCG(17, 0))
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			play(t, rng, s, []*truth{tr}, 3)
			if i%20 == 0 {
				s.write.Lock()
				if err := s.rewrite(); err != nil {
					t.Error(err)
				}
				s.write.Unlock()
			}
		}
	}()
	var last uint64
	for range 3 { // each Verify waits a second for the lock
		v, err := Verify(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !v.InUse || len(v.Problems) > 0 || len(v.Models) != 1 || v.Models[0].Last < last {
			t.Fatalf("Verify of a file in use = %+v after record %d", v, last)
		}
		last = v.Models[0].Last
	}
	close(stop)
	<-done
	if last == 0 {
		t.Error("the store committed no record meanwhile")
	}
	tr.check(t, s)
	if left, _ := os.ReadDir(folder); slices.ContainsFunc(left, func(e os.DirEntry) bool { return strings.Contains(e.Name(), "verify") }) {
		t.Errorf("Verify left %v", left)
	}
}

// TestVerifyNever copies a file that changes during the copy: copyStill returns nil.
func TestVerifyNever(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	newTruths(t, s, "m")
	from, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	changing := readerFunc(func(p []byte, at int64) (int, error) {
		c := &online.Commit{Records: []online.Record{{Model: "m", Event: online.Event{Kind: online.Boundary}}}}
		if err := s.Commit(c); err != nil {
			t.Fatal(err)
		}
		return from.ReadAt(p, at)
	})
	if to, err := copyStill(changing, "edge.db"); to != nil || err != nil {
		t.Errorf("copyStill of a changing file = %v, %v, want nil", to, err)
	}
	to, err := copyStill(from, "edge.db")
	if to == nil || err != nil {
		t.Fatalf("copyStill = %v, %v, want a copy", to, err)
	}
	defer to.Close()
	want := readFile(t, path)
	got := make([]byte, len(want)+1)
	if n, err := to.ReadAt(got, 0); err != io.EOF || !bytes.Equal(got[:n], want) {
		t.Errorf("the copy differs: %d bytes, %v", n, err)
	}
}

// A file in use may have been written over: a high-water mark beyond its end takes no memory.
func TestHighWaterMarkBeyondTheFile(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	newTruths(t, s, "m")
	closeStore(t, s)
	file := readFile(t, path)
	for _, high := range []uint64{1 << 40, 1 << 50, 1<<52 + 3, 1<<64 - 1} {
		for page := range 2 {
			b := file[page*pageSize+pageHeader:]
			byteOrder.PutUint64(b[40:], high)
			h := fnv.New64a()
			h.Write(b[:metaSize-8])
			byteOrder.PutUint64(b[metaSize-8:], h.Sum64())
		}
		if m := newestMeta(bytes.NewReader(file)); m.high != high {
			t.Fatalf("the high-water mark is %d, want %d", m.high, high)
		}
		if to, err := copyStill(bytes.NewReader(file), "edge.db"); to == nil || err != nil {
			t.Errorf("mark %d: copyStill = %v, %v, want a copy", high, to, err)
		} else {
			to.Close()
		}
	}
}

type readerFunc func(p []byte, at int64) (int, error)

func (f readerFunc) ReadAt(p []byte, at int64) (int, error) { return f(p, at) }
