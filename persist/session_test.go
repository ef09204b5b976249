package persist

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestFiltersAreRemembered(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	newTruths(t, s, "m")
	if got, err := s.Filters(); got != nil || err != nil {
		t.Errorf("a new store remembers %q, %v", got, err)
	}
	want := []string{"factory/+/vibration", "", "$share/g/a/#", strings.Repeat("x", 1<<16)}
	for _, filters := range [][]string{{"an/older/one"}, want} {
		if err := s.RememberFilters(filters); err != nil {
			t.Fatal(err)
		}
	}
	closeStore(t, s)
	s = newStore(t, path, Options{})
	if s.Recovery() != nil {
		t.Errorf("a store with filters needs a repair: %+v", s.Recovery())
	}
	if got, err := s.Filters(); err != nil || !slices.Equal(got, want) {
		t.Errorf("after a restart it remembers %.100q, %v", got, err)
	}
	if models, err := s.Models(); err != nil || !slices.Equal(models, []string{"m"}) {
		t.Errorf("the models are %q, %v", models, err)
	}
	if err := s.RememberFilters(make([]string, maxFilters+1)); err == nil {
		t.Error("too many filters are remembered")
	}
	if err := s.RememberFilters([]string{strings.Repeat("x", maxFilter+1)}); err == nil {
		t.Error("a filter that MQTT does not have is remembered")
	}
	if err := s.RememberFilters(nil); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Filters(); len(got) > 0 || err != nil {
		t.Errorf("after none, it remembers %q, %v", got, err)
	}
}

// Damaged filters are found at the next start and given up; the models lose nothing.
// A transaction that failed in its last sync is taken back; what was remembered
// before stays.
func TestFiltersOutliveAFailedSync(t *testing.T) {
	failing := false
	s := newStore(t, tempPath(t), Options{Fault: func(step string) error {
		if failing && step == "commit" {
			failing = false
			return syscall.EIO
		}
		return nil
	}})
	newTruths(t, s, "m")
	want := []string{"factory/+/vibration"}
	if err := s.RememberFilters(want); err != nil {
		t.Fatal(err)
	}
	failing = true
	if err := s.RememberFilters([]string{"another"}); !errors.Is(err, syscall.EIO) {
		t.Fatalf("RememberFilters whose sync fails: %v", err)
	}
	if err := s.Checkpoint("m", 0, stateOf(1, 100)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Filters(); err != nil || !slices.Equal(got, want) {
		t.Errorf("after the transaction was taken back it remembers %q, %v, want %q", got, err, want)
	}
}

func TestDamagedFilters(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	newTruths(t, s, "m")
	if err := s.RememberFilters([]string{"factory/+/vibration"}); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	data := readFile(t, path)
	if n := bytes.Count(data, []byte("factory/+/vibration")); n == 0 {
		t.Fatal("the filter is not in the file")
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(data, []byte("factory/+/vibration"), []byte("factory/+/vibratiom")), 0o600); err != nil {
		t.Fatal(err)
	}
	s = newStore(t, path, Options{})
	if s.Recovery() == nil {
		t.Error("the damage was not found")
	}
	if got, err := s.Filters(); got != nil || err != nil {
		t.Errorf("it remembers %q, %v", got, err)
	}
	if r, err := s.Load("m", testShape); err != nil || r.Loss.Samples > 0 {
		t.Errorf("the model lost %+v, %v", r, err)
	}
}

func FuzzDecodeFilters(f *testing.F) {
	f.Add([]byte{0})
	f.Add([]byte{2, 1, 'a', 3, 'b', '/', '#'})
	f.Add([]byte{255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, payload []byte) {
		filters, err := decodeFilters(payload)
		if err != nil {
			if !errors.Is(err, errEncoding) {
				t.Errorf("the error is %v", err)
			}
			return
		}
		if len(filters) > len(payload) {
			t.Errorf("%d filters of %d bytes", len(filters), len(payload))
		}
	})
}
