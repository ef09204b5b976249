package persist

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"edge/online"
)

// truth is a simple model of the entries that a store must contain of one model.
type truth struct {
	name    string
	records []online.Record // all of them, from seq 1
	pending []online.Pending
	seq     uint64 // of the newest checkpoint
	state   []byte // nil without a checkpoint
}

func (tr *truth) last() uint64 { return uint64(len(tr.records)) }

// commit applies c to the truth.
func (tr *truth) commit(c *online.Commit) {
	for _, r := range c.Records {
		if r.Model == tr.name {
			r.Seq = tr.last() + 1
			tr.records = append(tr.records, r)
		}
	}
	drop := func(key uint64) {
		tr.pending = slices.DeleteFunc(tr.pending, func(p online.Pending) bool { return p.Key == key })
	}
	for _, p := range c.Wait {
		if p.Model == tr.name {
			drop(p.Key)
			tr.pending = append(tr.pending, p)
		}
	}
	for _, p := range c.Forget {
		if p.Model == tr.name {
			drop(p.Key)
		}
	}
}

// want returns the expected result of Load.
func (tr *truth) want() *Recovered {
	return &Recovered{State: tr.state, Seq: tr.seq, Records: tr.records[tr.seq:], Pending: tr.pending}
}

// seen reports whether key is among the last n keys.
func (tr *truth) seen(key uint64, n int) bool {
	if key == 0 {
		return false
	}
	for i := len(tr.records) - 1; i >= 0 && n > 0; i-- {
		if k := tr.records[i].Key; k != 0 {
			if k == key {
				return true
			}
			n--
		}
	}
	return false
}

// check compares the store with the truth, dedupe included.
func (tr *truth) check(t *testing.T, s *Store) {
	t.Helper()
	got, err := s.Load(tr.name, testShape)
	if err != nil {
		t.Fatalf("Load(%s): %v", tr.name, err)
	}
	if want := tr.want(); !slices.EqualFunc(want.Records, got.Records, sameRecord) || want.Seq != got.Seq ||
		!bytes.Equal(want.State, got.State) || !slices.EqualFunc(want.Pending, got.Pending, samePending) || len(got.Loss.Notes) > 0 {
		t.Fatalf("Load(%s), −want +got:\n%s", tr.name, cmp.Diff(want, got, stored))
	}
	for _, r := range tr.records {
		if got, want := s.Seen(tr.name, r.Key), tr.seen(r.Key, s.opts.Dedupe); got != want {
			t.Fatalf("Seen(%s, key of record %d of %d) = %v, want %v", tr.name, r.Seq, tr.last(), got, want)
		}
	}
}

func sameRecord(a, b online.Record) bool { return reflect.DeepEqual(a, b) }

func samePending(a, b online.Pending) bool { return reflect.DeepEqual(a, b) }

const testShape = "features=a,b,c inducing=8 horizons=inf window=0"

// sample returns record n of a model; any two differ.
func sample(model string, n uint64) online.Record {
	x := []float64{float64(n), -float64(n) / 3, 1e-300}
	r := online.Record{Model: model, Event: online.Event{Kind: online.Observe, Key: hash(n), X: x, Label: fmt.Sprintf("class %d", n%5)}}
	switch n % 7 {
	case 3:
		r.Probs = []float64{0.25, 0.75}
	case 4:
		r.Probs = []float64{}
	case 5:
		r.Event = online.Event{Kind: online.Boundary}
	case 6:
		r.Key = 0
	}
	return r
}

func pendingSample(model string, n uint64) online.Pending {
	return online.Pending{Model: model, Key: hash(n) + 1, X: []float64{float64(n), 2, 3}, Probs: []float64{0.5, 0.5}}
}

// hash is a bijection of uint64 (SplitMix64's finaliser), 0 excepted.
func hash(n uint64) uint64 {
	n ^= n >> 30
	n *= 0xbf58476d1ce4e5b9
	n ^= n >> 27
	n *= 0x94d049bb133111eb
	return n ^ n>>31
}

// stateOf returns size bytes that differ for every seq.
func stateOf(seq uint64, size int) []byte {
	b := make([]byte, 0, size+8)
	for len(b) < size {
		b = binary.LittleEndian.AppendUint64(b, hash(seq+uint64(len(b))<<32))
	}
	return b[:size]
}

// newStore opens a store, and closes it and verifies its file when the test ends.
func newStore(t testing.TB, path string, opts Options) *Store {
	t.Helper()
	s, err := Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

// closeStore closes a store, unless it is closed already, and verifies its file.
func closeStore(t testing.TB, s *Store) {
	t.Helper()
	if s.db == nil {
		return
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	s.db = nil
	if v, err := Verify(s.path, nil); err != nil || len(v.Problems) > 0 {
		t.Errorf("Verify(%s) = %+v, %v", s.path, v, err)
	}
}

func tempPath(t testing.TB) string { return filepath.Join(t.TempDir(), "edge.db") }

// play runs n random operations against the store and the truths.
func play(t *testing.T, rng *rand.Rand, s *Store, truths []*truth, n int) {
	t.Helper()
	for range n {
		if rng.IntN(6) == 0 {
			tr := truths[rng.IntN(len(truths))]
			seq := tr.seq + rng.Uint64N(tr.last()-tr.seq+1)
			state := stateOf(seq+rng.Uint64N(1000)*1e6, 1+rng.IntN(9000))
			if err := s.Checkpoint(tr.name, seq, state); err != nil {
				t.Fatal(err)
			}
			tr.seq, tr.state = seq, state
			continue
		}
		c := randomCommit(rng, truths)
		before := make(map[string]uint64)
		for _, tr := range truths {
			before[tr.name] = tr.last()
		}
		if err := s.Commit(c); err != nil {
			t.Fatal(err)
		}
		for _, r := range c.Records {
			before[r.Model]++
			if r.Seq != before[r.Model] {
				t.Fatalf("record of %s got seq %d, want %d", r.Model, r.Seq, before[r.Model])
			}
		}
		for _, tr := range truths {
			tr.commit(c)
		}
	}
}

func randomCommit(rng *rand.Rand, truths []*truth) *online.Commit {
	c := &online.Commit{}
	next := make(map[string]uint64)
	for range rng.IntN(6) {
		tr := truths[rng.IntN(len(truths))]
		next[tr.name]++
		c.Records = append(c.Records, sample(tr.name, tr.last()+next[tr.name]))
	}
	for range rng.IntN(4) {
		tr := truths[rng.IntN(len(truths))]
		c.Wait = append(c.Wait, pendingSample(tr.name, rng.Uint64N(50)))
	}
	for range rng.IntN(4) {
		tr := truths[rng.IntN(len(truths))]
		p := pendingSample(tr.name, rng.Uint64N(50))
		c.Forget = append(c.Forget, online.Pending{Model: tr.name, Key: p.Key})
	}
	return c
}

// newTruths loads models into the store.
func newTruths(t testing.TB, s *Store, names ...string) (truths []*truth) {
	t.Helper()
	for _, name := range names {
		if _, err := s.Load(name, testShape); err != nil {
			t.Fatal(err)
		}
		truths = append(truths, &truth{name: name})
	}
	return truths
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTruth compares random histories with restarts with the simple model.
func TestTruth(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			path, opts := tempPath(t), Options{Dedupe: 20}
			s := newStore(t, path, opts)
			truths := newTruths(t, s, "bearing", "pump-2")
			for range 12 {
				play(t, rng, s, truths, 1+rng.IntN(25))
				closeStore(t, s)
				s = newStore(t, path, opts)
				for _, tr := range truths {
					tr.check(t, s)
				}
			}
			if s.Recovery() != nil {
				t.Errorf("Open repaired a sound file: %+v", s.Recovery())
			}
		})
	}
}

// TestRollBack lets commits and checkpoints fail after bbolt has written them, as a
// failed sync does: they must be invisible, and later commits must succeed.
func TestRollBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 0))
	path, fail := tempPath(t), false
	opts := Options{Dedupe: 20, Fault: func(step string) error {
		if fail && step == "commit" {
			return os.ErrDeadlineExceeded
		}
		return nil
	}}
	s := newStore(t, path, opts)
	truths := newTruths(t, s, "bearing", "pump-2")
	for range 15 {
		play(t, rng, s, truths, 5)
		fail = true
		if err := s.Checkpoint(truths[0].name, truths[0].last(), []byte("never")); err == nil {
			t.Fatal("Checkpoint succeeded although its sync failed")
		}
		fail = false
		play(t, rng, s, truths, rng.IntN(3))
		fail = true
		c := randomCommit(rng, truths)
		c.Records = append(c.Records, sample("pump-2", 99))
		if err := s.Commit(c); err == nil {
			t.Fatal("Commit succeeded although its sync failed")
		}
		if got := c.Records[len(c.Records)-1].Seq; got != 0 {
			t.Fatalf("a failed commit set seq %d", got)
		}
		fail = false
		play(t, rng, s, truths, 1)
		for _, tr := range truths {
			tr.check(t, s)
		}
	}
	closeStore(t, s)
	s = newStore(t, path, opts)
	for _, tr := range truths {
		tr.check(t, s)
	}
	if !bytes.Contains(readFile(t, path), sealFormat(formatVersion)) {
		t.Error("the file does not contain the sealed format version, which identifies a damaged file")
	}
}
