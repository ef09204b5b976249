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

// TestFiltersAreRemembered stores filters and reads them after a restart.
func TestFiltersAreRemembered(t *testing.T) {
	path := tempPath(t)
	s := newStore(t, path, Options{})
	newTruths(t, s, "m")
	if got, err := s.Filters(); got != nil || err != nil {
		t.Errorf("a new store has the filters %q, %v", got, err)
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
		t.Errorf("Open repaired a sound store with filters: %+v", s.Recovery())
	}
	if got, err := s.Filters(); err != nil || !slices.Equal(got, want) {
		t.Errorf("the filters after a restart are %.100q, %v", got, err)
	}
	if models, err := s.Models(); err != nil || !slices.Equal(models, []string{"m"}) {
		t.Errorf("the models are %q, %v", models, err)
	}
	if err := s.RememberFilters(make([]string, maxFilters+1)); err == nil {
		t.Error("the store accepts too many filters")
	}
	if err := s.RememberFilters([]string{strings.Repeat("x", maxFilter+1)}); err == nil {
		t.Error("the store accepts a filter longer than MQTT's limit")
	}
	if err := s.RememberFilters(nil); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Filters(); len(got) > 0 || err != nil {
		t.Errorf("the filters after storing none are %q, %v", got, err)
	}
}

// TestFiltersOutliveAFailedSync rolls back a transaction whose last sync failed: the
// filters stored before it remain.
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
		t.Errorf("the filters after the rollback are %q, %v, want %q", got, err, want)
	}
}

// TestDamagedFilters damages the filters: the next start drops them, and the models
// lose no sample.
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
		t.Error("Open did not detect the damage")
	}
	if got, err := s.Filters(); got != nil || err != nil {
		t.Errorf("the filters are %q, %v, want none", got, err)
	}
	if r, err := s.Load("m", testShape); err != nil || r.Loss.Samples > 0 {
		t.Errorf("Load = %+v, %v, want no loss", r, err)
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
